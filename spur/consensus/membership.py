"""The memberships along a log: the newest is in force, committed or not.

A membership entry holds the full set, changes at most one voter, acts from the moment it is
appended, and falls back when it is truncated (LOG-CONTRACT 5.1). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.events.envelope import Entry, EntryKind
from spur.values.errors import InvariantBroken
from spur.values.members import (
    GENESIS_MEMBERS_MAX,
    Member,
    Membership,
    member_id_at,
    voters_changed,
)

__all__ = [
    "GENESIS_MEMBERS_MAX",
    "Member",
    "Membership",
    "MembershipLog",
    "member_id_at",
    "voters_changed",
]

_MEMBERSHIP = int(EntryKind.MEMBERSHIP)


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

    def in_touch(self, commit: int) -> tuple[Member, ...]:
        """Return whom to speak with: the members committed last, and those of later memberships.

        Who is being removed has to hear of it, and a change may yet be undone.
        """
        found: dict[int, Member] = {}
        for index, membership in reversed(self._found):
            for member in membership.members:
                found.setdefault(member.id, member)
            if index <= commit:
                break
        return tuple(found[number] for number in sorted(found))

    def begin_with(self, membership: Membership) -> None:
        """Take this for the membership at the base, which was not known before."""
        self._found[0] = (self._found[0][0], membership)
        self.voters = self.current.voters()

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
