"""What a controller does about the others: whom it speaks with, whom it lets lead.

The membership is the log's. A controller that was added has a certificate and no key: it asks its
peers for it over their own connection, which is mutual TLS between members; the key is in no log
and in no request. Source: LOG-CONTRACT 5.1, 5.9, 6.1.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from spur.client.tls import credentials_in
from spur.consensus.exchange import AuthorityAsk, AuthorityTell
from spur.consensus.faults import RemovedFromCluster
from spur.consensus.membership import member_id_at
from spur.consensus.replica import Replica
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY, TLS_DIRECTORY
from spur.controller.net import PeerNet
from spur.controller.transport import Traffic, addresses_of
from spur.values.errors import OperatorFault

__all__ = ["HAND_OVER_S", "Company"]

LOG = logging.getLogger("spurctld")

HAND_OVER_S = 1.0
"""How long a leader that is to stop waits for another one to lead."""

ASK_TICKS = 66
"""Ticks between two questions for the authority's key, about two seconds."""


class Company:
    """One controller among the others."""

    def __init__(
        self, directory: Path, replica: Replica, fail: Callable[[BaseException], None]
    ) -> None:
        """Prepare; `fail` ends the controller."""
        self._directory = directory
        self._replica = replica
        self._fail = fail
        self._net: PeerNet[Traffic]
        self._known = replica.neighbours()
        self._newest_id = member_id_at(replica.core.last)
        """What the log told of when `_known` was read: who came since is a newcomer to both."""
        self._ticks = 0
        self._follows = asyncio.Event()
        """Set while another one leads, or nobody."""
        replica.has_authority = _has_authority(directory / AUTHORITY_DIRECTORY)

    def attach(self, net: PeerNet[Traffic]) -> None:
        """Learn what carries messages."""
        self._net = net

    # -- who they are
    def newest_id(self) -> int:
        """Return the highest id that those who are known here were read with.

        The log may have got further since: an id that it tells of is not missing for being removed.
        """
        return self._newest_id

    def is_member(self, number: int) -> bool:
        """Tell whether a controller may speak as one: as far as known, it was not removed."""
        known = any(member.id == number for member in self._replica.neighbours())
        return known or number > self.newest_id()

    def address_of(self, number: int) -> str:
        """Return where a controller takes calls; empty when nobody knows."""
        for member in self._replica.neighbours():
            if member.id == number:
                return member.rpc_address
        return ""

    def removed(self, peer: int) -> None:
        """Hear from a peer that this controller was removed."""
        LOG.warning("controller %d says that this one was removed", peer)
        self._fail(RemovedFromCluster(self._replica.core.me))

    def on_tick(self) -> None:
        """Speak with those whom the log names now; ask for what a new controller lacks."""
        members = self._replica.neighbours()
        self._newest_id = member_id_at(self._replica.core.last)
        if members != self._known:
            self._known = members
            self._net.set_members(addresses_of(members))
        if self._replica.core.is_leader:
            self._follows.clear()
        else:
            self._follows.set()
        if not self._replica.has_authority and self._ticks % ASK_TICKS == 0:
            me = self._replica.core.me
            for member in members:
                if member.id != me:
                    self._net.send(member.id, [AuthorityAsk(sender=me, to=member.id)])
        self._ticks += 1

    # -- the authority
    def take(self, message: AuthorityAsk | AuthorityTell) -> None:
        """Take a peer's message about the authority."""
        if isinstance(message, AuthorityTell):
            self._keep_authority(message)
        elif self._replica.has_authority and self.is_member(message.sender):
            try:
                authority = Authority.open(self._directory / AUTHORITY_DIRECTORY)
            except OperatorFault as fault:
                LOG.warning("%s; another controller has to give it", fault)
                return
            tell = AuthorityTell(
                sender=message.to,
                to=message.sender,
                certificate=authority.certificate,
                key=authority.key,
            )
            self._net.send(message.sender, [tell])

    def _keep_authority(self, message: AuthorityTell) -> None:
        if self._replica.has_authority:
            return
        trusted = credentials_in(self._directory / TLS_DIRECTORY).authority.read_bytes()
        if message.certificate != trusted:
            LOG.warning("controller %d gave another authority; it was not kept", message.sender)
            return
        try:
            Authority.restore(
                self._directory / AUTHORITY_DIRECTORY, message.certificate, message.key
            )
        except OperatorFault as fault:
            LOG.warning("%s", fault)
            return
        self._replica.has_authority = True
        LOG.info("the cluster's authority came from controller %d", message.sender)

    # -- who leads
    def prefer_freer(self, free_mib: int, mark_mib: int) -> None:
        """Let a controller lead whose disk is over its first mark, when this one's is not."""
        replica = self._replica
        if free_mib < mark_mib and replica.core.is_leader and not replica.is_handing_over:
            if replica.hand_over(free_mib_min=mark_mib):
                LOG.info("the lead goes to a controller with more room on its disk")

    async def hand_over(self) -> None:
        """Let another controller lead before this one stops, if one can; wait for it a while."""
        replica = self._replica
        if not (replica.is_attached and replica.core.is_leader and replica.hand_over()):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(HAND_OVER_S):
                await self._follows.wait()
            LOG.info("the lead was handed over")


def _has_authority(directory: Path) -> bool:
    """Tell whether the authority is here and whole; a damaged one is asked for as a missing one."""
    if not directory.exists():
        return False
    try:
        Authority.open(directory)
    except OperatorFault as fault:
        LOG.warning("%s; another controller is asked for it", fault)
        return False
    return True
