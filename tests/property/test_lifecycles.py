"""Lives of jobs drawn at random: all invariants hold, and all ways to a state agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spur.events.envelope import Entry
from spur.projections.apply import apply
from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.projections.react import resume
from spur.projections.snapshot import dump, load
from spur.projections.state import State
from spur.projections.undo import undo_to
from spur.testing.builders import SMALL_CONFIG, replay
from spur.testing.hall import Hall
from spur.testing.steplives import STEP_WEIGHTS, StepLives
from spur.values.states import NodeShareState, Phase


def config(policy: str) -> str:
    """Return the small configuration under a policy, with records that are soon purged."""
    more = f'name = "hall"\nrequeue_policy = "{policy}"\nmin_job_age_s = 60'
    return SMALL_CONFIG.replace('name = "hall"', more, 1)


POLICIES = st.sampled_from(("slurm", "confirmed"))
SEEDS = st.integers(0, 1 << 32)


def loaded(state: State) -> State:
    """Return the state as a snapshot of it would give it back."""
    return load(dump(state, 7))


@settings(max_examples=60, deadline=None)
@given(
    policy=POLICIES, seed=SEEDS, steps=st.lists(st.sampled_from(sorted(STEP_WEIGHTS)), max_size=60)
)
def test_any_sequence_of_requests_keeps_every_invariant(
    policy: str, seed: int, steps: list[str]
) -> None:
    """Users, scheduler, agents and time do whatever comes to mind, in any order."""
    lives = StepLives(Hall(config(policy)), seed=seed)
    for step in ("submit", "submit_array", "place", "answer", *steps):
        lives.step(step)


@settings(max_examples=12, deadline=None)
@given(policy=POLICIES, seed=SEEDS)
def test_a_long_story_ends_with_every_job_accounted_for(policy: str, seed: int) -> None:
    """A cluster lives for a while; then its agents answer all that they were told."""
    hall = Hall(config(policy))
    lives = StepLives(hall, seed=seed)
    lives.run(250)
    lives.settle()
    for job_id in hall.state.allocations.jobs():
        run = hall.state.runs[job_id]
        waits = run.started is not None and NodeShareState.LOST in run.started.states
        assert run.phase is Phase.RUNNING or waits


@settings(max_examples=12, deadline=None)
@given(policy=POLICIES, seed=SEEDS)
def test_replay_and_snapshot_give_the_state_that_was_kept(policy: str, seed: int) -> None:
    """A replica starts from the log, another from a snapshot; both are as the leader is."""
    hall = Hall(config(policy), checked=False)
    StepLives(hall, seed=seed).run(200)
    kept = hall.state
    for other in (replay(hall.cluster.entries), loaded(kept)):
        check_invariants(other)
        assert state_digest(other) == state_digest(kept)
        assert resume(other) == resume(kept)


@settings(max_examples=12, deadline=None)
@given(policy=POLICIES, seed=SEEDS, share=st.floats(0, 1))
def test_an_undone_tail_leaves_no_trace(policy: str, seed: int, share: float) -> None:
    """A leader that lost its lead takes its tail back, and follows another's log instead."""
    hall = Hall(config(policy), checked=False, commits=False)
    lives = StepLives(hall, seed=seed)
    lives.run(150)
    state, entries = hall.state, hall.cluster.entries
    index = 1 + int(share * (len(entries) - 1))
    after = state_digest(state)
    undo_to(state, index)
    check_invariants(state)
    assert state_digest(state) == state_digest(replay(entries[:index]))
    _follow(state, entries[index:])
    check_invariants(state)
    assert state_digest(state) == after


@settings(max_examples=12, deadline=None)
@given(policy=POLICIES, seed=SEEDS, share=st.floats(0, 1))
def test_a_story_goes_on_after_its_tail_was_undone(policy: str, seed: int, share: float) -> None:
    """A new leader goes on from the shorter log; agents were told of starts that never were."""
    hall = Hall(config(policy), checked=False, commits=False)
    lives = StepLives(hall, seed=seed)
    lives.run(100)
    state, entries = hall.state, hall.cluster.entries
    index = max(1, len(entries) - int(share * 60))
    undo_to(state, index)
    del entries[index:]
    for _ in range(50):
        lives.step()
        check_invariants(state)
    assert state_digest(state) == state_digest(replay(entries))


def _follow(state: State, entries: list[Entry]) -> None:
    for entry in entries:
        apply(state, entry, effects=False)


@pytest.mark.parametrize("policy", ["slurm", "confirmed"])
def test_the_same_seed_gives_the_same_log(policy: str) -> None:
    """Someone runs a failed seed again and meets the same story."""
    logs = []
    for _ in range(2):
        hall = Hall(config(policy), checked=False)
        StepLives(hall, seed=11).run(150)
        logs.append(hall.cluster.entries)
    assert logs[0] == logs[1]
