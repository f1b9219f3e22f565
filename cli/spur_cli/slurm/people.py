"""Names of users and groups, and the clock on the wall, as this host knows them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from spur.slurm.timespec import Moment

__all__ = [
    "LocalCalendar",
    "Viewpoint",
    "group_id",
    "group_name",
    "here",
    "owner_name",
    "user_id",
    "user_name",
]


class LocalCalendar:
    """The zone of whoever runs the command. Implements `Calendar`."""

    def __init__(self, now_s: int | None = None) -> None:
        """Begin at a time at which the clock then stands still; else it is the machine's."""
        self._now_s = now_s
        form = os.environ.get("SLURM_TIME_FORMAT", "")
        self._form = form if form == "relative" or "%" in form else ""

    def now(self) -> int:
        """Return the seconds since 1970."""
        return int(time.time()) if self._now_s is None else self._now_s

    def spelled(self, seconds: int) -> str:
        """Return a point in time as SLURM_TIME_FORMAT asks; nothing when it asks for nothing."""
        if not self._form:
            return ""
        at = time.localtime(seconds)
        form = _relative_form(at, time.localtime(self.now())) if self._form == "relative" else ""
        return time.strftime(form or self._form, at)

    def moment(self, seconds: int) -> Moment:
        """Return what the clock on the wall shows then."""
        return Moment(*time.localtime(seconds)[:6])

    def seconds(self, moment: Moment) -> int:
        """Return when the clock shows this. Raises: OverflowError when it never does."""
        return int(time.mktime((*moment, 0, 0, -1)))


def _relative_form(at: time.struct_time, now: time.struct_time) -> str:
    """Return how Slurm spells a point in time by how far it is from today.

    Source: slurm(1) SLURM_TIME_FORMAT; parse_time.c of Slurm, whose years have 1 000 days here too.
    """
    days = 1000 * (at.tm_year - now.tm_year) + at.tm_yday - now.tm_yday
    if days in (-1, 0, 1):
        return {-1: "Ystday %H:%M", 0: "%H:%M:%S", 1: "Tomorr %H:%M"}[days]
    if abs(days) > 365:
        return "%-d %b %Y"
    return "%a %H:%M" if 1 < days <= 6 else "%-d %b %H:%M"


@cache
def owner_name(uid: int) -> str:
    """Return the name of a job's owner; of one whom this host does not know, "nobody".

    Source: transcripts of Slurm 22.05.
    """
    name = user_name(uid)
    return "nobody" if name.isdigit() else name


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


def group_id(text: str) -> int | None:
    """Return the group meant by a name or a number; None when there is none."""
    import grp

    try:
        return grp.getgrnam(text).gr_gid
    except KeyError:
        return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 32 else None


class Viewpoint(NamedTuple):
    """Who runs a command, when, and what that host knows of people."""

    uid: int
    calendar: LocalCalendar
    user: Callable[[int], str]
    group: Callable[[int], str]
    user_id: Callable[[str], int | None]
    group_id: Callable[[str], int | None]


def here() -> Viewpoint:
    """Return where this process runs, at this moment: its clock does not move on."""
    now = LocalCalendar(int(time.time()))
    return Viewpoint(os.getuid(), now, user_name, group_name, user_id, group_id)
