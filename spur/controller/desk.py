"""The desk of a controller: lets hosts in that show a token, and renews hosts' certificates.

What is asked is judged like every request, by the leader and in the log (`commands/joining.py`);
what the log says is then signed. Nothing here is remembered: a host whose answer was lost asks
again with the same key and gets the same certificate, from whichever controller leads by then.

A host without a certificate may say nothing else than what is read here.
Source: LOG-CONTRACT 6.1; ADR-0019.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from spur.client.stream import Stream
from spur.controller.authority import Authority, moment
from spur.events.envelope import Actor
from spur.server.credentials import SigningRequest, read_signing_request
from spur.server.once import Once
from spur.server.sessions import NO_CERTIFICATE
from spur.values.errors import OperatorFault, PeerFault
from spur.values.ids import HostId
from spur.values.jointoken import secret_digest
from spur.wire.calls import Call, Refused, Reply
from spur.wire.controllers import AddController, ControllerAdded
from spur.wire.declare import Answer, Request, decode_as, encode_request
from spur.wire.desk import (
    DESK_LIMIT,
    DESK_VERSION,
    AskToJoin,
    AskToRenew,
    Certified,
    Desk,
    DeskRefused,
    NewController,
    decode_knock,
    decode_question,
    encode_desk,
)
from spur.wire.hello import HostName
from spur.wire.joining import HostCertified, JoinHost, RenewHost

__all__ = ["HostDesk"]

LOG = logging.getLogger("spurctld")

STRANGERS_MAX = 32
"""Hosts without a certificate that stand before the desk at once; more are asked to come again, and
hosts of the cluster never wait for them."""

HOSTS_MAX = 256
"""The same of the cluster's own hosts."""

VISIT_S = 10.0
"""How long a host may stand there."""

DESK = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="desk")
"""Who asks the cluster on behalf of a host that stands before the desk."""

A = TypeVar("A", bound=Answer)

Submit: TypeAlias = Callable[[Call, Actor, Callable[[Reply], None]], None]


class HostDesk:
    """All hosts that stand before one controller's desk."""

    def __init__(
        self,
        directory: Path,
        *,
        cluster_id: bytes,
        submit: Submit,
        addresses: Callable[[], tuple[str, ...]],
        life_s: int,
    ) -> None:
        """Prepare.

        `directory` holds the authority; `submit` asks the front; `addresses` are of every
        controller's calls; certificates hold for `life_s`.
        """
        self._directory = directory
        self._cluster_id = cluster_id
        self._submit = submit
        self._addresses = addresses
        self._life_s = life_s
        self._once = Once(LOG.info)
        self._authority: Authority | None = None
        self._strangers: set[asyncio.Task[None]] = set()
        self._hosts: set[asyncio.Task[None]] = set()

    def opening(self, stream: Stream, who: Actor | HostName | None, messages: list[bytes]) -> bool:
        """Take a stream that begins with a knock; return whether it is taken."""
        try:
            knock = decode_knock(messages[0])
        except PeerFault:
            return False
        if isinstance(who, Actor):
            return False  # Whoever is on this host has the authority's files, or no business here.
        visitor = _Visitor(stream)
        visitor.take(messages[1:])
        here = self._strangers if who is None else self._hosts
        if len(here) >= (STRANGERS_MAX if who is None else HOSTS_MAX):
            visitor.leave(DeskRefused("busy", "too many hosts ask at once; ask again"))
        elif knock.version != DESK_VERSION:
            sentence = f"it speaks version {knock.version}; this desk speaks {DESK_VERSION}"
            visitor.leave(DeskRefused("protocol", sentence))
        else:
            self._begin(self._serve(visitor, who), here)
        return True

    async def close(self) -> None:
        """Send everybody away."""
        everybody = (*self._strangers, *self._hosts)
        for task in everybody:
            task.cancel()
        await asyncio.gather(*everybody, return_exceptions=True)

    # -- inside

    def _begin(self, work: Coroutine[None, None, None], here: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        here.add(task)
        task.add_done_callback(here.discard)

    async def _serve(self, visitor: _Visitor, who: HostName | None) -> None:
        try:
            async with asyncio.timeout(VISIT_S):
                visitor.leave(await self._answer(visitor, who))
        except (TimeoutError, PeerFault) as fault:
            sentence = str(fault) or f"nothing was asked within {VISIT_S:g} s"
            visitor.leave(DeskRefused("protocol", sentence))
        except OperatorFault as fault:
            LOG.error("no certificate can be given: %s", fault)
            sentence = "this controller holds no authority to sign with; ask another one"
            visitor.leave(DeskRefused("unreachable", sentence))
        finally:
            visitor.abandon()

    async def _answer(self, visitor: _Visitor, who: HostName | None) -> Certified | DeskRefused:
        """Return what the visit comes to. Raises: PeerFault, OperatorFault."""
        # A controller that joined has none until a peer gave it.
        authority = self._authority = self._authority or Authority.open(self._directory)
        visitor.say(
            Desk(
                version=DESK_VERSION,
                cluster_id=self._cluster_id,
                authority=authority.certificate,
                clock_ns=time.time_ns(),
            )
        )
        question = decode_question(await visitor.hear())
        signing = read_signing_request(question.signing_request)
        if isinstance(question, AskToJoin):
            answer = await self._join(question, signing, authority)
        else:
            answer = await self._renew(question, signing, authority, who)
        if isinstance(answer, DeskRefused) and answer.code not in ("not-leader", "ask-again"):
            source = visitor.source if who is None else f"{who.role} {who.id}"
            self._once.report(source, f"{source} got no certificate: {answer.text}")
        return answer

    async def _join(
        self, question: AskToJoin, signing: SigningRequest, authority: Authority
    ) -> Certified | DeskRefused:
        if (question.role == "controller") is not (question.controller is not None):
            sentence = "a controller, and nobody else, says where it is to be reached"
            return DeskRefused("invalid-value", sentence)
        request = JoinHost(
            digest=secret_digest(question.secret),
            name=signing.name,
            key=signing.key_digest,
            role=question.role,
            nodes=question.nodes,
            clock_ns=question.clock_ns,
            life_s=self._life_s,
        )
        found = await self._ask(request, HostCertified)
        if isinstance(found, DeskRefused):
            return found
        if question.controller is not None:
            return await self._admit(question.controller, signing, authority, found)
        LOG.info("host %s joined as %s host %d", signing.name, found.role, found.host_id)
        return self._signed(authority, signing, found)

    async def _admit(
        self,
        new: NewController,
        signing: SigningRequest,
        authority: Authority,
        found: HostCertified,
    ) -> Certified | DeskRefused:
        """Make a controller to be a member; asked again for the same disk, it is one already."""
        request = AddController(signing.name, new.disk_id, new.raft_address, new.rpc_address)
        added = await self._ask(request, ControllerAdded)
        if isinstance(added, DeskRefused):
            return added
        LOG.info("host %s joined as controller %d", signing.name, added.node_id)
        numbered = replace(found, host_id=HostId(added.node_id))
        certified = self._signed(authority, signing, numbered)
        return replace(certified, genesis=added.genesis, members=added.members)

    async def _renew(
        self,
        question: AskToRenew,
        signing: SigningRequest,
        authority: Authority,
        who: HostName | None,
    ) -> Certified | DeskRefused:
        if who is None:
            return DeskRefused("foreign-peer", NO_CERTIFICATE)
        if who.cluster_id != self._cluster_id:
            return DeskRefused("foreign-peer", "its certificate is of another cluster")
        request = RenewHost(
            host_id=HostId(who.id), name=signing.name, key=signing.key_digest, life_s=self._life_s
        )
        found = await self._ask(request, HostCertified)
        if isinstance(found, DeskRefused):
            return found
        LOG.info("the certificate of %s host %d was renewed", found.role, found.host_id)
        return self._signed(authority, signing, found)

    def _signed(
        self, authority: Authority, signing: SigningRequest, found: HostCertified
    ) -> Certified:
        name = HostName(cluster_id=self._cluster_id, role=found.role, id=found.host_id)
        begins, ends = moment(found.begins_ns), moment(found.ends_ns)
        return Certified(
            cluster_id=self._cluster_id,
            authority=authority.certificate,
            certificate=authority.sign(name, signing.key, begins, ends),
            role=found.role,
            host_id=found.host_id,
            nodes=found.nodes,
            controllers=self._addresses(),
            ends_ns=found.ends_ns,
        )

    async def _ask(self, request: Request, expected: type[A]) -> A | DeskRefused:
        """Return what the cluster says; committed, when it says yes."""
        replied: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def respond(reply: Reply) -> None:
            if not replied.done():
                replied.set_result(reply)

        call = Call(
            number=0,
            request_id=bytes(16),
            since=0,
            incarnation=0,
            at_least=0,
            speaks_for=None,
            request=encode_request(request),
        )
        self._submit(call, DESK, respond)
        outcome = (await replied).outcome
        if isinstance(outcome, Refused):
            return DeskRefused(outcome.code, outcome.text, outcome.hint, outcome.leader)
        return decode_as(outcome.answer, expected)


class _Visitor:
    """Owner of the stream of one host that stands before the desk."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        stream.owner = self
        stream.decoder.limit = DESK_LIMIT
        stream.decoder.is_wary = False

    @property
    def source(self) -> str:
        """Its address, for the log."""
        remote = self._stream.remote
        return f"a host at {remote[0]}" if isinstance(remote, tuple) else "a host"

    def take(self, messages: list[bytes]) -> None:
        """Keep what came behind the knock."""
        for message in messages:
            self._heard.put_nowait(message)

    def say(self, message: Desk) -> None:
        """Say who is behind the desk."""
        self._stream.send(encode_desk(message))

    async def hear(self) -> bytes:
        """Return its next message. Raises: PeerFault when it left."""
        message = await self._heard.get()
        if message is None:
            raise PeerFault("it left without a question")
        return message

    def leave(self, last: Certified | DeskRefused) -> None:
        """Say the last word."""
        self._stream.close(encode_desk(last))

    def abandon(self) -> None:
        """End the stream, if nothing was said to end it."""
        self._stream.close()

    # -- owner of the stream

    def opened(self, stream: Stream) -> None:
        """Nothing to do: it was open when it was handed over."""

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Keep what it says."""
        self.take(messages)

    def faulted(self, stream: Stream, sentence: str) -> None:
        """Give up whoever breaks the rules."""
        self._heard.put_nowait(None)
        stream.close(encode_desk(DeskRefused("protocol", sentence)))

    def drained(self, stream: Stream) -> None:
        """Nothing to do: little is said here."""

    def closed(self, stream: Stream) -> None:
        """Hear that it went."""
        self._heard.put_nowait(None)
