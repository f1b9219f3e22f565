"""What agents must be told, by whom it is owed, and what a new leader tells them again."""

from __future__ import annotations

from typing import Any

import pytest

from spur.projections.dispatch import KillRun, LaunchRun, SignalRun
from spur.projections.react import EFFECTS, Effect, resume
from spur.testing.builders import ADMIN, SMALL_CONFIG, replay
from spur.testing.hall import USER, Hall
from spur.values.arrays import TaskSet
from spur.values.ids import JobId
from spur.values.states import NodeShareState, Reach
from spur.wire.jobs import CancelJob, JobChanges, SignalJob, UpdateJob

LAUNCHED, ENDED, VOID = NodeShareState.LAUNCHED, NodeShareState.ENDED, NodeShareState.VOID


def owed(hall: Hall) -> list[tuple[str, str, int, int]]:
    """Return what a new leader would tell whom, of which job and attempt."""
    effects: list[Any] = resume(hall.state)
    return [(type(e).__name__, e.node, e.job_id, e.attempt) for e in effects]


def start_on_two(hall: Hall) -> JobId:
    """Start a job on n1 and n2."""
    return hall.start(hall.submit(), hall.share("n1"), hall.share("n2"))


def test_a_launch_is_owed_until_its_node_answers() -> None:
    """The leader dies before both nodes have answered: the next tells the one that has not."""
    hall = Hall()
    job_id = start_on_two(hall)
    hall.report("n2", job_id, LAUNCHED)
    assert owed(hall) == [("LaunchRun", "n1", job_id, 1)]
    hall.report("n1", job_id, VOID)
    hall.report("n2", job_id, ENDED)
    hall.submit()
    assert owed(hall) == []


def test_a_death_is_owed_until_its_node_reports_it() -> None:
    """The leader dies after a cancel: the next tells every node that may have the job alive."""
    hall = Hall()
    job_id = start_on_two(hall)
    hall.report("n1", job_id, LAUNCHED)
    hall.cluster.ask(CancelJob(job_id, None), USER)
    assert owed(hall) == [("KillRun", "n1", job_id, 1), ("KillRun", "n2", job_id, 1)]
    hall.report("n1", job_id, ENDED)
    assert owed(hall) == [("KillRun", "n2", job_id, 1)]
    hall.report("n2", job_id, VOID)
    assert owed(hall) == []


def test_a_replayed_state_owes_the_same() -> None:
    """A replica starts from the log and is elected."""
    hall = Hall()
    start_on_two(hall)
    hall.cluster.ask(CancelJob(start_on_two(hall), None), USER)
    assert resume(replay(hall.cluster.entries)) == resume(hall.state)
    assert len(resume(hall.state)) == 4


def test_a_signal_is_owed_by_no_row() -> None:
    """What is done at most once is not done again by a new leader."""
    hall = Hall()
    job_id = hall.start(hall.submit())
    hall.report("n1", job_id, LAUNCHED)
    hall.cluster.ask(SignalJob(job_id, None, 10, Reach.ALL), USER)
    assert isinstance(hall.cluster.effects[-1], SignalRun)
    assert owed(hall) == []


def told(hall: Hall, kind: type[Effect]) -> list[Any]:
    """Return what was released of a kind, in order."""
    return [effect for effect in hall.cluster.effects if isinstance(effect, kind)]


def test_a_launch_says_what_the_agent_needs() -> None:
    """A task of an array starts: the agent hears its spec, task, shares and attachments."""
    hall = Hall()
    array = hall.submit(tasks=TaskSet(((3, 9, 3),)))
    share = hall.share("n1", gpus=5)
    hall.start(array, share, task=6)
    (launch,) = told(hall, LaunchRun)
    assert (launch.array_id, launch.tasks, launch.uid) == (array, TaskSet.single(6), 1001)
    assert launch.shares == (share,)
    assert launch.attachments == hall.state.arrays[array].attachments
    assert launch.spec == hall.state.jobs[array].spec


def test_a_changed_job_is_told_anew_to_who_has_not_answered() -> None:
    """A time limit changes between start and launch."""
    hall = Hall()
    job_id = start_on_two(hall)
    hall.report("n1", job_id, LAUNCHED)
    hall.cluster.ask(UpdateJob(job_id, None, JobChanges(time_limit_s=60)), ADMIN)
    launches = told(hall, LaunchRun)
    assert [(launch.node, launch.spec.time_limit_s) for launch in launches] == [
        ("n1", 3_600),
        ("n2", 3_600),
        ("n2", 60),
    ]


@pytest.mark.parametrize("policy", ["slurm", "confirmed"])
def test_an_agent_that_is_back_is_told_what_it_missed(policy: str) -> None:
    """A node was cut off while its job was cancelled and another started beside it."""
    more = f'name = "hall"\nrequeue_policy = "{policy}"'
    hall = Hall(SMALL_CONFIG.replace('name = "hall"', more, 1))
    cancelled = start_on_two(hall)
    hall.start(hall.submit(), hall.share("n2"))
    hall.cluster.ask(CancelJob(cancelled, None), USER)
    hall.register("n2", boot_id=b"another boot")
    assert [(type(e), e.node) for e in hall.cluster.effects[-2:]] == [  # type: ignore[attr-defined]  # all of them name a node
        (KillRun, "n2"),
        (LaunchRun, "n2"),
    ]


def test_each_kind_of_effect_says_who_owes_it() -> None:
    """Someone reads what the controller does because of the log."""
    assert {kind.__name__: EFFECTS[kind].table for kind in (LaunchRun, KillRun, SignalRun)} == {
        "LaunchRun": "runs",
        "KillRun": "runs",
        "SignalRun": "",
    }
