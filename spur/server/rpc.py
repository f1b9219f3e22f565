"""The RPC server: calls over a Unix socket and over TLS, and who makes them.

    Unix socket    the kernel says which user is calling; the host is this controller
    TLS            the certificate names the host and its role; a call may say for whom it speaks

What a host may say is judged in decide, which knows the state (LOG-CONTRACT 6.1). Here is only
what needs no state: other clusters' certificates are refused, and on this host only root speaks
for others.

A connection has a bounded number of calls and bytes in flight; beyond that it is not read, so a
client that asks faster than it is answered is slowed and nobody else is. One that does not read its
answers is cut.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from spur.client.stream import LINGER_S, Stream
from spur.client.tls import TlsFiles, TlsSide, server_context, show_certificate
from spur.server.once import Once
from spur.server.sessions import Handler, Opening, RpcLimits, Session, Sessions
from spur.values.errors import OperatorFault
from spur.wire.calls import Goodbye, encode

__all__ = ["RpcLimits", "RpcServer"]

_BACKLOG = 1024
"""Connections that the kernel holds for us while the loop is busy."""

_SPARE = 64
"""Connections over the limit that live until they have been told so; others are just ended."""


class RpcServer:
    """Listens for calls and gives them to a handler."""

    def __init__(
        self,
        *,
        cluster_id: bytes,
        replica: int,
        handler: Handler,
        position: Callable[[], tuple[int, int]],
        report: Callable[[str], None],
        limits: RpcLimits | None = None,
        opening: Opening | None = None,
        is_member: Callable[[int], bool] = lambda number: True,
    ) -> None:
        """Prepare; nothing is opened before `start_unix` or `start_tls`.

        `handler(call, actor, respond)` may respond at once or later, once, from the loop.
        `position()` is (incarnation, committed index). `report` hears why callers were refused,
        once for each source and reason. `opening` may take streams that begin with no greeting.
        `is_member` tells which controllers may still speak as such.
        """
        self._sessions = Sessions(
            cluster_id=cluster_id,
            replica=replica,
            handler=handler,
            position=position,
            once=Once(report),
            limits=limits or RpcLimits(),
            opening=opening,
            is_member=is_member,
        )
        self._servers: list[asyncio.Server] = []
        self._contexts: list[tuple[ssl.SSLContext, TlsFiles]] = []
        self._unix_path = ""
        self._sweeper: asyncio.TimerHandle | None = None

    async def start_unix(self, path: str) -> None:
        """Listen on a Unix socket that every user of this host may use.

        Raises: OperatorFault when another process listens there, or it cannot be made.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.connect(path)
            raise OperatorFault(f"{path}: another process listens on this socket already")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)
            listener.bind(path)
            os.chmod(path, 0o666)
        except OSError as error:
            listener.close()
            raise OperatorFault(f"{path}: cannot listen on this socket: {error}") from error
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(
            lambda: self._accept(None), sock=listener, backlog=_BACKLOG
        )
        self._unix_path = path
        self._add(server)

    async def start_tls(
        self, host: str, port: int, files: TlsFiles, *, strangers: bool = False
    ) -> None:
        """Listen for hosts of this cluster.

        With `strangers`, whoever shows no certificate may bring what `opening` takes, and nothing
        else.

        Raises: OperatorFault when the files or the address cannot be used.
        """
        context = server_context(files, strangers=strangers)
        self._contexts.append((context, files))
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: self._accept(context), host, port, backlog=_BACKLOG
            )
        except OSError as error:
            raise OperatorFault(f"cannot listen for calls on {host}:{port}: {error}") from error
        self._add(server)

    def show_certificates(self) -> None:
        """Show the certificates that are on disk now, on connections made from now on.

        Raises: OperatorFault when a file cannot be used.
        """
        for context, files in self._contexts:
            show_certificate(context, files)

    @property
    def port(self) -> int:
        """The TLS port, for a server that was started with port 0."""
        for server in self._servers:
            for listener in server.sockets:
                if listener.family != socket.AF_UNIX:
                    return int(listener.getsockname()[1])
        raise ValueError("not started on a port; `start_tls` gives it one")

    async def close(self) -> None:
        """Stop listening and say goodbye to everyone; what is unanswered stays so."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for server in self._servers:
            server.close()
        if self._unix_path:
            with suppress(FileNotFoundError):
                os.unlink(self._unix_path)
        ended = asyncio.Event()
        self._sessions.emptied = ended.set
        last = encode(Goodbye(code="ask-again", text="this daemon stops"))
        for session in tuple(self._sessions.open):
            session.stream.close(last)
        if self._sessions.open:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await ended.wait()
        for session in tuple(self._sessions.open):
            session.stream.abort()
        for server in self._servers:
            await server.wait_closed()

    # -- inside

    def _add(self, server: asyncio.Server) -> None:
        self._servers.append(server)
        if self._sweeper is None:
            self._sweep()

    def _accept(self, context: ssl.SSLContext | None) -> Stream:
        tls = TlsSide(context, server_side=True) if context is not None else None
        session = Session(self._sessions, tls=tls)
        if len(self._sessions.open) > self._sessions.limits.connections_max + _SPARE:
            session.stream.abort()
        return session.stream

    def _sweep(self) -> None:
        period_s = self._sessions.limits.sweep_s
        self._sweeper = asyncio.get_running_loop().call_later(period_s, self._sweep)
        self._sessions.sweep(period_s)
