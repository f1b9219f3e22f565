"""The asynchronous client: typed calls to a cluster, whichever replica leads it.

    async with Client(["unix:/run/spur/spurctld.sock"]) as client:
        answer = await client.ask(SubmitJob(...), JobAccepted)

An answer is a struct or a `Rejection`; faults are raised. Requests of one client share a
connection and may be in flight together.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

from spur.client.address import Address, TcpAddress, parse_address
from spur.client.connection import Connection, Lost
from spur.client.pursuit import Cluster, Pursuit
from spur.client.tls import TlsFiles, client_context, show_certificate
from spur.values.errors import Rejection
from spur.wire.calls import REQUEST_ID_SIZE, Answered, Call, Refused, Reply
from spur.wire.declare import Answer, Done, Request, decode_as, encode_request

__all__ = ["Client"]

A = TypeVar("A", bound=Answer)

CONNECT_S = 1.0
"""From dialling to the welcome."""

ATTEMPT_S = 2.0
"""How long one replica may be silent before another one is asked."""

SILENCE_S = 0.2
"""After so long without a word a replica is probed; after as long again another one is asked. A
leader that hangs, or whose cable is cut, is left in less time than it takes to elect another."""

LOOK_S = 0.01
"""Between two looks whether a call that is passed on was taken after all."""


class Client:
    """Speaks with the leader of one cluster."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        tls: TlsFiles | None = None,
        cluster_id: bytes = b"",
        deadline_s: float = 30.0,
        attempt_s: float = ATTEMPT_S,
    ) -> None:
        """Prepare; the first call connects.

        Raises: ValueError for an address that is none; OperatorFault when TLS files cannot be used.
        """
        self._tls = tls
        self._context = client_context(tls) if tls is not None else None
        self._cluster = Cluster(
            [parse_address(text) for text in addresses],
            cluster_id=cluster_id,
            has_tls=tls is not None,
        )
        self._deadline_s = deadline_s
        self._attempt_s = attempt_s
        self._closed = False
        self._connections: dict[Address, Connection] = {}
        self._dialling: dict[Address, asyncio.Task[Connection]] = {}

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def position(self) -> tuple[int, int]:
        """The highest (incarnation, index) that an answer has shown."""
        return self._cluster.incarnation, self._cluster.index

    async def do(
        self, request: Request, *, speaks_for: tuple[int, int] | None = None
    ) -> Done | Rejection:
        """Have a request carried out that has no other answer. Raises: as `ask`."""
        return await self.ask(request, Done, speaks_for=speaks_for)

    async def ask(
        self,
        request: Request,
        expected: type[A],
        *,
        speaks_for: tuple[int, int] | None = None,
        request_id: bytes | None = None,
        since: int | None = None,
        deadline_s: float | None = None,
        attempt_s: float | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> A | Rejection:
        """Return the answer to a request, asking until it is known or the deadline passes.

        `request_id` and `since` are those of an `OutcomeUnknown`, to go on where it stopped.
        `attempt_s` is the patience with one replica, for what it answers late on purpose.
        With `warn`, an answer that no quorum of controllers stands behind is taken as well, and
        `warn` is told how old it may be; without it such an answer is asked for again.

        Raises: Unreachable when no replica was asked; OutcomeUnknown when the request was sent and
        its outcome is not known; PeerFault for an answer of another kind.
        """
        pursuit = Pursuit(
            self._cluster,
            encode_request(request),
            request_id or os.urandom(REQUEST_ID_SIZE),
            since=since,
            speaks_for=speaks_for,
            warn=warn,
        )
        outcome = await self._outcome(pursuit, deadline_s, attempt_s)
        if isinstance(outcome, Rejection):
            return outcome
        return decode_as(outcome.answer, expected)

    async def forward(
        self, call: Call, *, speaks_for: tuple[int, int], unsent_s: float, deadline_s: float
    ) -> Reply:
        """Return the reply to somebody else's call, for whom this host speaks.

        The call's id and `since` are kept, and nobody is shown less than they have seen. An answer
        that no quorum stands behind is passed on with its warning. A call that nobody has taken
        after `unsent_s` is given up, so that whoever asked can say so. Raises: as `ask`.
        """
        warnings: list[str] = []
        pursuit = Pursuit(
            self._cluster,
            call.request,
            call.request_id,
            since=call.since,
            speaks_for=speaks_for,
            seen=(call.incarnation, call.at_least),
            warn=warnings.append,
        )
        loop = asyncio.get_running_loop()
        pursued = loop.create_task(self._outcome(pursuit, deadline_s, None))
        try:
            await asyncio.wait((pursued,), timeout=unsent_s)
            # At this moment somebody may be about to refuse it; one who took it says nothing soon.
            while not pursued.done():
                if not pursuit.is_open:
                    raise pursuit.give_up(unsent_s)
                await asyncio.wait((pursued,), timeout=LOOK_S)
            judged = await pursued
        finally:
            pursued.cancel()
        outcome: Answered | Refused
        if isinstance(judged, Rejection):
            outcome = Refused(code=judged.code, text=judged.text, hint=judged.hint)
        else:
            outcome = judged
        incarnation, index = self.position
        return Reply(
            number=call.number,
            incarnation=incarnation,
            index=index,
            outcome=outcome,
            warning=warnings[-1] if warnings else "",
        )

    def know(self, addresses: Sequence[str]) -> None:
        """Take other addresses in place of those that are known; connections go on.

        Raises: as the constructor.
        """
        self._cluster.know([parse_address(text) for text in addresses])

    def show_certificate(self) -> None:
        """Show the certificate that is on disk now, on connections made from now on.

        Raises: OperatorFault when it cannot be used.
        """
        if self._context is not None and self._tls is not None:
            show_certificate(self._context, self._tls)

    async def close(self) -> None:
        """End all connections; whoever still waits gets the fault of a passed deadline."""
        self._closed = True
        diallers = list(self._dialling.values())
        for task in diallers:
            task.cancel()
        await asyncio.gather(*diallers, return_exceptions=True)
        for connection in self._connections.values():
            connection.end("this client was closed")
            connection.stream.abort()
        self._connections.clear()
        await asyncio.sleep(0)

    # -- inside

    async def _outcome(
        self, pursuit: Pursuit, deadline_s: float | None, attempt_s: float | None
    ) -> Answered | Rejection:
        refused = pursuit.too_long()
        if refused is not None:
            return refused
        wait_s = self._deadline_s if deadline_s is None else deadline_s
        try:
            async with asyncio.timeout(wait_s):
                return await self._pursue(pursuit, attempt_s)
        except TimeoutError:
            raise pursuit.give_up(wait_s) from None

    async def _pursue(self, pursuit: Pursuit, attempt_s: float | None) -> Answered | Rejection:
        """Try until there is an outcome; the caller's deadline ends it."""
        started_s = asyncio.get_running_loop().time()
        while True:
            address = pursuit.address()
            try:
                reply = await self._try(address, pursuit, attempt_s)
            except Lost as lost:
                pursuit.lost(address, lost.sentence, lost.goodbye)
                if self._closed or pursuit.is_hopeless():
                    raise pursuit.give_up(asyncio.get_running_loop().time() - started_s) from lost
            else:
                outcome = pursuit.judge(address, reply)
                if outcome is not None:
                    return outcome
            if pursuit.pause_s:
                await asyncio.sleep(pursuit.pause_s)

    async def _try(self, address: Address, pursuit: Pursuit, attempt_s: float | None) -> Reply:
        """Ask one replica once. Raises: Lost."""
        connection = await self._connection(address)
        heard = connection.heard
        # What is answered late on purpose has a patience of its own, and a socket of this host is
        # not lost without a word.
        is_watched = attempt_s is None and isinstance(address, TcpAddress)
        patience_s = attempt_s or self._attempt_s
        try:
            async with asyncio.timeout(patience_s):
                if is_watched:
                    return await self._watched(connection, pursuit)
                return await connection.ask(pursuit.call)
        except TimeoutError:
            sentence = f"no reply within {patience_s:g} s"
            if connection.heard == heard:
                connection.end(sentence)
            raise Lost(sentence) from None

    async def _watched(self, connection: Connection, pursuit: Pursuit) -> Reply:
        """Ask, and see that the replica gives signs of life meanwhile. Raises: Lost."""
        asking = asyncio.get_running_loop().create_task(connection.ask(pursuit.call))
        try:
            heard, is_probed = connection.heard, False
            while True:
                done, _ = await asyncio.wait((asking,), timeout=SILENCE_S)
                if done:
                    return asking.result()
                if connection.heard != heard:
                    heard, is_probed = connection.heard, False
                elif is_probed:
                    raise Lost(f"no sign of life within {2 * SILENCE_S:g} s")
                else:
                    connection.probe()
                    is_probed = True
        finally:
            asking.cancel()

    async def _connection(self, address: Address) -> Connection:
        """Return the connection to a replica; those who want it together dial it once."""
        connection = self._connections.get(address)
        if connection is not None and not connection.is_lost:
            return connection
        task = self._dialling.get(address)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._dial(address))
            self._dialling[address] = task
            task.add_done_callback(lambda done: self._dialling.pop(address, None))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _dial(self, address: Address) -> Connection:
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await Connection.open(address, self._cluster, self._context)
        except TimeoutError:
            raise Lost(f"no answer within {CONNECT_S:g} s") from None
        self._connections[address] = connection
        return connection
