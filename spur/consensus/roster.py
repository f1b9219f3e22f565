"""What one replica knows of the others besides their part in the log. Pure.

Each tells the others about once a second how far its disk is. It steers nothing in the log: it is
shown to people, and says who may be promoted, and who should lead next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spur.consensus.core import Core
from spur.consensus.exchange import ClockTell
from spur.consensus.membership import Member
from spur.values.members import HEARD_MS_MAX, is_level
from spur.wire.controllers import ControllerInfo, ControllerList

__all__ = ["Known", "Roster"]

_NS_PER_MS = 1_000_000


class Known(NamedTuple):
    """What a replica tells of itself."""

    stable: int
    history_from: int
    erased_to: int
    free_mib: int
    has_authority: bool


_NOTHING = Known(0, 0, 0, -1, has_authority=False)


class Roster:
    """The members, as this replica knows them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[int, tuple[Known, int]] = {}

    def heard(self, told: ClockTell, mono_ns: int) -> None:
        """Take what a peer tells of itself."""
        known = Known(
            told.stable, told.history_from, told.erased_to, told.free_mib, told.has_authority
        )
        self._known[told.sender] = (known, mono_ns)

    def list(
        self, members: Sequence[Member], mine: Known, mono_ns: int, genesis: bytes
    ) -> ControllerList:
        """Return what is known of these members."""
        rows = tuple(self._info(member, mine, mono_ns) for member in members)
        return ControllerList(self._core.me, rows, genesis)

    def _info(self, member: Member, mine: Known, mono_ns: int) -> ControllerInfo:
        core = self._core
        if member.id == core.me:
            known, heard_ms = mine, 0
        else:
            known = self._known.get(member.id, (_NOTHING, 0))[0]
            heard_ms = self._heard_ms(member.id, mono_ns)
        match = self._match(member.id, known)
        return ControllerInfo(
            node_id=member.id,
            name=member.name,
            disk_id=member.disk_id,
            voter=member.voter,
            raft_address=member.raft_address,
            rpc_address=member.rpc_address,
            leads=member.id == core.leader,
            match=match,
            lag=max(0, core.commit - match),
            history_from=known.history_from,
            erased_to=known.erased_to,
            free_mib=known.free_mib,
            heard_ms=heard_ms,
            has_authority=known.has_authority,
        )

    def _match(self, peer: int, known: Known) -> int:
        # A leader trusts only what was acknowledged to it.
        return self._core.match(peer) if self._core.is_leader else known.stable

    def _heard_ms(self, peer: int, mono_ns: int) -> int:
        if peer not in self._known:
            return -1
        return max(0, mono_ns - self._known[peer][1]) // _NS_PER_MS

    def _lives(self, peer: int, mono_ns: int) -> bool:
        return 0 <= self._heard_ms(peer, mono_ns) <= HEARD_MS_MAX

    def level_learner(self, mono_ns: int) -> int:
        """Return the id of a learner that may be promoted, or 0."""
        core = self._core
        for member in core.members.members:
            match = 0 if member.voter else core.match(member.id)
            lag = core.commit - match
            if match and is_level(match, lag, self._heard_ms(member.id, mono_ns)):
                return member.id
        return 0

    def successor(self, mono_ns: int, free_mib_min: int) -> int:
        """Return the voter to hand the lead to: alive, with most of the log, then most space."""
        core = self._core
        fit = [
            (core.match(peer), self._known[peer][0].free_mib, peer)
            for peer in core.members.voters()
            if peer != core.me
            and self._lives(peer, mono_ns)
            and peer not in core.lost_peers
            and self._known[peer][0].free_mib >= free_mib_min
        ]
        return max(fit)[2] if fit else 0
