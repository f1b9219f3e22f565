"""The log in memory behaves like a plain list of entries, whatever is done to it."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spur.consensus import tail as tail_module
from spur.consensus.tail import Tail, entry_bytes
from spur.events.envelope import Entry
from spur.values.errors import InvariantBroken, PeerFault

sizes = st.integers(0, 40)


class TailAgainstList(RuleBasedStateMachine):
    """A tail beside a list that does the same in the plainest way."""

    def __init__(self) -> None:
        super().__init__()
        self.tail = Tail(5, 2)
        self.base = (5, 2)
        self.entries: list[Entry] = []

    def _next(self, size: int, rise: int) -> Entry:
        index, term = self.base
        if self.entries:
            index, term = self.entries[-1].index, self.entries[-1].term
        return Entry(index + 1, term + rise, 2, b"x" * size)

    @rule(size=sizes, rise=st.integers(0, 2))
    def append(self, size: int, rise: int) -> None:
        entry = self._next(size, rise)
        self.tail.append(entry, entry_bytes(entry.body, entry.blobs))
        self.entries.append(entry)

    @rule(added=st.lists(st.tuples(sizes, st.integers(0, 1)), max_size=30))
    def extend(self, added: list[tuple[int, int]]) -> None:
        before = len(self.entries)
        for size, rise in added:
            self.entries.append(self._next(size, rise))
        self.tail.extend(self.entries[before:])

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.entries) - 1))
        self.tail.truncate(self.entries[at].index)
        del self.entries[at:]

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, len(self.entries)))
        index = self.base[0] + count
        if count:
            self.base = (index, self.entries[count - 1].term)
        self.tail.trim(index)
        del self.entries[:count]

    @rule(ahead=st.integers(1, 9))
    def restart(self, ahead: int) -> None:
        entry = self._next(0, 1)
        self.base = (entry.index + ahead, entry.term)
        self.tail.restart(*self.base)
        self.entries = []

    @invariant()
    def is_the_same(self) -> None:
        tail, entries, (base, base_term) = self.tail, self.entries, self.base
        last = entries[-1] if entries else Entry(base, base_term, 0, b"")
        assert (tail.base, tail.base_term, tail.first) == (base, base_term, base + 1)
        assert (tail.last, tail.last_term) == (last.index, last.term)
        assert tail.slice(tail.first, tail.last) == entries
        assert [tail.term_at(entry.index) for entry in entries] == [e.term for e in entries]
        assert tail.bytes_held == sum(entry_bytes(e.body, e.blobs) for e in entries)

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        tail, entries = self.tail, self.entries
        index = data.draw(st.integers(self.base[0], tail.last))
        term = data.draw(st.integers(0, tail.last_term + 1))
        assert tail.holds(index, term) == (tail.term_at(index) == term)
        below = [e.index for e in entries if e.index <= index and e.term <= term]
        if below:
            assert tail.last_at_most(index, term) == below[-1]
        elif self.base[1] <= term:
            assert tail.last_at_most(index, term) == self.base[0]
        else:
            assert tail.last_at_most(index, term) == self.base[0] - 1
        if entries:
            first = data.draw(st.sampled_from(entries)).index
            limit = data.draw(st.integers(0, 500))
            sums, total = [], 0
            for entry in entries[first - self.base[0] - 1 :]:
                total += entry_bytes(entry.body, entry.blobs)
                sums.append(total)
            assert tail.fit(first, limit) == first + max(1, bisect_right(sums, limit)) - 1
            assert tail.bytes_between(first - 1, tail.last) == total
            lowest = tail.index_by_bytes(limit)
            assert tail.bytes_between(lowest, tail.last) <= limit
            assert lowest == self.base[0] or tail.bytes_between(lowest - 1, tail.last) > limit


@pytest.mark.parametrize("slice_count", [1, 3, 1024])
def test_tail_behaves_like_a_list(slice_count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries come, are replaced, and are forgotten in slices of any size."""
    monkeypatch.setattr(tail_module, "_TRIM_SLICE_COUNT", slice_count)
    TailAgainstList.TestCase.settings = settings(
        max_examples=40, stateful_step_count=30, deadline=None
    )
    case = TailAgainstList.TestCase("runTest")
    case.debug()


@given(
    good=st.integers(0, 5),
    index_off=st.integers(-2, 2),
    term_off=st.integers(-2, 0),
)
def test_entries_that_do_not_follow_are_not_taken(good: int, index_off: int, term_off: int) -> None:
    """One entry of a batch has a wrong index or a falling term: the log stays as it was."""
    tail = Tail(0, 0, [Entry(1, 3, 2, b"a")])
    batch = [Entry(2 + number, 3, 2, b"b") for number in range(good)]
    batch.append(Entry(2 + good + index_off, 3 + term_off, 2, b"c"))
    if index_off == 0 and term_off == 0:
        tail.extend(batch)
        assert tail.last == good + 2
        return
    with pytest.raises(PeerFault):
        tail.extend(batch)
    assert (tail.last, tail.last_term) == (1, 3)
    assert tail.bytes_held == entry_bytes(b"a", ())


def test_tail_below_its_base_is_out_of_reach() -> None:
    """What was forgotten can neither be read nor be cut."""
    tail = Tail(0, 0, [Entry(number, 1, 2, b"") for number in range(1, 6)])
    tail.trim(3)
    for ask in (lambda: tail.entry(3), lambda: tail.slice(3, 4), lambda: tail.truncate(3)):
        with pytest.raises(InvariantBroken):
            ask()
    assert tail.last_at_most(2, 0) == 2
    assert not tail.holds(2, 1)
