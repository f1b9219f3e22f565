"""Undo: what it must restore, and that what checks it would notice if it did not."""

from __future__ import annotations

from typing import Any

import pytest

from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.projections.tables import Table
from spur.projections.undo import forget_undo, undo_to
from spur.testing.builders import replay
from spur.testing.hall import Hall
from spur.values.errors import InvariantBroken
from spur.values.states import NodeShareState


def uncommitted_life() -> tuple[Hall, int]:
    """Return a hall whose last entries start a job, and the index before them."""
    hall = Hall(commits=False)
    job_id = hall.submit()
    index = hall.state.index
    hall.start(job_id, hall.share("n1", cpus=4, gpus=0b11))
    hall.report("n1", job_id, NodeShareState.LAUNCHED)
    return hall, index


def test_an_undone_start_frees_what_it_held() -> None:
    """A start was never committed: its CPUs and GPUs are nobody's."""
    hall, index = uncommitted_life()
    state = hall.state
    assert state.allocations.use(state.nodes.sorted_keys()[0]).gpus == 0b11
    undo_to(state, index)
    assert state.allocations.nodes() == []
    assert state_digest(state) == state_digest(replay(hall.cluster.entries[:index]))
    check_invariants(state)


def test_undo_goes_no_further_than_it_may() -> None:
    """Ahead of the state, and below what was committed, there is nothing to undo to."""
    hall, index = uncommitted_life()
    state = hall.state
    newest = state.index
    forget_undo(state, index)
    for wrong in (newest + 1, index - 1):
        with pytest.raises(ValueError, match=f"can be undone: {index} to {newest}"):
            undo_to(state, wrong)
    assert state.index == newest
    undo_to(state, index)
    assert (state.index, len(state.undo)) == (index, 0)


def test_an_undo_that_forgets_the_indexes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: rows are restored, what is derived from them is not."""

    def forgetful(table: Table[Any, Any], key: Any, row: Any) -> None:
        if row is None:
            table.rows.pop(key, None)
        else:
            table.rows[key] = row

    hall, index = uncommitted_life()
    monkeypatch.setattr(Table, "restore", forgetful)
    undo_to(hall.state, index)
    with pytest.raises(InvariantBroken, match=r"index \d of table 'runs' differs from its rows"):
        check_invariants(hall.state)


def test_an_undo_that_forgets_the_digest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the running sum still counts what was undone; the next checkpoint stops."""
    hall, index = uncommitted_life()
    state_digest(hall.state)
    restore = Table.restore

    def forgetful(table: Table[Any, Any], key: Any, row: Any) -> None:
        restore(table, key, row)
        table._unsettled.clear()

    monkeypatch.setattr(Table, "restore", forgetful)
    undo_to(hall.state, index)
    assert state_digest(hall.state) != state_digest(replay(hall.cluster.entries[:index]))
    with pytest.raises(InvariantBroken, match="the running digest of table 'runs' differs"):
        check_invariants(hall.state)
