"""A controller whose write-ahead log was damaged or lost says so in a sentence, and never guesses.

What it acknowledged may be missing, and how it voted is not known any more: it does not start. The
others go on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spur.testing.controllers import ControllerProcess
from spur.testing.damage import (
    append_entry,
    flip_bit,
    last_group,
    tear_tail,
    unknown_event,
    wal_groups,
    wal_segments,
)
from spur.testing.errands import jobs, submit_many
from spur.testing.past import Past

REFUSED = 78
REMOVE = "it does not start: remove this controller and add it again"


def refusal(member: ControllerProcess) -> str:
    """Start a controller that is to refuse; return the one sentence that it says."""
    member.start()
    assert member.wait() == REFUSED
    [line] = member.words().splitlines()
    return line.partition("spurctld: ")[2]


def test_torn_tail_is_cut_and_said(lone_past: Past, tmp_path: Path) -> None:
    """The power failed while a group was being written: nobody was told of it, and it goes."""
    past = lone_past.copy(tmp_path)
    [member] = past.controllers.members
    offset = tear_tail(member.directory)
    past.controllers.start()
    with past.controllers.blocking() as client:
        assert jobs(client) == past.jobs
        more = submit_many(client, 3)
    assert member.stop() == 0
    assert f"at byte {offset}), whose sync never returned; it was cut off" in member.words()
    past.controllers.start()
    with past.controllers.blocking() as client:
        assert jobs(client) == past.jobs | more
    assert member.stop() == 0
    assert member.words().count("torn group") == 1


def in_the_middle(directory: Path) -> None:
    """Spoil a group that others follow."""
    places = wal_groups(wal_segments(directory)[0])
    place = places[len(places) // 2]
    flip_bit(place.path, place.offset + 150)


def at_the_end(directory: Path) -> None:
    """Spoil the last group, all of whose sectors were written."""
    place = last_group(directory)
    flip_bit(place.path, place.offset + 150)


def in_a_header(directory: Path) -> None:
    """Spoil the first sector of a segment."""
    flip_bit(wal_segments(directory)[0], 20)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (in_the_middle, "a record of group"),
        (at_the_end, "a record of group"),
        (in_a_header, "its header does not match its CRC"),
    ],
)
def test_flipped_bit_stops_the_controller(
    lone_past: Past, tmp_path: Path, spoil: Callable[[Path], None], what: str
) -> None:
    """A disk returns other bytes than it was given: not a torn tail, so nothing is cut."""
    [member] = lone_past.copy(tmp_path).controllers.members
    spoil(member.directory)
    sentence = refusal(member)
    assert "is damaged at byte" in sentence
    assert what in sentence
    assert sentence.endswith(REMOVE)


def everything(directory: Path) -> None:
    """Lose the whole directory of the log."""
    shutil.rmtree(directory / "wal")


def newest(directory: Path) -> None:
    """Lose the newest segment, and with it the vote."""
    wal_segments(directory)[-1].unlink()


@pytest.mark.parametrize(
    ("lose", "what"),
    [
        (everything, "the write-ahead log is missing"),
        (newest, "its newest part is missing"),
    ],
)
def test_lost_log_and_vote_stop_the_controller(
    lone_past: Past, tmp_path: Path, lose: Callable[[Path], None], what: str
) -> None:
    """Somebody tidied up: without its vote a controller could vote twice in one term."""
    [member] = lone_past.copy(tmp_path).controllers.members
    lose(member.directory)
    sentence = refusal(member)
    assert what in sentence
    assert "without it this replica can't know how it voted" in sentence
    assert sentence.endswith(REMOVE)


def test_two_others_go_on_without_the_damaged_one(past: Past, tmp_path: Path) -> None:
    """One of three refuses to start; users notice nothing."""
    past = past.copy(tmp_path)
    in_the_middle(past.controllers.members[1].directory)
    past.controllers.start()
    try:
        with past.controllers.blocking() as client:
            assert jobs(client) == past.jobs
            more = submit_many(client, 5)
            assert jobs(client) == past.jobs | more
        assert past.controllers.members[1].wait() == REFUSED
    finally:
        past.controllers.stop()


@pytest.mark.parametrize(
    ("is_garbage", "in_ledger"), [(False, False), (False, True), (True, False)]
)
def test_unreadable_record_stops_the_controller_at_its_index(
    lone_past: Past, tmp_path: Path, is_garbage: bool, in_ledger: bool
) -> None:
    """The log holds what a later release wrote: this one does not skip it."""
    [member] = lone_past.copy(tmp_path).controllers.members
    body = b"no envelope" if is_garbage else unknown_event(time.time_ns())
    index = append_entry(member.directory, 1, body, also_to_ledger=in_ledger)
    for _ in range(2):
        member.start()
        assert member.wait() == REFUSED
    what = "envelope" if is_garbage else "event 'job.teleported'"
    sentences = [line for line in member.words().splitlines() if "cannot be read" in line]
    assert len(sentences) == 2
    assert all(f"entry {index}: {what} cannot be read: " in sentence for sentence in sentences)
    assert all(
        sentence.endswith("start it with the release that wrote the entry")
        for sentence in sentences
    )
    assert "Traceback" not in member.words()
