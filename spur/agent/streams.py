"""Streams of steps: srun on this host to another host's node, and other hosts' to nodes here.

    srun --unix--> relay: Splice      the kernel says who it is; the node's agent is dialled by TLS,
                                      told who by Attach, and messages are passed both ways
    agent --TLS--> listener: Attach   the step's key and owner are checked against its order, or
                                      the key against those of its guests; its supervisor's
                                      socket is found, and messages are passed

Nothing is looked at once a stream is joined. Whoever takes nothing is not read from, so a slow
terminal slows the task that writes to it, and nobody else.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine

from spur.agent import control
from spur.agent.agent import Agent
from spur.agent.machine import Stage
from spur.agent.manifest import AttemptName
from spur.client.address import parse_tcp_address
from spur.client.stream import Stream
from spur.client.tls import TlsFiles, TlsSide, client_context, show_certificate
from spur.events.envelope import Actor
from spur.values.errors import PeerFault
from spur.values.ids import JobId, NodeName
from spur.values.steps import EXTERN_STEP
from spur.wire.agents import LaunchStepOrder
from spur.wire.frames import MessageLimit
from spur.wire.hello import HostName, parse_host_name
from spur.wire.streams import (
    STREAM_VERSION,
    TO_STEP_LIMIT,
    Attach,
    Open,
    Splice,
    StreamRefused,
    decode_opening,
    encode_stream,
    key_digest,
)

__all__ = ["Streams"]

LOG = logging.getLogger("spurd")

DIAL_S = 5.0
"""From dialling a node's agent to its certificate."""

STEP_S = 30.0
"""How long a stream waits for its step: srun may be quicker than the order."""

ADMISSION_S = 5.0
"""How long a guest's stream waits for the word that it is one."""

LISTEN_S = 5.0
"""How long a supervisor that lives may take until it takes a stream."""

FIRST_LOOK_S = 0.002
LOOK_S = 0.05
"""Between two looks for a step or its supervisor; each pause is half as long again."""

QUEUED_BYTES_MAX = 1 << 20
"""What is on its way to one side; above it the other side is not read."""

JOINED_LINGER_S = 600.0
"""How long what a step wrote is kept for a reader that pauses, as its supervisor keeps it."""

LIMIT = MessageLimit(name="message of a stream", bytes_max=TO_STEP_LIMIT.bytes_max)


class Streams:
    """All streams that this agent joins."""

    def __init__(
        self,
        *,
        cluster_id: bytes,
        tls: TlsFiles | None,
        agent: Agent | None,
    ) -> None:
        """Prepare; without an agent there are no nodes here."""
        self._cluster_id = cluster_id
        self._tls = tls
        self._context: ssl.SSLContext | None = client_context(tls) if tls is not None else None
        self._agent = agent
        self._tasks: set[asyncio.Task[None]] = set()

    def show_certificate(self) -> None:
        """Show the certificate that is on disk now, on streams made from now on.

        Raises: OperatorFault when it cannot be used.
        """
        if self._context is not None and self._tls is not None:
            show_certificate(self._context, self._tls)

    def opening(self, stream: Stream, who: Actor | HostName | None, messages: list[bytes]) -> bool:
        """Take a stream that begins as one of ours does; return whether it is taken."""
        try:
            first = decode_opening(messages[0])
        except PeerFault:
            return False
        if isinstance(first, Splice) and isinstance(who, Actor):
            self._begin(self._splice(self._take(stream, messages), first, who))
        elif isinstance(first, Attach) and isinstance(who, HostName):
            self._begin(self._attach(self._take(stream, messages), first))
        else:
            return False
        return True

    def _take(self, stream: Stream, messages: list[bytes]) -> _Side:
        near = _Side(cluster_id=self._cluster_id, taken=stream)
        near.early += messages[1:]
        return near

    async def close(self) -> None:
        """Give up what is being joined; what is joined ends with its sockets."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- srun's side

    async def _splice(self, near: _Side, splice: Splice, who: Actor) -> None:
        """Dial the node's agent for a user of this host."""
        if splice.version != STREAM_VERSION:
            near.refuse("protocol", f"srun speaks version {splice.version} of streams")
            return
        tls = TlsSide(self._context, server_side=False) if self._context is not None else None
        far = _Side(tls=tls, cluster_id=self._cluster_id)
        try:
            if tls is None:
                raise ValueError("this agent has no certificate to reach others with")
            host, port = parse_tcp_address(splice.address)
            async with asyncio.timeout(DIAL_S):
                await asyncio.get_running_loop().create_connection(lambda: far.stream, host, port)
                await far.ready
        except (OSError, ValueError, PeerFault) as error:
            far.stream.abort()
            why = str(error) or f"it did not answer within {DIAL_S:g} seconds"
            near.refuse("unreachable", f"the agent at {splice.address} cannot be reached: {why}")
            return
        attach = Attach(STREAM_VERSION, self._cluster_id, who.uid, who.gid, splice.open)
        far.stream.send(encode_stream(attach))
        near.join(far)

    # -- the node's side

    async def _attach(self, near: _Side, attach: Attach) -> None:
        """Find the supervisor of the step that another host's user speaks of."""
        if attach.version != STREAM_VERSION or attach.cluster_id != self._cluster_id:
            near.refuse("foreign-peer", "it is of another cluster or another version of streams")
            return
        name = await self._wait_for_step(attach.open)
        agent = self._agent
        if name is None or agent is None:
            near.refuse("unknown-job", f"the step is not on {attach.open.node}")
            return
        order = agent.machine.order_of(name)
        digest = key_digest(attach.open.key)
        is_own = isinstance(order, LaunchStepOrder) and hmac.compare_digest(
            digest, order.key_digest
        )
        if order is None or attach.uid not in (order.uid, 0):
            is_known = False
        else:
            is_known = is_own or await self._wait_for_admission(name, digest)
        if not is_known:
            near.refuse("not-permitted", "it is somebody else's step")
            return
        far = _Side(tls=None, cluster_id=self._cluster_id)
        # What is over may have a supervisor still, which keeps what its srun has not taken.
        is_over = agent.machine.stage_of(name) is Stage.OVER
        try:
            directory = str(agent.spool.directory(name))
            enter = _as_its_own if is_own else _as_a_guest
            connection = await _connected(directory, enter, 0.0 if is_over else LISTEN_S)
            await asyncio.get_running_loop().create_unix_connection(
                lambda: far.stream, sock=connection
            )
        except OSError as error:
            if is_over:
                near.refuse("unknown-job", f"the step is over on {attach.open.node}")
            else:
                near.refuse("unreachable", f"the step's supervisor takes no stream: {error}")
            return
        near.join(far)

    async def _wait_for_step(self, opened: Open) -> AttemptName | None:
        """Return the step's attempt once its supervisor lives or has ended; None for no step."""
        agent, loop = self._agent, asyncio.get_running_loop()
        until_s = loop.time() + STEP_S
        pause_s = FIRST_LOOK_S
        while agent is not None and loop.time() < until_s:
            step = None if opened.step_id == EXTERN_STEP else opened.step_id
            name = agent.machine.find_step(
                NodeName(opened.node), JobId(opened.job_id), opened.run, step
            )
            stage = None if name is None else agent.machine.stage_of(name)
            if stage in (Stage.STARTED, Stage.RUNNING, Stage.OVER):
                return name
            if stage is not None and stage > Stage.RUNNING:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LOOK_S)
        return None

    async def _wait_for_admission(self, name: AttemptName, digest: bytes) -> bool:
        """Return whether a guest has this key; whoever opens a stream may be quicker than that."""
        agent, loop = self._agent, asyncio.get_running_loop()
        until_s = loop.time() + ADMISSION_S
        pause_s = FIRST_LOOK_S
        while agent is not None and loop.time() < until_s:
            if any(hmac.compare_digest(digest, known) for known in agent.guests.get(name, ())):
                return True
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LOOK_S)
        return False

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _as_its_own(directory: str) -> socket.socket:
    """Take the place of whoever started the step. Raises: OSError."""
    return control.connect(directory, control.STREAM)


def _as_a_guest(directory: str) -> socket.socket:
    """Come as one more. Raises: OSError."""
    connection = control.connect(directory, control.CONTROL)
    connection.sendall(control.encode_order(control.Guest()))
    return connection


async def _connected(
    directory: str, enter: Callable[[str], socket.socket], patience_s: float
) -> socket.socket:
    """Connect to the supervisor in this directory, which may have been forked a moment ago.

    Raises: OSError when it does not come to listen.
    """
    loop = asyncio.get_running_loop()
    until_s = loop.time() + patience_s
    pause_s = FIRST_LOOK_S
    while True:
        try:
            connection = await loop.run_in_executor(None, enter, directory)
        except (FileNotFoundError, ConnectionRefusedError):
            if loop.time() >= until_s:
                raise
        else:
            connection.setblocking(False)
            return connection
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.5, LOOK_S)


class _Side:
    """Owner of one of two streams that are joined."""

    def __init__(
        self, *, cluster_id: bytes, tls: TlsSide | None = None, taken: Stream | None = None
    ) -> None:
        """Own a stream that was taken over, or a new one that is to be dialled."""
        self.stream = Stream(self, LIMIT, tls=tls) if taken is None else taken
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Set when a dialled stream has shown that its host is of the cluster."""
        self.early: list[bytes] = []
        """What came before it was joined."""
        self._cluster_id = cluster_id
        self._other: _Side | None = None
        if taken is not None:
            taken.owner = self
            taken.decoder.limit = LIMIT
            taken.decoder.is_wary = False
            taken.pause_reading()

    def join(self, far: _Side) -> None:
        """Pass everything on from now on, both ways."""
        self._other, far._other = far, self
        if self.stream.closing:
            far.stream.close(linger_s=JOINED_LINGER_S)
            return
        for message in self.early:
            far.stream.send(message)
        for message in far.early:
            self.stream.send(message)
        self.stream.resume_reading()

    def refuse(self, code: str, text: str) -> None:
        """Say why there is no stream, and end it."""
        LOG.info("a stream is refused: %s", text)
        self.stream.close(encode_stream(StreamRefused(code, text)))

    # -- owner of the stream

    def opened(self, stream: Stream) -> None:
        """Check whom the certificate names."""
        if stream.tls is not None:
            names = stream.tls.names()
            host = parse_host_name(names[0]) if len(names) == 1 else None
            if host is None or host.cluster_id != self._cluster_id:
                self.faulted(stream, "its certificate is of no host of this cluster")
                return
        if not self.ready.done():
            self.ready.set_result(None)

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Pass messages on; read no more while the other side takes none."""
        if self._other is None:
            self.early += messages
            return
        other = self._other.stream
        for message in messages:
            other.send(message)
        if other.is_stuck or other.queued_bytes > QUEUED_BYTES_MAX:
            other.tell_when_drained = True
            stream.pause_reading()

    def faulted(self, stream: Stream, sentence: str) -> None:
        """End both: what came is no stream."""
        if not self.ready.done():
            self.ready.set_exception(PeerFault(sentence))
            self.ready.exception()
        stream.close()
        if self._other is not None:
            self._other.stream.close(encode_stream(StreamRefused("protocol", sentence)))

    def drained(self, stream: Stream) -> None:
        """Read the other side again."""
        if self._other is not None:
            self._other.stream.resume_reading()

    def closed(self, stream: Stream) -> None:
        """End the other side once it has what came before."""
        if not self.ready.done():
            self.ready.set_exception(PeerFault("the connection ended"))
            self.ready.exception()
        if self._other is not None:
            self._other.stream.close(linger_s=JOINED_LINGER_S)
