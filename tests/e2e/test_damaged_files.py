"""A damaged ledger, snapshot or attachment: the controller says so and goes on, and peers mend it.

A lone controller has no peers. It goes on with what it has, or says in a sentence why it can't.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spur.controller.logtool import verify
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.damage import flip_bit, flip_bit_of
from spur.testing.errands import SECRET, info, jobs, submit_many, until
from spur.testing.past import Past
from spur.values.errors import OperatorFault

REFUSED = 78

OPEN = Path("ledger/000000000002.raw")
SEALED = Path("ledger/000000000001.sealed")
PACK = Path("blobs/000001.pack")


@contextmanager
def running(past: Past) -> Iterator[tuple[Controllers, ControllerProcess]]:
    """Run a spoiled cluster that has to serve all it knew, and more; yield the spoiled member."""
    controllers = past.controllers
    controllers.start()
    try:
        with controllers.blocking() as client:
            assert jobs(client) == past.jobs
            more = submit_many(client, 3)
            assert jobs(client) == past.jobs | more
        yield controllers, controllers.members[0]
    finally:
        controllers.stop()


def mended(controllers: Controllers, member: ControllerProcess, sentence: str) -> None:
    """Wait until a controller has said that something was mended, and see that all is whole."""
    until(sentence, lambda: sentence in member.words())
    last = info(controllers, member).recorded
    report = verify(str(member.directory), replay=True)
    assert (report["first"], report["missing"], report["torn"]) == (1, [], None)
    assert report["index"] >= last
    assert report["attachments_missing"] == 0


def old_record(past: Past) -> None:
    """Spoil a record of the open segment that the write-ahead log does not hold any more."""
    name = list(past.jobs)[220]
    flip_bit_of(past.controllers.members[0].directory / OPEN, name.encode())


def start_of_segment(past: Past) -> None:
    """Spoil the first bytes of the open segment."""
    flip_bit(past.controllers.members[0].directory / OPEN, 20)


def sealed_frame(past: Past) -> None:
    """Spoil the middle of a sealed segment."""
    flip_bit(past.controllers.members[0].directory / SEALED, 20_000)


def seal(past: Past) -> None:
    """Spoil what a sealed segment says of itself."""
    flip_bit(past.controllers.members[0].directory / SEALED, 20)


def lost_segment(past: Past) -> None:
    """Lose a sealed segment."""
    (past.controllers.members[0].directory / SEALED).unlink()


SPOILED = [
    (old_record, "ledger segment 2"),
    (start_of_segment, "ledger segment 2"),
    (sealed_frame, "ledger segment 1"),
    (seal, "ledger segment 1"),
]


@pytest.mark.parametrize(("spoil", "what"), [*SPOILED, (lost_segment, "1 segments of the ledger")])
def test_ledger_is_repaired_from_peers_while_the_cluster_serves(
    past: Past, tmp_path: Path, spoil: Callable[[Past], None], what: str
) -> None:
    """A bit of one controller's ledger flips; nobody reads it, and it is mended all the same."""
    past = past.copy(tmp_path)
    spoil(past)
    with running(past) as (controllers, member):
        number = 2 if what.endswith("2") else 1
        mended(controllers, member, f"ledger segment {number} was repaired from controller ")
        assert what in member.words()


@pytest.mark.parametrize(("spoil", "what"), SPOILED)
def test_lone_controller_says_what_of_its_ledger_is_damaged(
    lone_past: Past, tmp_path: Path, spoil: Callable[[Past], None], what: str
) -> None:
    """There is nobody to mend it; a snapshot holds the state, so work goes on."""
    past = lone_past.copy(tmp_path)
    spoil(past)
    with running(past) as (_, member):
        until("it is said", lambda: f"{what} is damaged at byte" in member.words())
        assert member.words().count("is damaged at byte") == 1


@pytest.mark.parametrize("count", [1, 3])
def test_end_of_the_ledger_comes_back_from_the_write_ahead_log(
    lone_past: Past, past: Past, tmp_path: Path, count: int
) -> None:
    """The newest records are spoiled, which the write-ahead log still has."""
    past = (lone_past if count == 1 else past).copy(tmp_path)
    flip_bit_of(past.controllers.members[0].directory / OPEN, list(past.jobs)[-3].encode())
    with running(past) as (_, member):
        report = verify(str(member.directory), replay=True)
        assert (report["first"], report["missing"]) == (1, [])
        assert "the write-ahead log holds all entries from there on" in member.words()


# -- snapshots
def snapshots(past: Past) -> list[Path]:
    """Return the spoiled member's snapshots, oldest first."""
    return sorted((past.controllers.members[0].directory / "snapshots").iterdir())


@pytest.mark.parametrize("file", ["chunks", "manifest"])
@pytest.mark.parametrize("spoiled", [1, 2])
def test_damaged_snapshots_are_passed_over_and_replaced(
    lone_past: Past, tmp_path: Path, file: str, spoiled: int
) -> None:
    """A bit of the newest snapshot flips, or of both: the older one or the ledger serves."""
    past = lone_past.copy(tmp_path)
    for snapshot in snapshots(past)[-spoiled:]:
        flip_bit(snapshot / file, 100)
    with running(past) as (controllers, member):
        until("there is a new snapshot", lambda: info(controllers, member).snapshot_index > 370)
        words = member.words()
        assert words.count("an older one or the ledger takes its place") == spoiled
        assert f"is damaged in its {file if file == 'manifest' else 'chunk 1'}: its" in words
    with running(Past(past.controllers, past.jobs | jobs_of(past))):
        assert member.words().count("takes its place") == spoiled


def jobs_of(past: Past) -> dict[str, int]:
    """Start a stopped cluster and return its jobs."""
    past.controllers.start()
    try:
        with past.controllers.blocking() as client:
            return jobs(client)
    finally:
        past.controllers.stop()


def spoil_beyond_itself(past: Past) -> None:
    """Spoil both snapshots and the ledger before them."""
    sealed_frame(past)
    for snapshot in snapshots(past):
        flip_bit(snapshot / "chunks", 100)


def test_lone_controller_without_state_refuses(lone_past: Past, tmp_path: Path) -> None:
    """Snapshots and ledger are damaged at once: no state can be made, and none is made up."""
    past = lone_past.copy(tmp_path)
    spoil_beyond_itself(past)
    [member] = past.controllers.members
    member.start()
    assert member.wait() == REFUSED
    [line] = member.words().splitlines()
    assert "ledger segment 1 is damaged at byte 0 (entry 1)" in line
    assert line.endswith("put a backup of this directory in its place; nothing was changed")


def test_controller_without_state_stays_outside_until_peers_have_mended_it(
    past: Past, tmp_path: Path
) -> None:
    """The same with peers: two serve, and the third comes back when its ledger is whole."""
    past = past.copy(tmp_path)
    spoil_beyond_itself(past)
    with running(past) as (controllers, member):
        assert "until then this controller stays outside of the cluster" in member.words()
        mended(controllers, member, "ledger segment 1 was repaired from controller ")
        until("it takes part", lambda: info(controllers, member).leader > 0)


# -- attachments
def test_attachment_is_repaired_from_peers(past: Past, tmp_path: Path) -> None:
    """A bit of a script flips on one controller's disk, long before the job starts."""
    past = past.copy(tmp_path)
    name = list(past.jobs)[5]
    flip_bit_of(past.controllers.members[0].directory / PACK, SECRET + b" " + name.encode())
    with pytest.raises(OperatorFault, match="1 attachments are damaged"):
        verify(str(past.controllers.members[0].directory))
    with running(past) as (controllers, member):
        mended(controllers, member, "1 attachments were fetched from peers")
        assert member.words().count("is damaged; it is to be repaired from a peer") == 1


def test_lost_attachments_are_fetched_from_peers(past: Past, tmp_path: Path) -> None:
    """The directory of one controller's attachments is gone."""
    past = past.copy(tmp_path)
    shutil.rmtree(past.controllers.members[0].directory / "blobs")
    with running(past) as (controllers, member):
        mended(controllers, member, " attachments were fetched from peers")


def test_lone_controller_says_which_attachment_is_damaged(lone_past: Past, tmp_path: Path) -> None:
    """There is nobody to fetch it from; every other job goes on."""
    past = lone_past.copy(tmp_path)
    name = list(past.jobs)[5]
    flip_bit_of(past.controllers.members[0].directory / PACK, SECRET + b" " + name.encode())
    with running(past) as (_, member):
        said = "is damaged; it is to be repaired from a peer"
        until("it is said", lambda: said in member.words())
