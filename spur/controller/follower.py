"""The child's side of its channel to the front: following the log, asking, and answering.

    follower = Follower(directory, channel, on_entries=woken)
    why = await follower.run()          # until the front ends, or says to begin anew

`FrontLink` carries the messages and knows no state; `Follower` keeps a state on it. A process
that follows is run by `run_child`, and ends with the front. Source: LOG-CONTRACT 8.1.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from spur.client.stream import Stream
from spur.consensus.disk import Disk, OsDisk
from spur.consensus.faults import SnapshotDamaged
from spur.consensus.genesis import Genesis, load_genesis
from spur.consensus.snapshots import SnapshotStore
from spur.events.envelope import Entry
from spur.projections.apply import follow
from spur.projections.snapshot import load
from spur.projections.state import State, new_state
from spur.server.process import die_with_parent, run_daemon, tune_interpreter
from spur.values.errors import InvariantBroken, PeerFault, Rejection
from spur.wire.calls import Answered, Refused
from spur.wire.declare import Answer, Request, encode_request
from spur.wire.followers import (
    CHANNEL_LIMIT,
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
    decode_from_front,
    encode_channel,
)
from spur.wire.jobs import StartView
from spur.wire.registry import decode_answer

__all__ = ["EXIT_ANEW", "Follower", "FrontLink", "load_state", "run_child"]

EXIT_ANEW = 3
"""Exit status of a child that was told to begin anew: it is started again at once."""

A = TypeVar("A", bound=Answer)

LOG = logging.getLogger("spurctld")


class FrontLink:
    """The channel as the child sees it: one owner of one stream."""

    def __init__(
        self,
        channel: int,
        *,
        on_entries: Callable[[Sequence[Entry], int], None],
        on_role: Callable[[Role], None] | None = None,
        on_history: Callable[[HistoryAsk], None] | None = None,
    ) -> None:
        """Take the channel with this file descriptor; nothing is read before `open`.

        `on_entries(entries, commit)` gets committed entries, each once and in order, and how far
        the front is. While a callback runs nothing more is read, and the front waits.
        """
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when nothing more will come: with a sentence when the child is to begin anew, or
        with nothing when the front ended."""
        self._socket = socket.socket(fileno=channel)
        self._stream = Stream(self, CHANNEL_LIMIT)
        self._on_entries = on_entries
        self._on_role = on_role or _pass_over
        self._on_history = on_history or self._refuse_history
        self._calls: dict[int, asyncio.Future[ChildReply]] = {}
        self._number = 0

    async def open(self, incarnation: int, index: int) -> None:
        """Begin to follow behind this position."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self._stream, sock=self._socket)
        self._stream.send(encode_channel(Follow(incarnation, index)))

    async def call(self, request: Request) -> ChildReply:
        """Return the outcome of a request that is made in the cluster's own name.

        Raises: ConnectionError when the front ended first; the outcome is then not known.
        """
        self._number += 1
        number = self._number
        future: asyncio.Future[ChildReply] = asyncio.get_running_loop().create_future()
        if self.ended.done():
            raise ConnectionError("the front has ended")
        self._calls[number] = future
        self._stream.send(encode_channel(ChildCall(number, encode_request(request))))
        return await future

    def reached(self, index: int) -> None:
        """Say that everything up to this entry was taken in."""
        self._stream.send(encode_channel(Reached(index)))

    def cycled(self, cycle: Cycled) -> None:
        """Say what a plan took."""
        self._stream.send(encode_channel(cycle))

    def foresaw(self, starts: tuple[StartView, ...]) -> None:
        """Say when and where waiting jobs would start, in place of what was said before."""
        self._stream.send(encode_channel(Foresaw(starts)))

    def answer_history(self, answer: HistoryAnswer) -> None:
        """Answer one `HistoryAsk`."""
        self._stream.send(encode_channel(answer))

    def close(self) -> None:
        """End the channel; the front starts the child anew."""
        self._stream.abort()

    # -- owner of the stream
    def opened(self, stream: Stream) -> None:
        """Hear that the channel is open."""

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Take what the front says."""
        for data in messages:
            try:
                self._take(data)
            except PeerFault as fault:
                self.faulted(stream, str(fault))
                return
            except Exception as error:
                self._end(error)
                return

    def faulted(self, stream: Stream, sentence: str) -> None:
        """The front is of the same release: what it says can always be read."""
        self._end(InvariantBroken(f"the front sent what can't be read: {sentence}"))

    def drained(self, stream: Stream) -> None:
        """Hear that the socket took what was queued."""

    def closed(self, stream: Stream) -> None:
        """Hear that the front is gone."""
        self._end("")

    # -- inside
    def _take(self, data: bytes) -> None:
        message = decode_from_front(data)
        if isinstance(message, Entries):
            entries = [Entry(*each) for each in message.entries]
            self._on_entries(entries, message.commit)
        elif isinstance(message, Role):
            self._on_role(message)
        elif isinstance(message, ChildReply):
            waiting = self._calls.pop(message.number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif isinstance(message, HistoryAsk):
            self._on_history(message)
        elif isinstance(message, Restart):
            self._end(message.why)

    def _refuse_history(self, ask: HistoryAsk) -> None:
        refused = Refused("fault", "this process keeps no history; nothing was done")
        self.answer_history(HistoryAnswer(ask.number, refused))

    def _end(self, why: str | BaseException) -> None:
        if not self.ended.done():
            if isinstance(why, BaseException):
                self.ended.set_exception(why)
            else:
                self.ended.set_result(why)
        calls, self._calls = self._calls, {}
        for future in calls.values():
            if not future.done():
                future.set_exception(ConnectionError("the front has ended"))
        self._stream.abort()


class Follower:
    """A state that follows the front's log, and a way to ask the front."""

    def __init__(
        self,
        directory: Path,
        channel: int,
        *,
        on_entries: Callable[[], None] | None = None,
        on_role: Callable[[], None] | None = None,
        on_history: Callable[[HistoryAsk], None] | None = None,
    ) -> None:
        """Load the newest snapshot of a controller's directory, which is only read; blocks.

        `on_entries()` is called after each batch that `state` took in, `on_role()` when `leads`
        may have changed.
        """
        disk = OsDisk(str(directory))
        self.state: State = load_state(disk, load_genesis(disk))
        """Only this class moves it on."""
        self.commit = self.state.index
        """How far the front is, as last heard."""
        self.leads = False
        """Whether this controller leads and may be asked to decide."""
        self.term = 0
        self.link = FrontLink(
            channel, on_entries=self._follow, on_role=self._role, on_history=on_history
        )
        self._after_entries = on_entries or _do_nothing
        self._after_role = on_role or _do_nothing
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def run(self) -> str:
        """Follow until the front ends; return nothing, or why to begin anew.

        Raises: ApplyFailed, UnreadableRecord, InvariantBroken when the log can't be followed.
        """
        await self.link.open(self.state.cluster[1].incarnation, self.state.index)
        try:
            return await asyncio.shield(self.link.ended)
        finally:
            for _, future in self._waiting:
                future.cancel()

    async def call(self, request: Request, expected: type[A]) -> A | Rejection:
        """Return the answer to a request in the cluster's own name, once `state` holds it.

        Raises: ConnectionError when the front ended first; PeerFault for an answer of another kind.
        """
        reply = await self.link.call(request)
        outcome = reply.outcome
        if not isinstance(outcome, Answered):
            return Rejection(outcome.code, outcome.text, outcome.hint)
        answer = decode_answer(outcome.answer)
        if not isinstance(answer, expected):
            raise PeerFault(
                f"an answer {type(answer).__name__} where {expected.__name__} was expected"
            )
        await self.wait_for(reply.index)
        return answer

    async def wait_for(self, index: int) -> None:
        """Return once `state` holds this entry. Raises: ConnectionError when the front ends."""
        if index <= self.state.index:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((index, future))
        await asyncio.wait((future, self.link.ended), return_when=asyncio.FIRST_COMPLETED)
        if not future.done() or future.cancelled():
            raise ConnectionError("the front has ended")

    # -- inside
    def _follow(self, entries: Sequence[Entry], commit: int) -> None:
        follow(self.state, entries)
        self.commit = commit
        index = self.state.index
        self.link.reached(index)
        if self._waiting:
            still = []
            for wanted, future in self._waiting:
                if wanted > index:
                    still.append((wanted, future))
                elif not future.done():
                    future.set_result(None)
            self._waiting = still
        self._after_entries()

    def _role(self, role: Role) -> None:
        self.leads, self.term = role.leads, role.term
        self._after_role()


def load_state(disk: Disk, genesis: Genesis) -> State:
    """Return the state of the newest whole snapshot of a controller's directory; blocks.

    Without any it is that of a newborn cluster. Nothing is written.
    """
    for snapshot in SnapshotStore.open(disk, cluster_id=genesis.cluster_id).newest_first():
        # A damaged one is passed over: the older one or the ledger takes its place.
        with suppress(SnapshotDamaged):
            return load(snapshot.chunks())
    return new_state(
        genesis.encoded, cluster_id=genesis.cluster_id, incarnation=genesis.incarnation
    )


def run_child(
    main: Callable[[Path, int], Awaitable[str]],
    arguments: Sequence[str],
) -> int:
    """Run a child of the front: `main(directory, channel)` until the front ends.

    `main` returns why it is to begin anew, or nothing. Returns the exit status.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--niceness", type=int, default=0)
    options = parser.parse_args(arguments)
    die_with_parent()
    os.nice(options.niceness)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s: %(message)s"
    )
    tune_interpreter()

    async def run() -> str:
        return await main(options.directory, options.channel)

    why = run_daemon(run())
    if why:
        LOG.warning("beginning anew: %s", why)
        return EXIT_ANEW
    return 0


def _pass_over(role: Role) -> None:
    """Hear who leads, and do nothing about it."""


def _do_nothing() -> None:
    """Have nothing to do after a batch."""
