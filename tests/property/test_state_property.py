"""The state as a fold: undone, rebuilt, dumped and loaded, it is the same state."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spur.projections.apply import apply
from spur.projections.digest import settle, state_digest
from spur.projections.invariants import check_invariants
from spur.projections.react import resume
from spur.projections.snapshot import dump, load
from spur.projections.state import State
from spur.projections.undo import forget_undo, undo_to
from spur.testing.builders import Cluster, newborn, replay
from spur.testing.hall import Hall
from spur.testing.lifecycles import Lifecycles
from spur.testing.requests import random_request

ENOUGH = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # A seed is as good as a shrunk one, and stories are dear to shrink.
    suppress_health_check=[HealthCheck.too_slow],
)

SEEDS = st.integers(0, 2**32)
LENGTHS = st.integers(1, 50)


def story(seed: int, length: int, *, commits: bool = True, is_sealed: bool = False) -> Cluster:
    """Return a cluster of which so many things were asked, half of them about jobs."""
    chance = random.Random(seed)
    hall = Hall(checked=False, commits=commits, is_sealed=is_sealed)
    lives = Lifecycles(hall, seed=seed)
    cluster = hall.cluster
    for _ in range(length):
        if chance.randrange(2):
            lives.step()
        else:
            request, who = random_request(chance, cluster.state)
            cluster.ask(request, who)
        if chance.randrange(8) == 0:
            cluster.pass_seconds(chance.randrange(1_000))
    return cluster


def everything(state: State) -> Any:
    """Return all that a state holds: position, rows, indexes, debts and digest."""
    undo, state.undo = state.undo, type(state.undo)()
    try:
        rows = list(dump(state, 100))
    finally:
        state.undo = undo
    indexes = [
        (table.name, copy.deepcopy(index.contents()))
        for table in state.tables()
        for index in table.indexes()
    ]
    return rows, indexes, resume(state), state_digest(state)


@ENOUGH
@given(seed=SEEDS, length=LENGTHS, cut=st.floats(0, 1), forgotten=st.floats(0, 1))
def test_undo_gives_the_state_that_the_shorter_log_makes(
    seed: int, length: int, cut: float, forgotten: float
) -> None:
    """A leader loses its lead with any tail: what it undoes to is what others have."""
    cluster = story(seed, length, commits=False)
    state, entries = cluster.state, cluster.entries
    newest = everything(state)
    index = int(cut * state.index)
    forget_undo(state, int(forgotten * index))
    undo_to(state, index)
    assert everything(state) == everything(replay(entries[:index]))
    check_invariants(state)
    for entry in entries[index:]:
        apply(state, entry)
    assert everything(state) == newest


@ENOUGH
@given(seed=SEEDS, length=LENGTHS, limit=st.integers(1, 7))
def test_the_running_digest_equals_one_summed_anew(seed: int, length: int, limit: int) -> None:
    """Settled in slices between entries, or all at once at the end: the same sum."""
    entries = story(seed, length).entries
    sliced, whole = newborn(), replay(entries)
    for entry in entries:
        apply(sliced, entry)
        settle(sliced, limit)
    while sliced.unsettled:
        settle(sliced, limit)
    assert state_digest(sliced) == state_digest(whole)
    for table in sliced.tables():
        assert table.digest() == table.fresh_digest()


@ENOUGH
@given(seed=SEEDS, length=LENGTHS, cut=st.floats(0, 1), rows=st.integers(1, 9))
def test_a_loaded_snapshot_goes_on_as_the_log_does(
    seed: int, length: int, cut: float, rows: int
) -> None:
    """A replica starts from a snapshot in the middle and reads the rest of the log."""
    entries = story(seed, length).entries
    index = int(cut * len(entries))
    loaded = load(dump(replay(entries[:index]), rows))
    for entry in entries[index:]:
        apply(loaded, entry)
        forget_undo(loaded, entry.index)
    assert everything(loaded) == everything(replay(entries))


@ENOUGH
@given(seed=SEEDS, length=LENGTHS)
def test_two_replicas_of_one_log_are_equal(seed: int, length: int) -> None:
    """The leader decided, the follower only read: no difference, to the byte."""
    cluster = story(seed, length)
    assert everything(cluster.state) == everything(replay(cluster.entries))


@pytest.mark.parametrize("seed", range(5))
def test_deciding_and_applying_touch_nothing_outside(seed: int) -> None:
    """Under the seal no clock, no random source, no file and no socket is reached."""
    assert story(seed, 25, is_sealed=True).state.index > 1
