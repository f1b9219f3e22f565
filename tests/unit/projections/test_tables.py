"""Tables and their indexes: writes, the journal, the running digest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spur.projections.indexes import Group, Oldest, Ordered, SortedKeys, Spread
from spur.projections.tables import Journal, Row, Table, Undo, replace_rows


class Pot(Row, frozen=True):
    """A row."""

    colour: str
    weight: int | None
    names: tuple[str, ...] = ()


class Shelf:
    """A table with one index of each kind but `Oldest`."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.by_colour: Group[int, Pot] = Group(lambda _, row: row.colour or None)
        self.by_weight: Ordered[int, Pot] = Ordered(lambda _, row: row.weight)
        self.by_name: Spread[int, Pot] = Spread(lambda _, row: row.names)
        self.pots: Table[int, Pot] = Table(
            "pots", int, Pot, self.journal, self.by_colour, self.by_weight, self.by_name
        )


def test_rows_are_put_replaced_and_deleted() -> None:
    """The plain life of a row, seen through every index."""
    shelf = Shelf()
    shelf.pots.put(1, Pot("red", 5, ("a", "b")))
    shelf.pots.put(2, Pot("red", None, ("c",)))
    assert shelf.by_colour.keys("red") == [1, 2]
    assert (shelf.by_name.key("b"), shelf.by_name.key("x")) == (1, None)
    shelf.pots.put(1, Pot("blue", 7, ("b",)))
    shelf.pots.put(2, Pot("", 6))
    assert shelf.by_colour.values() == ["blue"]
    assert (shelf.by_colour.count("blue"), shelf.by_colour.count("red")) == (1, 0)
    assert list(shelf.by_weight.up_to(6)) == [2]
    assert shelf.by_weight.first() == (6, 2)
    assert (shelf.by_name.values(), len(shelf.by_name)) == (["b"], 1)
    shelf.pots.delete(1)
    assert 1 not in shelf.pots
    assert len(shelf.by_weight) == 1
    with pytest.raises(KeyError):
        shelf.pots.delete(1)


def test_a_refusing_index_leaves_everything_as_it_was() -> None:
    """Two rows claim one name: the second is refused, and no index has heard of it."""
    shelf = Shelf()
    shelf.pots.put(1, Pot("red", 5, ("a",)))
    before = (shelf.pots.digest(), [index.contents() for index in shelf.pots.indexes()])
    shelf.journal.open = []
    with pytest.raises(ValueError, match="claimed by 1 and 2"):
        shelf.pots.put(2, Pot("blue", 6, ("b", "a")))
    assert shelf.journal.open == []
    assert shelf.by_colour.values() == ["red"]
    assert (shelf.pots.digest(), [index.contents() for index in shelf.pots.indexes()]) == before


def test_the_journal_holds_what_each_write_replaced() -> None:
    """Undo works from the journal alone, the last write first."""
    shelf = Shelf()
    shelf.pots.put(1, Pot("red", 5))
    writes: Undo = []
    shelf.journal.open = writes
    shelf.pots.put(1, Pot("blue", 5))
    shelf.pots.put(2, Pot("blue", 6))
    shelf.pots.delete(1)
    shelf.journal.open = None
    assert [(key, former) for _, key, former in writes] == [
        (1, Pot("red", 5)),
        (2, None),
        (1, Pot("blue", 5)),
    ]


def test_the_running_digest_equals_one_summed_anew() -> None:
    """However often a row changes between two looks, the sum counts it as it is."""
    shelf = Shelf()
    for number in range(20):
        shelf.pots.put(number, Pot("red", number))
    assert shelf.pots.unsettled == 20
    assert shelf.pots.settle(5) == 5
    assert shelf.pots.unsettled == 15
    shelf.pots.put(3, Pot("green", 3))
    shelf.pots.put(3, Pot("blue", 3))
    shelf.pots.delete(4)
    shelf.pots.put(30, Pot("red", 1))
    shelf.pots.delete(30)
    assert shelf.pots.digest() == shelf.pots.fresh_digest()
    assert shelf.pots.unsettled == 0
    for key in shelf.pots.sorted_keys():
        shelf.pots.delete(key)
    assert shelf.pots.digest() == bytes(32)


def test_the_digest_depends_on_table_key_and_row() -> None:
    """The same row under another key, or in another table, is another state."""

    def digest(name: str, key: int, row: Pot) -> bytes:
        table: Table[int, Pot] = Table(name, int, Pot, Journal())
        table.put(key, row)
        return table.digest()

    digests = {
        digest("pots", 1, Pot("red", 1)),
        digest("pans", 1, Pot("red", 1)),
        digest("pots", 2, Pot("red", 1)),
        digest("pots", 1, Pot("red", 2)),
    }
    assert len(digests) == 4


def test_a_table_is_filled_only_once() -> None:
    """A snapshot is read into a newborn table, never over rows."""
    shelf = Shelf()
    shelf.pots.fill({2: Pot("red", 1, ("a",)), 1: Pot("blue", None)})
    assert shelf.by_name.key("a") == 2
    assert list(shelf.by_weight.up_to(9)) == [2]
    assert shelf.pots.digest() == shelf.pots.fresh_digest()
    with pytest.raises(ValueError, match="is not empty"):
        shelf.pots.fill({})


def test_replacing_rows_writes_only_what_differs() -> None:
    """A new configuration that changes one of three rows is one row change."""
    shelf = Shelf()
    shelf.pots.fill({1: Pot("red", 1), 2: Pot("red", 2), 3: Pot("red", 3)})
    writes: Undo = []
    shelf.journal.open = writes
    replace_rows(shelf.pots, {4: Pot("red", 4), 1: Pot("red", 1), 2: Pot("blue", 2)})
    assert [key for _, key, _ in writes] == [3, 4, 2]


def queue() -> tuple[Table[int, Pot], Oldest[int, Pot]]:
    """Return a table whose rows come in order of weight."""
    oldest: Oldest[int, Pot] = Oldest(lambda _, row: row.weight or 0)
    return Table("pots", int, Pot, Journal(), oldest), oldest


def test_oldest_follows_both_ends() -> None:
    """Rows come new, go old, and an undo does the reverse of each."""
    pots, oldest = queue()
    assert oldest.first() is None
    for number in (1, 2, 3):
        pots.put(number, Pot("red", number))
    pots.delete(1)
    assert oldest.first() == (2, 2)
    pots.restore(1, Pot("red", 1))
    pots.restore(3, None)
    pots.put(2, Pot("blue", 2))
    assert oldest.contents() == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    "write",
    [
        lambda pots: pots.delete(2),
        lambda pots: pots.put(9, Pot("red", 2)),
        lambda pots: pots.put(2, Pot("red", 8)),
    ],
)
def test_oldest_refuses_the_middle(write: Callable[[Any], None]) -> None:
    """A row that comes or goes out of turn would make the queue a lie."""
    pots, oldest = queue()
    for number in (1, 2, 3):
        pots.put(number, Pot("red", number))
    with pytest.raises(ValueError, match=r"older|oldest"):
        write(pots)
    assert oldest.contents() == [(1, 1), (2, 2), (3, 3)]
    assert pots[2] == Pot("red", 2)


@pytest.mark.parametrize("reads_every", [7, 1_000_000])
def test_a_queue_that_moves_on_does_not_grow(reads_every: int) -> None:
    """Jobs come with rising ids and leave in that order, for months, read or not."""
    keys: SortedKeys[int, Pot] = SortedKeys()
    pots: Table[int, Pot] = Table("pots", int, Pot, Journal(), keys)
    for number in range(20_000):
        pots.put(number, Pot("red", None))
        if number >= 10:
            pots.delete(number - 10)
        if number % reads_every == 1:
            assert len(list(keys.after(-1))) == len(pots)
    assert len(keys._keys._items) + len(keys._keys._came) < 6_000
