"""The spool: what an agent writes is whole or not there, and the next process finds it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.agent.machine import Report, void_claim
from spur.agent.manifest import CLAIM, LOCK, MANIFEST, OUTCOME, AttemptName, Manifest, Site
from spur.agent.spool import Spool
from spur.testing.orders import order_for
from spur.values.errors import OperatorFault
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState

NODE = NodeName("n1")
NAME = AttemptName(NODE, JobId(5), 0, None, 1)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """Yield an empty spool."""
    made = Spool(tmp_path / "spool")
    yield made
    made.close()


def manifest() -> Manifest:
    return Manifest("boot", 1, 2, 3, order_for("n1", 5), Site("/relay", "", "", ""))


def report(number: int, state: NodeShareState = NodeShareState.ENDED) -> Report:
    return Report(number, NAME, state, 1, 0, False, "boot", 7)


def test_prepared_attempt_is_found_by_the_next_process(spool: Spool) -> None:
    """An agent writes a manifest and dies."""
    spool.prepare(NAME, manifest())
    spool.close()
    again = Spool(spool.path)
    [found] = again.scan()
    assert (found.name, found.manifest) == (NAME, manifest())
    assert (found.claim, found.outcome, found.lives) == (None, None, False)
    again.close()


def test_half_made_directories_are_cleaned_away(spool: Spool) -> None:
    """An agent died while it wrote a manifest, and another while it removed a directory."""
    for entry in (".made-5.0.run.1.n1", ".gone-6.0.run.1.n1"):
        (spool.path / entry).mkdir()
        (spool.path / entry / MANIFEST).write_bytes(b"half")
    spool.close()
    again = Spool(spool.path)
    assert again.scan() == []
    assert [entry for entry in os.listdir(spool.path) if "run" in entry] == []
    again.close()


def test_spool_belongs_to_one_process(spool: Spool) -> None:
    """Somebody starts a second agent on the directory of the first."""
    with pytest.raises(OperatorFault, match="another agent runs on this directory"):
        Spool(spool.path)


def test_claim_is_taken_once(spool: Spool) -> None:
    """The agent voids an attempt twice; another attempt's supervisor was first."""
    assert spool.take_claim(NAME, 3)
    assert spool.take_claim(NAME, 3)
    assert spool.found(NAME).claim == void_claim(3)
    other = NAME._replace(attempt=2)
    spool.prepare(other, manifest())
    (spool.directory(other) / CLAIM).write_bytes(b"run")
    assert not spool.take_claim(other, 3)


def test_lock_tells_who_lives(spool: Spool) -> None:
    """A supervisor has its lock for as long as it lives; at first it has not written its id."""
    spool.prepare(NAME, manifest())
    assert spool.holder(NAME) is None
    lock = os.open(spool.directory(NAME) / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert (spool.holder(NAME), spool.found(NAME).lives) == (0, True)
    os.write(lock, b"123\n")
    assert spool.holder(NAME) == 123
    os.close(lock)
    assert (spool.holder(NAME), spool.found(NAME).lives) == (None, False)


def test_damaged_files_count_as_none(spool: Spool) -> None:
    """A disk brought back something else: nothing is run by it, and nothing ended well by it."""
    spool.prepare(NAME, manifest())
    (spool.directory(NAME) / MANIFEST).write_bytes(b"\x93garbage")
    (spool.directory(NAME) / OUTCOME).write_bytes(b"")
    found = spool.found(NAME)
    assert (found.manifest, found.outcome) == (None, None)


def test_attempt_of_a_name_that_was_used_before_replaces_it(spool: Spool) -> None:
    """The cluster was restored and uses an attempt's name anew."""
    spool.take_claim(NAME, 1)
    spool.prepare(NAME, manifest())
    assert spool.found(NAME).claim is None
    spool.remove(NAME)
    spool.remove(NAME)
    assert spool.scan() == []


def test_outbox_goes_on_where_it_stopped(spool: Spool) -> None:
    """An agent dies after each of several reports was written down."""
    first = spool.outbox(NODE)
    assert (first.number, first.sending) == (0, None)
    for number in range(1, 6):
        spool.keep_report(NODE, first.id, report(number))
        again = spool.outbox(NODE)
        assert (again.id, again.number, again.sending) == (first.id, number, report(number))


@pytest.mark.parametrize("cut", [0, 3, 8, 40])
def test_report_that_was_not_written_whole_was_never_sent(spool: Spool, cut: int) -> None:
    """The power went while a report was written: the one before it is the last."""
    outbox = spool.outbox(NODE)
    for number in (1, 2, 3):
        spool.keep_report(NODE, outbox.id, report(number))
    path = spool.path / "outbox.n1"
    content = bytearray(path.read_bytes())
    content[1024 + cut : 2048] = bytes(1024 - cut)
    path.write_bytes(content)
    again = spool.outbox(NODE)
    assert (again.number, again.sending) == (2, report(2))


def test_outbox_without_anything_whole_begins_anew(spool: Spool) -> None:
    """The file is damaged throughout: another outbox begins another sequence."""
    outbox = spool.outbox(NODE)
    (spool.path / "outbox.n1").write_bytes(b"garbage")
    again = spool.outbox(NODE)
    assert again.id != outbox.id
    assert (again.number, again.sending) == (0, None)
