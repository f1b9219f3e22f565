"""A follower with a state of its own, over a real channel, beside a controller's directory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.consensus.opening import ReplicaOptions
from spur.controller.birth import NewController, give_birth
from spur.controller.follower import Follower, load_state
from spur.controller.streams import ChildStream
from spur.events.envelope import Actor, Entry
from spur.projections.apply import ApplyFailed
from spur.projections.digest import state_digest
from spur.testing.builders import SMALL_CONFIG, Cluster
from spur.testing.hall import USER, submission
from spur.testing.loops import Run, until
from spur.values.errors import PeerFault, Rejection
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.cluster import ClusterInfo, ShowCluster
from spur.wire.declare import Done, encode_request
from spur.wire.followers import Cycled, Role
from spur.wire.jobs import StartView
from spur.wire.registry import encode_answer


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a controller that never ran."""
    directory = tmp_path_factory.mktemp("hosts") / "c1"
    address = "127.0.0.1:1"
    new = NewController(directory=directory, raft_address=address, rpc_address=address)
    give_birth([new], options=ReplicaOptions(wal_segment_bytes=1 << 16))
    return directory


class Front:
    """A front that committed a small story and answers as it is told."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.configure(SMALL_CONFIG)
        self.commit = self.cluster.state.index
        self.incarnation = 0
        self.asked: list[tuple[Call, Callable[[Reply], None]]] = []

    def foresaw(self, starts: tuple[StartView, ...]) -> None:
        """Take no notice."""

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None:
        self.asked.append((call, respond))

    def cycled(self, cycle: Cycled) -> None:
        """Take no note of it."""

    def read(self, first: int, bytes_max: int, done: Callable[[Sequence[Entry]], None]) -> None:
        done(self.cluster.entries[first - 1 : self.commit])

    def go_on(self) -> None:
        """Write one more entry, which is not committed yet."""
        self.cluster.ask(submission(), USER)


class Pair:
    """A follower and its front."""

    def __init__(self, directory: Path) -> None:
        self.front = Front()
        self.batches = 0
        self.stream = ChildStream("scheduler", self.front, self.front.read, lambda said: None)
        self.ours, theirs = socket.socketpair()
        self.follower = Follower(directory, theirs.detach(), on_entries=self.took)

    def took(self) -> None:
        self.batches += 1

    async def begin(self) -> asyncio.Task[str]:
        await self.stream.open(self.ours)
        running = asyncio.ensure_future(self.follower.run())
        await until(lambda: self.follower.state.index == self.front.commit)
        return running


def test_a_new_state_is_that_of_the_genesis(directory: Path) -> None:
    """The scheduler of a newborn cluster starts: there is no snapshot yet."""
    disk = OsDisk(str(directory))
    state = load_state(disk, load_genesis(disk))
    assert state.index == 0
    assert state.cluster[1].cluster_id == load_genesis(disk).cluster_id


def test_the_state_follows_what_is_committed(run: Run, directory: Path) -> None:
    """Entries are committed while the scheduler follows; it learns that it may plan."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        pair.front.go_on()
        assert pair.follower.state.index == pair.front.commit
        pair.front.commit += 1
        pair.stream.committed()
        await until(lambda: pair.follower.state.index == pair.front.commit)
        mine, theirs = pair.follower.state, pair.front.cluster.state
        assert mine.jobs.rows == theirs.jobs.rows
        assert pair.batches == 2
        assert not pair.follower.leads
        pair.stream.role(Role(leads=True, term=3))
        await until(lambda: pair.follower.leads)
        assert pair.follower.term == 3
        pair.stream.close()
        assert await running == ""

    run(story())


def test_an_answer_is_returned_when_the_state_holds_it(run: Run, directory: Path) -> None:
    """The scheduler's plan is answered before the entry of it has come over the stream."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        asking = asyncio.ensure_future(pair.follower.call(ShowCluster(), Done))
        await until(lambda: bool(pair.front.asked))
        pair.front.go_on()
        [(call, respond)] = pair.front.asked
        assert call.request == encode_request(ShowCluster())
        respond(Reply(call.number, 0, pair.front.commit + 1, Answered(encode_answer(Done()))))
        await asyncio.sleep(0.05)
        assert not asking.done()
        pair.front.commit += 1
        pair.stream.committed()
        assert await asking == Done()
        assert pair.follower.state.index == pair.front.commit
        pair.stream.close()
        await running

    run(story())


def test_a_refusal_and_a_foreign_answer(run: Run, directory: Path) -> None:
    """The lead was lost; and a front of another release answers with something else."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        outcomes: tuple[Refused | Answered, ...] = (
            Refused("not-leader", "no"),
            Answered(encode_answer(Done())),
        )
        for number, outcome in enumerate(outcomes):
            asking = asyncio.ensure_future(pair.follower.call(ShowCluster(), ClusterInfo))
            await until(lambda n=number: len(pair.front.asked) > n)  # type: ignore[misc]  # a lambda with a default
            call, respond = pair.front.asked[number]
            respond(Reply(call.number, 0, 0, outcome))
            if isinstance(outcome, Refused):
                assert await asking == Rejection("not-leader", "no")
            else:
                with pytest.raises(PeerFault, match="Done where ClusterInfo"):
                    await asking
        pair.stream.close()
        await running

    run(story())


def test_who_waits_for_an_entry_hears_that_the_front_ended(run: Run, directory: Path) -> None:
    """The front dies between its answer and the entry."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        waiting = asyncio.ensure_future(pair.follower.wait_for(pair.front.commit + 1))
        await asyncio.sleep(0)
        pair.stream.close()
        with pytest.raises(ConnectionError):
            await waiting
        await running

    run(story())


def test_an_entry_that_does_not_follow_stops_the_follower(run: Run, directory: Path) -> None:
    """An entry is damaged on its way, or of a newer release."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        entries = pair.front.cluster.entries
        entries.append(Entry(len(entries) + 5, 1, 0, b""))
        pair.front.commit += 1
        pair.stream.committed()
        with pytest.raises(ApplyFailed, match="is next"):
            await running
        assert state_digest(pair.follower.state)
        pair.stream.close()

    run(story())
