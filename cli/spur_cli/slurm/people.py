"""Names of users and groups, and the clock on the wall, as this host knows them."""

from __future__ import annotations

import time
from functools import cache

from spur.slurm.timespec import Moment

__all__ = ["LocalCalendar", "group_name", "user_id", "user_name"]


class LocalCalendar:
    """The zone of whoever runs the command. Implements `Calendar`."""

    def now(self) -> int:
        """Return the seconds since 1970."""
        return int(time.time())

    def moment(self, seconds: int) -> Moment:
        """Return what the clock on the wall shows then."""
        return Moment(*time.localtime(seconds)[:6])

    def seconds(self, moment: Moment) -> int:
        """Return when the clock shows this. Raises: OverflowError when it never does."""
        return int(time.mktime((*moment, 0, 0, -1)))


@cache
def user_name(uid: int) -> str:
    """Return the user's name, or the number when this host knows none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@cache
def group_name(gid: int) -> str:
    """Return the group's name, or the number when this host knows none."""
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def user_id(text: str) -> int | None:
    """Return the user meant by a name or a number; None when there is none."""
    import pwd

    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 32 else None
