"""The transport between replicas: two connections to each peer, under mutual TLS.

    bulk         entries, snapshots, repairs; at most 512 KiB unsent a peer, the rest is dropped
    heartbeat    what an election hangs on; never behind a large message

Messages are opaque here but for their sender, which must be the peer they come from; the peer is
proven by certificate, hello and membership. Each kind has a codec, and `route` says which kind and
lane a message is. Any message may be dropped; Raft asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from spur.client.tls import TlsFiles, client_context, server_context, show_certificate
from spur.controller.peers import (
    NOT_YET,
    Addressed,
    Handshake,
    Link,
    NetSettings,
    PeerAddress,
    PeerCodec,
    PeerNetwork,
)
from spur.server.once import Once
from spur.values.errors import OperatorFault
from spur.wire.hello import NO_NEWCOMERS, Lane, PeerIdentity

__all__ = ["NetSettings", "PeerAddress", "PeerCodec", "PeerNet"]

M = TypeVar("M", bound=Addressed)


class PeerNet(Generic[M]):
    """Carries messages to the other members and hands on theirs."""

    def __init__(
        self,
        me: PeerIdentity,
        *,
        codecs: Mapping[int, PeerCodec[M]],
        route: Callable[[M], tuple[int, Lane]],
        on_messages: Callable[[int, Sequence[M]], None],
        report: Callable[[int, str], None],
        tls: TlsFiles | None,
        insecure: bool = False,
        settings: NetSettings | None = None,
        newest_id: Callable[[], int] = lambda: NO_NEWCOMERS,
        removed: Callable[[int], None] = lambda peer: None,
    ) -> None:
        """Prepare; nothing is opened before `start`.

        `report(peer, sentence)` is called when what is known of a peer changes, not at each
        retry; peer 0 is a caller that was refused. `insecure` is for benchmarks: no TLS, and
        whoever reaches the port is believed. `newest_id` tells the highest id that this replica's
        log knows of: who has a higher one is taken on its certificate. `removed(peer)` is called
        when a peer says that this replica was removed.

        Raises: OperatorFault when TLS files cannot be used, or are absent without `insecure`.
        """
        self._network = PeerNetwork(me, settings or NetSettings(), codecs, on_messages)
        self._network.newest_id = newest_id
        self._network.removed = removed
        self._network.changed = self._changed
        self._network.full = self._full
        self._route = route
        self._report = report
        self._reported: dict[int, str] = {}
        self._strangers = Once(lambda sentence: report(0, sentence))
        self._members: dict[int, PeerAddress] = {}
        self._server: asyncio.Server | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._watch_s = 0.0
        self._tls = tls
        if tls is not None:
            self._network.server_tls = server_context(tls)
            self._network.client_tls = client_context(tls)
        elif not insecure:
            raise OperatorFault("replicas speak TLS; name the files of this host's certificate")

    @property
    def dropped(self) -> Mapping[int, int]:
        """Messages that were not sent since the start, by peer."""
        return self._network.dropped

    def is_connected(self, peer: int) -> bool:
        """Return whether both lanes to a peer are up."""
        links = self._network.links
        return all((peer, lane) in links and not links[peer, lane].status for lane in Lane)

    @property
    def port(self) -> int:
        """The port it listens on, for one that was started with port 0."""
        if self._server is None:
            raise ValueError("not started; a transport that listens has a port")
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str, port: int) -> None:
        """Listen for peers. Raises: OperatorFault when the address cannot be used."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._accept, host, port)
        except OSError as error:
            raise OperatorFault(f"cannot listen for replicas on {host}:{port}: {error}") from error
        self._watch_s = loop.time()
        self._watch = loop.call_later(self._network.settings.keepalive_s, self._watch_links)

    def set_members(self, members: Mapping[int, PeerAddress]) -> None:
        """Speak with these replicas from now on, this one left out, and with no others.

        But with those that dialled and may have been added since: see `newest_id`.
        """
        network = self._network
        former, self._members = self._members, dict(members)
        self._members.pop(network.me.node_id, None)
        network.disk_ids = {peer: member.disk_id for peer, member in self._members.items()}
        for (peer, lane), link in tuple(network.links.items()):
            member = self._members.get(peer)
            if member is None and peer > network.newest_id():
                continue
            if member is None:
                network.links.pop((peer, lane)).dismiss()
                self._reported.pop(peer, None)
            elif link.address is None and link.disk_id == member.disk_id:
                link.address = member.address
            elif former.get(peer) != member:
                network.links.pop((peer, lane)).close()
                self._reported.pop(peer, None)
        for peer, member in self._members.items():
            for lane in Lane:
                if (peer, lane) not in network.links:
                    link = Link(network, peer, lane, member.address)
                    network.links[peer, lane] = link
                    if network.me.node_id > peer:
                        link.dial()

    def send(self, to: int, messages: Sequence[M]) -> None:
        """Send messages in their order, one frame a kind and lane; drop what can't be sent now.

        A sender gathers what one turn of the loop has for a peer and calls this once.
        """
        groups: dict[tuple[int, Lane], list[M]] = {}
        for message in messages:
            groups.setdefault(self._route(message), []).append(message)
        for (kind, lane), group in groups.items():
            link = self._network.links.get((to, lane))
            if link is not None:
                link.send(kind, group)

    def show_certificate(self) -> None:
        """Show the certificate that is on disk now, on connections made from now on.

        Raises: OperatorFault when it cannot be used.
        """
        if self._tls is not None:
            for context in (self._network.server_tls, self._network.client_tls):
                if context is not None:
                    show_certificate(context, self._tls)

    async def close(self) -> None:
        """End every connection and stop listening."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._server is not None:
            self._server.close()
        network = self._network
        tasks = [link.close() for link in network.links.values()]
        network.links.clear()
        for handshake in tuple(network.handshakes):
            handshake.fail("this replica stops")
        diallers = [task for task in tasks if task is not None]
        await asyncio.gather(*diallers, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    # -- inside

    def _accept(self) -> asyncio.BaseProtocol:
        network = self._network
        handshake = Handshake(network, None)
        stream = handshake.make_stream()
        if len(network.handshakes) > network.settings.incoming_max:
            handshake.fail("too many connections wait for their hello")
        loop = asyncio.get_running_loop()
        sentence = f"no hello within {network.settings.hello_s:g} s"
        timer = loop.call_later(network.settings.hello_s, handshake.fail, sentence)
        handshake.outcome.add_done_callback(lambda outcome: timer.cancel())
        handshake.outcome.add_done_callback(
            lambda outcome: self._judged(handshake.remote_host, outcome.result())
        )
        return stream

    def _judged(self, host: str, sentence: str) -> None:
        """Report a refused caller once for each change of the reason."""
        if not sentence:
            self._strangers.forget(host)
        elif self._watch is not None and host:
            self._strangers.report(host, f"a caller from {host} was refused: {sentence}")

    def _changed(self, peer: int) -> None:
        """Report a peer when the summary of its two lanes changes."""
        links = self._network.links
        lanes = [links[peer, lane].status for lane in Lane if (peer, lane) in links]
        problem = next((status for status in lanes if status), "")
        if not lanes or problem in {NOT_YET, self._reported.get(peer)}:
            return
        self._reported[peer] = problem
        member = self._members.get(peer)
        who = f"replica {peer}" if member is None else f"replica {peer} at {member.address}"
        self._report(peer, f"{who}: {problem}" if problem else f"{who} is connected")

    def _full(self, peer: int, lane: Lane) -> None:
        name = lane.name.lower()
        self._report(peer, f"replica {peer} reads too slowly: its {name} lane drops messages")

    def _watch_links(self) -> None:
        loop = asyncio.get_running_loop()
        period_s = self._network.settings.keepalive_s
        passed_s = loop.time() - self._watch_s
        self._watch_s = loop.time()
        self._watch = loop.call_later(period_s, self._watch_links)
        # When this process itself stood still, what its peers sent in the meantime is not read
        # yet; their silence is then no news.
        stood_still = passed_s > 2 * period_s
        for link in tuple(self._network.links.values()):
            link.watch(0.0 if stood_still else passed_s)
