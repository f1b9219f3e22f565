"""The controllers that take part in the log, as a membership entry holds them. Pure."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from spur.values.errors import InvariantBroken

__all__ = [
    "GENESIS_MEMBERS_MAX",
    "HEARD_MS_MAX",
    "LEVEL_ENTRIES",
    "ByWhom",
    "Member",
    "Membership",
    "by_whom",
    "is_level",
    "member_id_at",
    "voters_changed",
]

GENESIS_MEMBERS_MAX = 16
"""Members of the genesis have ids 1 to this one; later ids follow from log indexes."""

LEVEL_ENTRIES = 1_000
"""A learner that lacks no more than so many entries is level: it gets them while it is promoted."""

HEARD_MS_MAX = 5_000
"""A controller that was not heard for longer counts as dead where it matters who is alive."""

_FORMAT = 1


class Member(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One replica as the others know it."""

    id: int
    """Never used twice, not even after a removal."""
    disk_id: bytes
    """Random, written in the header of that replica's WAL; a new disk is a new member."""
    voter: bool
    """False for a learner: it gets the log, but its votes and its acknowledgements don't count."""
    raft_address: str
    """host:port"""
    rpc_address: str
    """host:port"""
    name: str = ""
    """Of its host, as people call it; no two members share one at a time."""


class ByWhom(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who asked for a change of members, and when."""

    time_ns: int
    uid: int
    host_id: int
    host_role: str
    """`cluster` for what the cluster asks of itself."""


class Membership(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The full set of members, in order of their ids."""

    members: tuple[Member, ...]

    def voters(self) -> tuple[int, ...]:
        """Return the ids of the members whose votes count."""
        return tuple(member.id for member in self.members if member.voter)

    def peers_of(self, me: int) -> tuple[int, ...]:
        """Return the ids of all members but this one."""
        return tuple(member.id for member in self.members if member.id != me)

    def member(self, replica: int) -> Member | None:
        """Return the member of this id, or None."""
        for member in self.members:
            if member.id == replica:
                return member
        return None

    def named(self, name: str) -> Member | None:
        """Return the member of this name, or None."""
        for member in self.members:
            if member.name == name:
                return member
        return None

    def with_member(self, new: Member) -> Membership:
        """Return this membership with one more, or with one that is otherwise now."""
        others = [member for member in self.members if member.id != new.id]
        return Membership(tuple(sorted([*others, new], key=lambda member: member.id)))

    def without(self, number: int) -> Membership:
        """Return this membership without one of its members."""
        return Membership(tuple(member for member in self.members if member.id != number))

    def encode(self, by_whom: ByWhom | None = None) -> bytes:
        """Return the body of a membership entry; nobody asked for the first one."""
        return _ENCODER.encode(_Stored(_FORMAT, self.members, by_whom))

    @classmethod
    def decode(cls, body: bytes) -> Membership:
        """Return what `encode` was given.

        Raises: InvariantBroken for a body of an unknown format, with surplus elements, without
        a voter, or whose ids do not rise.
        """
        membership = cls(_stored(body).members)
        fault_found = membership.fault()
        if fault_found:
            raise InvariantBroken(f"membership entry: {fault_found}")
        return membership

    def fault(self) -> str:
        """Return what makes this set unusable, or an empty string."""
        ids = [member.id for member in self.members]
        if any(later <= earlier for earlier, later in pairwise(ids)):
            return f"ids must rise, not {ids}"
        if any(number < 1 for number in ids):
            return f"ids start at 1, not {ids}"
        if not self.voters():
            return "at least one member must be a voter"
        names = [member.name for member in self.members if member.name]
        if len(set(names)) < len(names):
            return f"no two members share a name, as in {names}"
        return ""


class _Stored(msgspec.Struct, frozen=True, array_like=True, gc=False):
    format: int
    members: tuple[Member, ...]
    by_whom: ByWhom | None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Stored)


def _stored(body: bytes) -> _Stored:
    try:
        stored = _DECODER.decode(body)
    except msgspec.MsgspecError as fault:
        raise InvariantBroken(f"unreadable membership entry: {fault}") from fault
    # Struct decoding skips surplus elements, so what was skipped shows by encoding again.
    if stored.format != _FORMAT or _ENCODER.encode(stored) != body:
        raise InvariantBroken(
            f"membership entry of format {stored.format}, or with surplus elements; "
            f"this release reads format {_FORMAT}; nothing was applied"
        )
    return stored


def by_whom(body: bytes) -> ByWhom | None:
    """Return who asked for the change of a membership entry; None for the first one.

    Raises: InvariantBroken for a body that can't be read.
    """
    return _stored(body).by_whom


def member_id_at(index: int) -> int:
    """Return the id of a member that the membership entry at this index adds.

    Indexes are never used twice once committed, so neither are ids. The genesis entry is index
    1 and names its members 1 to 16 itself.
    """
    return index + GENESIS_MEMBERS_MAX - 1


def is_level(match: int, lag: int, heard_ms: int) -> bool:
    """Tell whether a learner may be promoted: it lives, and lacks hardly anything."""
    return match > 0 and lag <= LEVEL_ENTRIES and 0 <= heard_ms <= HEARD_MS_MAX


def voters_changed(former: Membership, following: Membership) -> int:
    """Return how many voters one set has that the other lacks."""
    return len(set(former.voters()) ^ set(following.voters()))
