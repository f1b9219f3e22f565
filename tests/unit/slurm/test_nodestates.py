"""States of nodes in sinfo's words."""

from __future__ import annotations

import pytest

from spur.slurm.nodestates import (
    STATE_WORDS,
    compact_state,
    is_in_state,
    long_state,
    state_rank,
)


@pytest.mark.parametrize(
    ("state", "short", "long"),
    [
        ("IDLE", "idle", "idle"),
        ("ALLOCATED", "alloc", "allocated"),
        ("MIXED+DRAIN", "drng", "draining"),
        ("IDLE+DRAIN", "drain", "drained"),
        ("DOWN+NOT_RESPONDING", "down*", "down*"),
        ("DOWN+DRAIN+NOT_RESPONDING", "drain*", "drained*"),
        ("UNKNOWN", "unk", "unknown"),
    ],
)
def test_state_and_its_marks_are_one_word(state: str, short: str, long: str) -> None:
    """Someone looks at the nodes with -t and with -T."""
    assert (compact_state(state), long_state(state)) == (short, long)


def test_what_is_out_comes_first() -> None:
    """Someone scans the list from above for what needs a hand."""
    states = ["DOWN", "IDLE", "ALLOCATED", "MIXED", "IDLE+DRAIN", "DOWN+NOT_RESPONDING"]
    assert sorted(states, key=state_rank) == states


@pytest.mark.parametrize("word", [*STATE_WORDS, "all", "resv", "IDLE", "idle&drain"])
def test_word_names_states_or_none(word: str) -> None:
    """Someone filters by a state; a silent node that is down is in three of them."""
    assert is_in_state("DOWN+NOT_RESPONDING", word) == (word in ("down", "no_respond", "all"))


@pytest.mark.parametrize("word", ["nosuch", "~", "down*", "idle&nosuch"])
def test_no_state_is_refused(word: str) -> None:
    """Someone mistypes a state."""
    with pytest.raises(ValueError, match=r"."):
        is_in_state("IDLE", word)
