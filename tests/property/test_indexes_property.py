"""Indexes under any changes: what they say is what the rows say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spur.projections import lazysort
from spur.projections.indexes import Counts, Group, Groups, Ordered, SortedGroup, SortedKeys
from spur.projections.tables import Journal, Row, Table


class Pot(Row, frozen=True):
    """A row."""

    colour: int | None
    weight: int | None


def _numbers_of(_: int, row: Pot) -> set[int]:
    """Return both numbers of a row, once each."""
    return {number for number in (row.colour, row.weight) if number is not None}


SOME = st.one_of(st.none(), st.integers(0, 3))
KEYS = st.integers(0, 12)
CHANGES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.builds(Pot, SOME, SOME)), KEYS))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(changes=CHANGES, sweep=st.integers(0, 3), recent=st.integers(0, 3))
def test_walks_give_what_a_sorted_look_at_the_rows_gives(
    changes: list[tuple[int, Pot | None, int]], sweep: int, recent: int
) -> None:
    """Rows come, change, go and come back, and somebody looks in between."""
    keys: SortedKeys[int, Pot] = SortedKeys()
    groups: SortedGroup[int, Pot] = SortedGroup(lambda _, row: row.colour)
    plain: Group[int, Pot] = Group(lambda _, row: row.colour)
    ordered: Ordered[int, Pot] = Ordered(lambda _, row: row.weight)
    several: Groups[int, Pot] = Groups(_numbers_of)
    counts: Counts[int, Pot] = Counts(_numbers_of)
    table: Table[int, Pot] = Table(
        "pots", int, Pot, Journal(), keys, groups, plain, ordered, several, counts
    )
    former = lazysort._SWEEP_MIN, lazysort._RECENT_MAX, lazysort._UNREAD_MAX
    lazysort._SWEEP_MIN, lazysort._RECENT_MAX = sweep, recent
    lazysort._UNREAD_MAX = 1 + recent
    try:
        for key, row, look in changes:
            if row is None:
                table.restore(key, None)
            else:
                table.put(key, row)
            if look > 6:
                continue
            rows = table.rows
            assert list(keys.after(look)) == sorted(key for key in rows if key > look)
            in_group = sorted(key for key, row in rows.items() if row.colour == look)
            assert list(groups.after(look, -1)) == in_group == plain.keys(look)
            assert groups.count(look) == plain.count(look) == len(in_group)
            with_number = sorted(key for key, row in rows.items() if look in _numbers_of(key, row))
            assert several.keys(look) == with_number
            assert (look in counts.values()) == bool(with_number) == (look in several.values())
            weighed = sorted((r.weight, k) for k, r in rows.items() if r.weight is not None)
            light = [key for weight, key in weighed if weight <= look]
            assert list(ordered.up_to(look)) == light
            assert ordered.first() == (weighed[0] if weighed else None)
            assert (len(ordered), len(keys)) == (len(weighed), len(rows))
        for index in table.indexes():
            fresh = index.fresh()
            fresh.fill(table.rows)
            assert fresh.contents() == index.contents()
    finally:
        lazysort._SWEEP_MIN, lazysort._RECENT_MAX, lazysort._UNREAD_MAX = former
