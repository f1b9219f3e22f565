"""Who takes part in the log: the body of a membership entry.

A membership entry holds the full set, changes at most one voter, acts from the moment it is
appended, and falls back when it is truncated (LOG-CONTRACT 5.1). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from spur.events.envelope import Entry, EntryKind
from spur.values.errors import InvariantBroken

__all__ = [
    "GENESIS_MEMBERS_MAX",
    "Member",
    "Membership",
    "MembershipLog",
    "member_id_at",
    "voters_changed",
]

GENESIS_MEMBERS_MAX = 16
"""Members of the genesis have ids 1 to this one; later ids follow from log indexes."""

_FORMAT = 1
_MEMBERSHIP = int(EntryKind.MEMBERSHIP)


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

    def encode(self) -> bytes:
        """Return the body of a membership entry."""
        return _ENCODER.encode(_Stored(_FORMAT, self.members))

    @classmethod
    def decode(cls, body: bytes) -> Membership:
        """Return what `encode` was given.

        Raises: InvariantBroken for a body of an unknown format, with surplus elements, without
        a voter, or whose ids do not rise.
        """
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
        membership = cls(stored.members)
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
        return ""


class _Stored(msgspec.Struct, frozen=True, array_like=True, gc=False):
    format: int
    members: tuple[Member, ...]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Stored)


def member_id_at(index: int) -> int:
    """Return the id of a member that the membership entry at this index adds.

    Indexes are never used twice once committed, so neither are ids. The genesis entry is index
    1 and names its members 1 to 16 itself.
    """
    return index + GENESIS_MEMBERS_MAX - 1


def voters_changed(former: Membership, following: Membership) -> int:
    """Return how many voters one set has that the other lacks."""
    return len(set(former.voters()) ^ set(following.voters()))


class MembershipLog:
    """The memberships along the log in memory; the newest is in force, committed or not."""

    __slots__ = ("_found", "voters")

    def __init__(self, base_index: int, membership: Membership) -> None:
        """Begin with the membership that is in force at the base of the log."""
        self._found = [(base_index, membership)]
        self.voters = membership.voters()

    @property
    def current(self) -> Membership:
        """The membership in force."""
        return self._found[-1][1]

    @property
    def index(self) -> int:
        """Where the membership in force stands, or the base when it stands at or below that."""
        return self._found[-1][0]

    def may_lead(self, replica: int, commit: int) -> bool:
        """Tell whether a replica may campaign, the log being committed up to an index.

        A voter may, and so may one whose removal is not committed yet: it can be the only one
        with a log good enough to lead until it is. Source: Raft thesis §4.2.2, figure 4.6.
        """
        if replica in self.voters:
            return True
        for index, membership in reversed(self._found):
            if index <= commit:
                return replica in membership.voters()
        return False

    def note(self, entries: Sequence[Entry]) -> bool:
        """Take the memberships among appended entries; tell whether there was one."""
        found = [entry for entry in entries if entry.kind == _MEMBERSHIP]
        for entry in found:
            self._found.append((entry.index, Membership.decode(entry.body)))
        if found:
            self.voters = self.current.voters()
        return bool(found)

    def truncate(self, first: int) -> None:
        """Fall back to the membership in force before `first`."""
        while len(self._found) > 1 and self.index >= first:
            self._found.pop()
        self.voters = self.current.voters()

    def trim(self, base_index: int) -> None:
        """Keep what is in force at the new base and after it."""
        found = self._found
        while len(found) > 1 and found[1][0] <= base_index:
            del found[0]

    def fault_of(self, entry: Entry) -> str:
        """Return why a proposed entry can't follow the membership in force, or an empty string."""
        former = self.current
        try:
            following = Membership.decode(entry.body)
        except InvariantBroken as fault:
            return str(fault)
        if voters_changed(former, following) > 1:
            return "more than one voter would change"
        for member in following.members:
            known = former.member(member.id)
            if known is None and member.id != member_id_at(entry.index):
                return f"a new member's id is {member_id_at(entry.index)}, not {member.id}"
            if known is not None and known.disk_id != member.disk_id:
                return f"member {member.id} has another disk: it needs a new id"
        return ""
