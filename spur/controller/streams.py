"""The front's side of a child's channel: committed entries out, calls and answers in.

Nothing is kept for a child: what it has not taken yet is read from memory, or from the ledger in a
thread, when its socket has room. A slow child is behind and costs nothing.
Source: LOG-CONTRACT 8.1.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from spur.client.stream import Stream
from spur.controller.services import HistoryDone
from spur.events.envelope import Actor, Entry
from spur.values.errors import PeerFault
from spur.wire.calls import Call, Refused, Reply
from spur.wire.followers import (
    CHANNEL_LIMIT,
    ENTRIES_BYTES,
    ChildCall,
    ChildReply,
    Cycled,
    Entries,
    Follow,
    Foresaw,
    HistoryAnswer,
    HistoryAsk,
    Reached,
    Restart,
    Role,
    decode_from_child,
    encode_channel,
)
from spur.wire.jobs import StartView

__all__ = ["ChildStream", "FollowedFront", "ReadEntries"]

UNSENT_BYTES_MAX = 2 << 20
"""Bytes that wait for the child's socket; nothing more is read for it before they are gone."""

SCHEDULER = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="scheduler")
"""The actor of what a child asks."""

ReadEntries = Callable[[int, int, Callable[[Sequence[Entry]], None]], None]
"""Reads committed entries from an index on, up to some bytes: at once or later; none when they are
not here any more."""


class FollowedFront(Protocol):
    """What a stream needs of the front that it follows."""

    @property
    def commit(self) -> int: ...

    @property
    def incarnation(self) -> int: ...

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None: ...

    def cycled(self, cycle: Cycled) -> None: ...

    def foresaw(self, starts: tuple[StartView, ...]) -> None: ...


class ChildStream:
    """Owner of one channel's stream."""

    def __init__(
        self,
        name: str,
        front: FollowedFront,
        read: ReadEntries,
        report: Callable[[str], None],
    ) -> None:
        self.name = name
        self.reached = 0
        """Up to where the child has taken everything in, as it said last."""
        self.ended = asyncio.Event()
        """Set when the channel is gone."""
        self._front = front
        self._read = read
        self._report = report
        self._stream = Stream(self, CHANNEL_LIMIT)
        self._sent_entries = self._sent_bytes = 0
        self._next = 0
        """The entry to be sent next; 0 before the child said how far it is."""
        self._reading = False
        self._pumping = False
        self._role = Role(leads=False, term=0)
        self._role_after = 0
        """The role is told behind this entry."""
        self._told = Role(leads=False, term=0)
        self._asked: dict[int, HistoryDone] = {}
        self._number = 0

    async def open(self, channel: socket.socket) -> None:
        """Begin to speak over the front's end of the channel."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self._stream, sock=channel)

    def close(self) -> None:
        """End the channel, and with it the child."""
        self._stream.abort()

    @property
    def lag_bytes(self) -> int:
        """How much of the log the child has not taken in, were all of it like what it was sent."""
        if not self._sent_entries:
            return 0
        entries = max(0, self._front.commit - self.reached)
        return entries * self._sent_bytes // self._sent_entries

    # -- what the front says
    def committed(self) -> None:
        """More is committed: send what the child can take."""
        self._pump()

    def role(self, role: Role) -> None:
        """Tell whether this controller leads; a lead only behind what is committed now."""
        self._role, self._role_after = role, self._front.commit if role.leads else 0
        self._pump()

    def ask_history(self, request: bytes, at_least: int, done: HistoryDone) -> int:
        """Ask the child a query; `done` is called once. Returns the question's number."""
        self._number += 1
        self._asked[self._number] = done
        self._stream.send(encode_channel(HistoryAsk(self._number, request, at_least)))
        return self._number

    def forget(self, number: int) -> None:
        """Wait for the answer to a question no longer."""
        self._asked.pop(number, None)

    # -- owner of the stream
    def opened(self, stream: Stream) -> None:
        """Hear that the channel is open."""

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Take what the child says."""
        for data in messages:
            try:
                message = decode_from_child(data)
            except PeerFault as fault:
                self.faulted(stream, str(fault))
                return
            if isinstance(message, Follow):
                self._begin(message)
            elif isinstance(message, ChildCall):
                self._call(message)
            elif isinstance(message, HistoryAnswer):
                done = self._asked.pop(message.number, None)
                if done is not None:
                    done(message.outcome, message.warning)
            elif isinstance(message, Reached):
                self.reached = message.index
            elif isinstance(message, Cycled):
                self._front.cycled(message)
            elif isinstance(message, Foresaw):
                self._front.foresaw(message.starts)

    def faulted(self, stream: Stream, sentence: str) -> None:
        """The child is of the same release: what it says can always be read."""
        self._report(f"the {self.name} was ended: {sentence}")
        stream.abort()

    def drained(self, stream: Stream) -> None:
        """Send more."""
        self._pump()

    def closed(self, stream: Stream) -> None:
        """Hear that the child is gone; questions to it are refused."""
        self.ended.set()
        asked, self._asked = self._asked, {}
        for done in asked.values():
            done(Refused("history-behind", f"the {self.name} ended"), "")

    # -- inside
    def _begin(self, follow: Follow) -> None:
        # It may be ahead of a front that was started again: what it has is committed, and comes.
        # The beginning is the same in every incarnation.
        now = self._front.incarnation
        if follow.index and follow.incarnation < now:
            self._restart(f"it is of incarnation {follow.incarnation}, and the cluster of {now}")
            return
        self._next = follow.index + 1
        self.reached = follow.index
        self._pump()

    def _restart(self, why: str) -> None:
        self._report(f"the {self.name} begins anew: {why}")
        self._next = 0
        self._stream.close(encode_channel(Restart(why)))

    def _call(self, call: ChildCall) -> None:
        def respond(reply: Reply) -> None:
            self._stream.send(encode_channel(ChildReply(call.number, reply.index, reply.outcome)))

        asked = Call(call.number, b"", self._front.commit, 0, 0, None, call.request)
        self._front.submit(asked, SCHEDULER, respond)

    def _pump(self) -> None:
        """Send entries while the socket takes them; never more than a message of them waits."""
        stream = self._stream
        while self._next and not self._reading and not stream.closing:
            self._tell_role()
            if self._next > self._front.commit:
                return
            if stream.is_stuck or stream.unsent_bytes > UNSENT_BYTES_MAX:
                stream.tell_when_drained = True
                return
            self._reading = self._pumping = True
            self._read(self._next, ENTRIES_BYTES, self._send)
            self._pumping = False

    def _send(self, entries: Sequence[Entry]) -> None:
        """Take entries that were read: within `_pump`, or later from a thread."""
        self._reading = False
        self._send_entries(entries)
        if not self._pumping:
            self._pump()

    def _send_entries(self, entries: Sequence[Entry]) -> None:
        if self._stream.closing or not self._next:
            return
        if not entries:
            self._restart(f"entry {self._next} is not here any more")
            return
        streamed = tuple((each.index, each.term, each.kind, each.body) for each in entries)
        self._stream.send(encode_channel(Entries(streamed, self._front.commit)))
        self._next = entries[-1].index + 1
        self._sent_entries += len(entries)
        self._sent_bytes += sum(len(each.body) for each in entries)

    def _tell_role(self) -> None:
        if self._role != self._told and self._next > self._role_after:
            self._told = self._role
            self._stream.send(encode_channel(self._role))
