"""Users of this host, and acting as one of them."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Unlaunchable", "User", "acting_as", "find_user", "warm_up"]


class Unlaunchable(Exception):
    """The attempt can't run on this host; the text says why."""


class User(NamedTuple):
    """Whom a job runs as."""

    name: str
    uid: int
    gid: int
    """As the job was submitted with; it need not be the user's first group."""
    groups: tuple[int, ...]
    home: str
    shell: str


def warm_up() -> None:
    """Look somebody up, so that what looks users up is loaded before a process is forked."""
    with contextlib.suppress(Unlaunchable):
        find_user(os.geteuid(), os.getegid())


def find_user(uid: int, gid: int) -> User:
    """Return a user as this host knows them.

    Raises: Unlaunchable when it does not, or when this process may not act as them.
    """
    own = os.geteuid()
    if own not in (0, uid):
        raise Unlaunchable(f"this agent runs as uid {own} and can't run jobs of uid {uid}")
    try:
        row = pwd.getpwuid(uid)
    except KeyError:
        raise Unlaunchable(f"no user here has uid {uid}") from None
    groups = tuple(os.getgrouplist(row.pw_name, gid)) if own == 0 else ()
    return User(row.pw_name, uid, gid, groups, row.pw_dir, row.pw_shell or "/bin/sh")


@contextlib.contextmanager
def acting_as(user: User) -> Iterator[None]:
    """Let the files touched inside be touched with the rights of the user, and no others."""
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups(user.groups)
    os.setegid(user.gid)
    os.seteuid(user.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
