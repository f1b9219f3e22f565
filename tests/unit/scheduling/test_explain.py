"""`spur why`: each filter's verdict on a waiting job."""

from __future__ import annotations

from typing import Any

import pytest

from spur.testing.builders import ADMIN
from spur.testing.floor import Floor
from spur.values.arrays import TaskSet
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.jobspec import Sharing
from spur.values.states import JobState, NodeAction, Reason
from spur.values.tres import GresAsk, Per
from spur.wire.nodes import UpdateNodes
from spur.wire.why import ExplainJob, JobExplained


def told(floor: Floor, job_id: JobId, task: int | None = None) -> JobExplained:
    """Ask why."""
    answer = floor.cluster.ask(ExplainJob(job_id, task))
    assert isinstance(answer, JobExplained)
    return answer


def lines(explained: JobExplained) -> dict[str, str]:
    """Return the verdicts as "asked | available | verdict" by filter."""
    return {
        row.filter: f"{row.asked} | {row.available} | {'passes' if row.passes else row.reason}"
        for row in explained.verdicts
    }


def test_a_job_that_waits_for_gpus_is_told_how_many_are_free() -> None:
    """Six of the eight GPUs of one node are held; five are asked, of that kind."""
    floor = Floor()
    floor.submit(partitions="gpu", gres=(GresAsk("gpu", "mi300x", 6, Per.NODE),))
    job_id = floor.submit(partitions="gpu", gres=(GresAsk("gpu", "mi300x", 5, Per.NODE),))
    floor.cycle()
    explained = told(floor, job_id)
    assert (explained.state, explained.reason) == (JobState.PENDING, Reason.RESOURCES)
    shown = lines(explained)
    assert shown["hold"] == "released | released | passes"
    assert shown["nodes of the partition's jobs"].endswith("| any number of nodes | passes")
    assert shown["partition in use"] == "UP or DRAIN | UP | passes"
    assert shown["node size"].endswith("| 1 of 2 nodes | passes")
    assert shown["free CPUs"] == "1 | 4 on 1 nodes | passes"
    assert shown["free GPUs"] == "5 mi300x per node | 2, up to 2 on a node | Resources"
    assert shown["room now"] == "1 tasks on 1 nodes | room for 0 on 0 nodes | Resources"


def test_a_job_that_wants_nodes_for_itself_is_told_what_is_lacking() -> None:
    """Every node has a job, and one wants two of them whole."""
    floor = Floor()
    floor.submit(tasks=6, nodes_min=6, nodes_max=6, sharing=Sharing.EXCLUSIVE)
    job_id = floor.submit(nodes_min=2, nodes_max=2, sharing=Sharing.EXCLUSIVE)
    floor.cycle()
    shown = lines(told(floor, job_id))
    assert shown["idle nodes"] == "2 | 0 | Resources"
    assert shown["free CPUs"] == "2 | 0 on 6 nodes | Resources"


ALONE: list[tuple[dict[str, Any], str, str]] = [
    ({"hold": True}, "hold", "released | held (USER) | JobHeldUser"),
    ({"begin_s": 90}, "begin time", "reached | in 90 s | BeginTime"),
    ({"partitions": "closed"}, "partition in use", "UP or DRAIN | DOWN | PartitionDown"),
    (
        {"limit_s": 3600},
        "time of the partition's jobs",
        "3600 s | 1800 s | PartitionTimeLimit",
    ),
    ({"features": "gpu"}, "node features", "gpu | 0 of 6 nodes | BadConstraints"),
    (
        {"nodes_excluded": "n[1-6]"},
        "node not excluded",
        "n[1-6] | 0 of 6 nodes | ReqNodeNotAvail",
    ),
    ({"nodes_required": "n[5-6]"}, "node list", "n[5-6] | without n6 | ReqNodeNotAvail"),
]


@pytest.mark.parametrize(("ask", "row", "line"), ALONE, ids=str)
def test_the_filter_that_keeps_a_job_back_says_so(ask: dict[str, Any], row: str, line: str) -> None:
    """Node n6 is drained, and a job waits for one cause."""
    floor = Floor()
    floor.cluster.ask(UpdateNodes("n6", NodeAction.DRAIN, "disk"), ADMIN)
    explained = told(floor, floor.submit(**ask))
    assert lines(explained)[row] == line


def test_a_node_of_the_list_that_is_full_is_named() -> None:
    """Node n1 is asked for and full, while all others are idle."""
    floor = Floor()
    floor.submit(nodes_required="n1", tasks=4, nodes_max=1)
    job_id = floor.submit(nodes_required="n1")
    floor.cycle()
    shown = lines(told(floor, job_id))
    assert shown["room now"] == (
        "1 tasks on 1 nodes | room for 1 on 5 nodes, none on n1 | Resources"
    )


def test_a_running_job_waits_for_nothing() -> None:
    """Someone asks too late."""
    floor = Floor()
    job_id = floor.submit()
    floor.cycle()
    explained = told(floor, job_id)
    assert (explained.state, explained.verdicts) == (JobState.RUNNING, ())


def test_a_task_and_what_waits_of_an_array_are_found() -> None:
    """--array=0-3%2: two tasks run."""
    floor = Floor()
    array = floor.submit(array=TaskSet(((0, 3, 1),)), throttle=2)
    floor.cycle()
    assert told(floor, array, 0).state is JobState.RUNNING
    assert told(floor, array, 3).job_id == array
    shown = lines(told(floor, array))
    assert shown["array throttle"] == "another task | 2 of 2 tasks run | JobArrayTaskLimit"


@pytest.mark.parametrize("task", [None, 7])
def test_an_unknown_job_is_said_to_be_none(task: int | None) -> None:
    """Someone mistypes a number."""
    floor = Floor()
    floor.submit(array=TaskSet(((0, 3, 1),)))
    outcome = floor.cluster.ask(ExplainJob(JobId(1 if task else 99), task))
    assert isinstance(outcome, Rejection)
    assert outcome.code == "unknown-job"
