"""A front and what follows it, over a real socket pair in one loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence

import pytest

from spur.controller.follower import FrontLink
from spur.controller.streams import SCHEDULER, UNSENT_BYTES_MAX, ChildStream
from spur.events.envelope import Actor, Entry
from spur.testing.loops import Run
from spur.values.errors import InvariantBroken
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.cluster import ShowCluster
from spur.wire.declare import encode_request
from spur.wire.followers import Cycled, HistoryAnswer, HistoryAsk, Role
from spur.wire.jobs import StartView

BODY = bytes(100_000)


class Front:
    """A front's place in the log, and what it was asked."""

    def __init__(self, count: int) -> None:
        self.entries = [Entry(index, 1, 2, BODY) for index in range(1, count + 1)]
        self.commit = count
        self.incarnation = 2
        self.first = 1
        self.reads = 0
        self.waiting: list[Callable[[], None]] | None = None
        """Reads of the ledger that are not done yet; None when memory holds all."""
        self.asked: list[tuple[Call, Actor, Callable[[Reply], None]]] = []

    def foresaw(self, starts: tuple[StartView, ...]) -> None:
        """Take no notice."""

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None:
        self.asked.append((call, actor, respond))

    def cycled(self, cycle: Cycled) -> None:
        """Take no note of it."""

    def read(self, first: int, bytes_max: int, done: Callable[[Sequence[Entry]], None]) -> None:
        self.reads += 1
        count = max(1, bytes_max // len(BODY))
        found = self.entries[first - 1 : first - 1 + count] if first >= self.first else []
        if self.waiting is None:
            done(found)
        else:
            self.waiting.append(lambda: done(found))

    def commit_to(self, index: int) -> None:
        self.entries += [Entry(n, 1, 2, BODY) for n in range(self.commit + 1, index + 1)]
        self.commit = index


class Pair:
    """The two ends of a channel."""

    def __init__(self, count: int = 0) -> None:
        self.front = Front(count)
        self.said: list[str] = []
        self.taken: list[int] = []
        self.roles: list[tuple[Role, int]] = []
        """Each role that the child heard, and how many entries it had by then."""
        self.questions: list[HistoryAsk] = []
        self.stream = ChildStream("scheduler", self.front, self.front.read, self.said.append)
        ours, theirs = socket.socketpair()
        self.ours = ours
        self.link = FrontLink(
            theirs.detach(),
            on_entries=lambda entries, commit: self.taken.extend(each.index for each in entries),
            on_role=lambda role: self.roles.append((role, len(self.taken))),
            on_history=self.questions.append,
        )

    async def begin(self, index: int = 0, incarnation: int = 2) -> None:
        await self.stream.open(self.ours)
        await self.link.open(incarnation, index)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(3):
            while not holds():  # noqa: ASYNC110  # there is no event for any condition
                await asyncio.sleep(0.001)

    def end(self) -> None:
        self.stream.close()
        self.link.close()


def test_child_gets_every_entry_once_and_in_order(run: Run) -> None:
    """A scheduler starts behind entry 3 of a log that goes on."""

    async def story() -> None:
        pair = Pair(40)
        await pair.begin(index=3)
        await pair.until(lambda: pair.taken[-1:] == [40])
        pair.front.commit_to(42)
        pair.stream.committed()
        await pair.until(lambda: pair.taken[-1:] == [42])
        assert pair.taken == list(range(4, 43))
        pair.link.reached(42)
        await pair.until(lambda: pair.stream.reached == 42)
        pair.end()

    run(story())


def test_a_child_that_does_not_read_costs_nothing(run: Run) -> None:
    """A projector is stopped for a while: the front keeps a few messages and reads no further."""

    async def story() -> None:
        pair = Pair(200)
        await pair.stream.open(pair.ours)
        await pair.link.open(2, 0)
        pair.link._stream.pause_reading()
        await asyncio.sleep(0.05)
        reads = pair.front.reads
        for _ in range(50):
            pair.stream.committed()
            await asyncio.sleep(0)
        assert pair.front.reads == reads < 10
        assert pair.stream._stream.unsent_bytes <= UNSENT_BYTES_MAX + (1 << 20)
        pair.link._stream.resume_reading()
        await pair.until(lambda: pair.taken[-1:] == [200])
        assert pair.taken == list(range(1, 201))
        pair.end()

    run(story())


def test_entries_that_are_read_from_the_ledger_come_in_order(run: Run) -> None:
    """A child begins far behind: a thread reads for it, and meanwhile more is committed."""

    async def story() -> None:
        pair = Pair(25)
        pair.front.waiting = []
        await pair.begin()
        for last in (26, 27, 28, 28):
            await pair.until(lambda: bool(pair.front.waiting))
            pair.front.commit_to(last)
            pair.stream.committed()
            assert len(pair.front.waiting) == 1
            pair.front.waiting.pop()()
        await pair.until(lambda: pair.taken[-1:] == [28])
        assert pair.taken == list(range(1, 29))
        pair.end()

    run(story())


def test_a_lead_is_told_behind_what_was_committed_before(run: Run) -> None:
    """This controller is elected while the scheduler is still catching up."""

    async def story() -> None:
        pair = Pair(25)
        pair.stream.role(Role(leads=True, term=4))
        await pair.begin()
        await pair.until(lambda: bool(pair.roles))
        assert pair.roles == [(Role(leads=True, term=4), 25)]
        pair.stream.role(Role(leads=False, term=5))
        await pair.until(lambda: len(pair.roles) == 2)
        assert pair.roles[1][0] == Role(leads=False, term=5)
        pair.end()

    run(story())


def test_a_child_asks_in_the_clusters_name(run: Run) -> None:
    """The scheduler hands in a plan."""

    async def story() -> None:
        pair = Pair(1)
        await pair.begin()
        asking = asyncio.ensure_future(pair.link.call(ShowCluster()))
        await pair.until(lambda: bool(pair.front.asked))
        [(call, actor, respond)] = pair.front.asked
        assert (call.request, call.request_id) == (encode_request(ShowCluster()), b"")
        assert actor == SCHEDULER
        respond(Reply(call.number, 2, 17, Answered(b"x")))
        reply = await asking
        assert (reply.index, reply.outcome) == (17, Answered(b"x"))
        pair.end()

    run(story())


def test_who_asks_when_the_front_ends_hears_it(run: Run) -> None:
    """The front is killed while a plan is with it."""

    async def story() -> None:
        pair = Pair(1)
        await pair.begin()
        asking = asyncio.ensure_future(pair.link.call(ShowCluster()))
        await pair.until(lambda: bool(pair.front.asked))
        pair.stream.close()
        with pytest.raises(ConnectionError):
            await asking
        assert await pair.link.ended == ""
        with pytest.raises(ConnectionError):
            await pair.link.call(ShowCluster())

    run(story())


def test_questions_are_answered_or_refused_when_the_child_ends(run: Run) -> None:
    """A projector answers one query and dies before the next."""

    async def story() -> None:
        pair = Pair(1)
        await pair.begin()
        outcomes: list[tuple[Answered | Refused, str]] = []
        pair.stream.ask_history(
            b"q1", 1, lambda outcome, warning: outcomes.append((outcome, warning))
        )
        await pair.until(lambda: bool(pair.questions))
        [ask] = pair.questions
        assert (ask.request, ask.at_least) == (b"q1", 1)
        pair.link.answer_history(HistoryAnswer(ask.number, Answered(b"a"), "it is at entry 0"))
        await pair.until(lambda: bool(outcomes))
        assert outcomes == [(Answered(b"a"), "it is at entry 0")]
        pair.stream.ask_history(
            b"q2", 1, lambda outcome, warning: outcomes.append((outcome, warning))
        )
        pair.link.close()
        await pair.until(lambda: len(outcomes) == 2)
        assert outcomes[1] == (Refused("history-behind", "the scheduler ended"), "")
        pair.end()

    run(story())


def test_a_child_whose_entries_are_gone_begins_anew(run: Run) -> None:
    """The controller took a snapshot from a peer: its ledger begins later than the child is."""

    async def story() -> None:
        pair = Pair(20)
        pair.front.first = 10
        await pair.begin(index=5)
        assert await pair.link.ended == "entry 6 is not here any more"
        pair.end()

    run(story())


def test_a_child_of_a_former_incarnation_begins_anew(run: Run) -> None:
    """The cluster was restored from a backup while the read model stayed."""

    async def story() -> None:
        pair = Pair(20)
        await pair.begin(index=5, incarnation=1)
        assert await pair.link.ended == "it is of incarnation 1, and the cluster of 2"
        pair.end()

    run(story())


def test_a_child_that_is_ahead_waits(run: Run) -> None:
    """The front was killed before its ledger had what it had streamed: it comes again."""

    async def story() -> None:
        pair = Pair(5)
        await pair.begin(index=7)
        pair.front.commit_to(7)
        pair.stream.committed()
        pair.front.commit_to(8)
        pair.stream.committed()
        await pair.until(lambda: bool(pair.taken))
        assert pair.taken == [8]
        pair.end()

    run(story())


def test_garbage_ends_the_channel(run: Run) -> None:
    """Something else writes into the child's channel."""

    async def story() -> None:
        pair = Pair(1)
        await pair.begin()
        pair.link._stream.send(b"\xc1")
        assert await pair.link.ended == ""
        assert "a message of a child that cannot be read" in pair.said[0]
        pair.end()

    run(story())


def test_a_child_that_cannot_take_an_entry_ends_with_its_reason(run: Run) -> None:
    """The projector meets an entry that it cannot fold."""

    async def story() -> None:
        pair = Pair(1)

        def fails(entries: Sequence[Entry], commit: int) -> None:
            raise InvariantBroken("entry 1 makes no sense")

        pair.link._on_entries = fails
        await pair.begin()
        with pytest.raises(InvariantBroken, match="entry 1 makes no sense"):
            await pair.link.ended
        pair.end()

    run(story())
