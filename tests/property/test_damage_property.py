"""Damaged entries: each is read as it was meant or stops the reader, and leaves no trace."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from spur.events.codec import UnreadableRecord, decode_envelope
from spur.events.envelope import Entry, EntryKind
from spur.projections.apply import ApplyFailed, apply, follow
from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.projections.undo import undo_to
from spur.testing.builders import newborn
from spur.testing.golden import read_ledger

GOLDEN = Path(__file__).parents[1] / "golden" / "ledger"
STRIDE = 40
"""Entries between two damaged ones, so that each property reads the ledger once."""


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=400))
def test_garbage_is_no_envelope(body: bytes) -> None:
    """A disk gives back something else than was written, and its check sum is right."""
    named = 7
    try:
        decode_envelope(body, 7)
    except UnreadableRecord as error:
        named = error.index
    assert named == 7


def damaged(entry: Entry, place: int, flip: int, cut: int) -> Entry:
    """Return the entry with some bits flipped, and perhaps its end cut off."""
    body = bytearray(entry.body)
    body[place % len(body)] ^= flip
    return replace(entry, body=bytes(body[: len(body) - cut % 3]))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(0, 1 << 16), st.integers(1, 255), st.integers(0, 2)),
        min_size=8,
        max_size=8,
    )
)
def test_a_damaged_entry_is_applied_whole_or_not_at_all(
    damages: list[tuple[int, int, int]],
) -> None:
    """Bits flip in an entry: what can't be read or is not legal has changed nothing."""
    state = newborn()
    for entry in read_ledger(GOLDEN):
        if entry.index % STRIDE == 0 and entry.kind == EntryKind.EVENTS:
            before = state_digest(state), state.chain, state.time_ns, state.term, state.index
            for damage in damages:
                named = entry.index
                try:
                    apply(state, damaged(entry, *damage))
                except (UnreadableRecord, ApplyFailed) as error:
                    named = error.index
                else:
                    undo_to(state, entry.index - 1)
                assert named == entry.index
                after = state_digest(state), state.chain, state.time_ns, state.term, state.index
                assert after == before
        follow(state, [entry])
    check_invariants(state)
