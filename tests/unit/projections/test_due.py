"""What falls due: oldest first, a bounded number, one consequence a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from spur.events.cluster import ClockAccepted
from spur.projections.due import DUE_SOURCES, Due, due, falls_due, next_due_ns
from spur.projections.state import State
from spur.testing.builders import CLUSTER, Cluster, actor, newborn
from spur.values.errors import Rejection
from spur.wire.cluster import Tick
from spur.wire.declare import Done


def item(time_ns: int, key: int, events: int = 1) -> Due:
    """Return a consequence whose events carry its time."""
    return Due(time_ns, "pots", key, (ClockAccepted(time_ns),) * events)


@pytest.fixture
def sources() -> Iterator[list[list[Due]]]:
    """Give the state two sources of its own, and take them away again."""
    lists: list[list[Due]] = [[], []]

    def source(number: int) -> None:
        @falls_due
        def listed(state: State, now_ns: int, limit: int) -> Iterable[Due]:
            return [entry for entry in lists[number] if entry.time_ns <= now_ns][:limit]

    source(0)
    source(1)
    yield lists
    del DUE_SOURCES[-2:]


def test_the_oldest_of_all_sources_come_first(sources: list[list[Due]]) -> None:
    """Purges and time limits are due; time does not care which is which."""
    sources[0] += [item(1, 10), item(4, 11)]
    sources[1] += [item(2, 12), item(3, 13), item(9, 14)]
    assert [entry.time_ns for entry in due(newborn(), 5)] == [1, 2, 3, 4]
    assert [entry.time_ns for entry in due(newborn(), 5, limit=3)] == [1, 2, 3]


def test_one_row_has_one_consequence(sources: list[list[Due]]) -> None:
    """A job's time limit and its lost node fall due at once: the second is judged again."""
    sources[0] += [item(1, 10)]
    sources[1] += [item(2, 10), item(3, 11)]
    assert [entry.time_ns for entry in due(newborn(), 5)] == [1, 3]


def test_the_limit_counts_events(sources: list[list[Due]]) -> None:
    """One consequence may be several events; an entry holds a bounded number of them."""
    sources[0] += [item(1, 10, events=2), item(2, 11, events=2), item(3, 12)]
    assert [entry.time_ns for entry in due(newborn(), 5, limit=3)] == [1]
    assert [entry.time_ns for entry in due(newborn(), 5, limit=1)] == [1]


def test_the_next_time_is_known_before_it_comes(sources: list[list[Due]]) -> None:
    """The shell sets its timer by it."""
    assert next_due_ns(newborn()) is None
    sources[0] += [item(70, 10)]
    sources[1] += [item(60, 11)]
    assert next_due_ns(newborn()) == 60
    assert due(newborn(), 5) == []


def test_the_clock_turns_what_is_due_into_events(sources: list[list[Due]]) -> None:
    """The leader's timer rang; what is due becomes one entry."""
    cluster = Cluster()
    sources[0] += [item(cluster.now_ns - 5, 10)]
    before = cluster.state.index
    assert cluster.ask(Tick(), CLUSTER) == Done()
    assert cluster.state.index == before + 1
    assert cluster.state.cluster[1].clock_accepted_ns == cluster.state.time_ns


def test_the_clock_with_nothing_due_makes_no_entry(sources: list[list[Due]]) -> None:
    """The timer rang too early."""
    cluster = Cluster()
    before = cluster.state.index
    assert cluster.ask(Tick(), CLUSTER) == Done()
    assert cluster.state.index == before


def test_only_the_cluster_moves_the_clock() -> None:
    """A user sends the clock's command over the socket."""
    refused = Cluster().ask(Tick(), actor(0, host_role="controller"))
    assert isinstance(refused, Rejection)
    assert refused.code == "not-permitted"
