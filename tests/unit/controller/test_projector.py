"""The projector over a real channel: what it answers, and when."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.consensus.opening import ReplicaOptions
from spur.controller import projector
from spur.controller.birth import NewController, give_birth
from spur.controller.projector import MODEL_FILE, Projector, open_model
from spur.controller.streams import ChildStream
from spur.events.envelope import Actor, Entry
from spur.testing.builders import SMALL_CONFIG, Cluster
from spur.testing.hall import USER, submission
from spur.testing.loops import Run, until
from spur.values.ids import JobId
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.declare import Request, encode_request
from spur.wire.followers import Cycled
from spur.wire.history import QueryRecords, ReadStory, RecordFilter, RecordPage
from spur.wire.jobs import StartView
from spur.wire.registry import decode_answer

ALL = QueryRecords(RecordFilter(), JobId(0), 100)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory of a controller that never ran."""
    path = tmp_path / "c1"
    address = "127.0.0.1:1"
    new = NewController(directory=path, raft_address=address, rpc_address=address)
    give_birth([new], options=ReplicaOptions(wal_segment_bytes=1 << 16))
    return path


class Pair:
    """A projector and its front, which has committed a small story with one job."""

    def __init__(self, directory: Path) -> None:
        self.cluster = Cluster()
        self.cluster.configure(SMALL_CONFIG)
        self.cluster.ask(submission(), USER)
        self.commit = self.cluster.state.index - 1
        self.incarnation = 0
        self.heard: list[tuple[Answered | Refused, str]] = []
        self.stream = ChildStream("projector", self, self.read, lambda said: None)
        self.ours, theirs = socket.socketpair()
        self.projector = Projector(directory, theirs.detach())

    def foresaw(self, starts: tuple[StartView, ...]) -> None:
        """Take no notice."""

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None:
        """Take no requests: the projector has none."""

    def cycled(self, cycle: Cycled) -> None:
        """Take no note of it."""

    def read(self, first: int, bytes_max: int, done: Callable[[Sequence[Entry]], None]) -> None:
        done(self.cluster.entries[first - 1 : self.commit])

    async def begin(self) -> asyncio.Task[str]:
        await self.stream.open(self.ours)
        running = asyncio.ensure_future(self.projector.run())
        await until(lambda: self.projector.model.cursor.index == self.commit)
        return running

    def ask(self, request: Request, at_least: int) -> None:
        self.stream.ask_history(encode_request(request), at_least, self.hear)

    def hear(self, outcome: Answered | Refused, warning: str) -> None:
        self.heard.append((outcome, warning))

    async def answer(self) -> tuple[Answered | Refused, str]:
        await until(lambda: bool(self.heard))
        return self.heard.pop()

    def commit_all(self) -> None:
        self.commit = self.cluster.state.index
        self.stream.committed()


def test_a_query_waits_until_the_model_is_as_new(run: Run, directory: Path) -> None:
    """A user asks sacct for the job that they submitted a moment ago."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        pair.ask(ALL, pair.commit + 1)
        await asyncio.sleep(0)
        assert pair.heard == []
        pair.commit_all()
        outcome, warning = await pair.answer()
        assert isinstance(outcome, Answered)
        page = decode_answer(outcome.answer)
        assert isinstance(page, RecordPage)
        assert (len(page.rows), warning) == (1, "")
        pair.stream.close()
        assert await running == ""

    run(story())


def test_a_query_that_waits_too_long_says_how_far_the_model_is(
    run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The projector has fallen far behind: the answer is old, and says so."""
    monkeypatch.setattr(projector, "WAIT_S", 0.01)

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        pair.ask(ALL, pair.commit + 1)
        outcome, warning = await pair.answer()
        assert isinstance(outcome, Answered)
        assert warning == (
            f"the records are those at entry {pair.commit}; the log is at {pair.commit + 1} already"
        )
        pair.stream.close()
        await running

    run(story())


def test_a_story_that_the_ledger_has_not_got_yet_is_to_be_asked_again(
    run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was committed a moment ago is not in the ledger's files yet."""
    monkeypatch.setattr(projector, "LEDGER_WAIT_S", 0.01)
    monkeypatch.setattr(projector, "LEDGER_PAUSE_S", 0.001)

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        pair.commit_all()
        pair.ask(ReadStory(JobId(1), 0, 10), pair.commit)
        outcome, _ = await pair.answer()
        assert isinstance(outcome, Refused)
        assert outcome.code == "history-behind"
        pair.stream.close()
        await running

    run(story())


def test_it_goes_on_where_its_model_is(run: Run, directory: Path) -> None:
    """The projector is started again: it asks the front for what is new alone."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        pair.stream.close()
        await running
        disk = OsDisk(str(directory))
        model = open_model(directory, disk, load_genesis(disk))
        assert model.cursor.index == pair.commit
        model.close()
        assert (directory / MODEL_FILE).exists()

    run(story())


def test_a_model_of_a_former_incarnation_is_dropped(run: Run, directory: Path) -> None:
    """The cluster was restored from a backup: what lay behind the fork is not in its log."""

    async def story() -> None:
        pair = Pair(directory)
        running = await pair.begin()
        pair.stream.close()
        await running
        restored = Pair(directory)
        restored.incarnation = 1
        await restored.stream.open(restored.ours)
        assert "incarnation" in await restored.projector.run()
        assert not (directory / MODEL_FILE).exists()
        anew = Pair(directory)
        anew.incarnation = 1
        running = await anew.begin()
        anew.stream.close()
        await running

    run(story())
