"""Why jobs wait, in Slurm's words, as events of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spur.testing.builders import ADMIN
from spur.testing.floor import Floor
from spur.values.arrays import TaskSet
from spur.values.config import PartitionState
from spur.values.ids import PartitionName
from spur.values.jobspec import Sharing
from spur.values.states import NodeAction, Reason
from spur.values.tres import GresAsk, Per
from spur.wire.nodes import UpdateNodes
from spur.wire.partitions import UpdatePartition

EIGHT = (GresAsk("gpu", "mi300x", 8, Per.NODE),)


def nothing(floor: Floor) -> None:
    """Leave the floor as it is."""


def drain(nodes: str) -> Callable[[Floor], object]:
    return lambda floor: floor.cluster.ask(UpdateNodes(nodes, NodeAction.DRAIN, "disk"), ADMIN)


def close(state: PartitionState) -> Callable[[Floor], object]:
    update = UpdatePartition(PartitionName("debug"), state)
    return lambda floor: floor.cluster.ask(update, ADMIN)


ALONE: list[tuple[Callable[[Floor], object], dict[str, Any], Reason]] = [
    (nothing, {"begin_s": 3600}, Reason.BEGIN_TIME),
    (nothing, {"hold": True}, Reason.HELD_BY_USER),
    (nothing, {"partitions": "closed"}, Reason.PARTITION_DOWN),
    (close(PartitionState.INACTIVE), {}, Reason.PARTITION_INACTIVE),
    (nothing, {"limit_s": 3600}, Reason.PARTITION_TIME_LIMIT),
    (nothing, {"limit_s": 0}, Reason.PARTITION_TIME_LIMIT),
    (nothing, {"partitions": "small", "nodes_min": 3, "tasks": 3}, Reason.PARTITION_NODE_LIMIT),
    (drain("n3"), {"nodes_required": "n3"}, Reason.REQ_NODE_NOT_AVAIL),
    (drain("n[5-6]"), {"partitions": "whole"}, Reason.NODES_UNAVAILABLE),
    (drain("n5"), {"features": "ib", "nodes_min": 2, "tasks": 2}, Reason.NODES_UNAVAILABLE),
    (nothing, {"features": "gpu"}, Reason.BAD_CONSTRAINTS),
    (nothing, {"nodes_min": 7, "tasks": 7}, Reason.BAD_CONSTRAINTS),
    (nothing, {"memory_mib": 64_000}, Reason.BAD_CONSTRAINTS),
    (nothing, {"gres": EIGHT}, Reason.BAD_CONSTRAINTS),
    (nothing, {"gres": (GresAsk("fpga", "", 1, Per.NODE),)}, Reason.BAD_CONSTRAINTS),
    (nothing, {"nodes_required": "g1"}, Reason.BAD_CONSTRAINTS),
    (nothing, {"nodes_excluded": "n[1-6]"}, Reason.BAD_CONSTRAINTS),
    (nothing, {"sockets_per_node": 3}, Reason.BAD_CONSTRAINTS),
]


def name_of(value: object) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("first", "ask", "reason"), ALONE, ids=name_of)
def test_a_job_that_can_t_start_says_why(
    first: Callable[[Floor], object], ask: dict[str, Any], reason: Reason
) -> None:
    """No other job is there, and still it waits; a second cycle has nothing to add."""
    floor = Floor()
    job_id = floor.submit(**ask)
    first(floor)
    floor.cycle()
    assert (floor.given(job_id), floor.reason(job_id)) == ("", reason)
    assert floor.plan()[:4] == ((), (), (), False)


def test_the_first_that_waits_needs_resources_and_the_others_wait_for_it() -> None:
    """All GPUs are held; two jobs want them, of which one has been made nicer."""
    floor = Floor()
    floor.submit(partitions="gpu", gres=EIGHT, limit_s=900)
    second = floor.submit(partitions="gpu", gres=EIGHT)
    third = floor.submit(partitions="gpu", gres=EIGHT, by=1002)
    floor.cycle()
    assert [floor.reason(job_id) for job_id in (second, third)] == [
        Reason.RESOURCES,
        Reason.PRIORITY,
    ]


def test_the_reason_goes_with_the_job_that_it_was_of() -> None:
    """The first that waited starts; the next is now the first."""
    floor = Floor()
    running, second, third = (floor.submit(partitions="gpu", gres=EIGHT) for _ in range(3))
    floor.cycle()
    floor.end(running)
    floor.cycle()
    assert floor.given(second)
    assert floor.reason(third) is Reason.RESOURCES
    floor.end(second)
    floor.cycle()
    floor.cycle()
    assert len(floor.state.reasons) == 0


def test_a_job_of_several_partitions_shows_the_reason_of_the_last_one_tried() -> None:
    """One of its partitions is full, the other down."""
    floor = Floor()
    floor.submit(partitions="gpu", gres=EIGHT)
    job_id = floor.submit(partitions="gpu,closed", gres=EIGHT)
    floor.cycle()
    assert floor.reason(job_id) is Reason.PARTITION_DOWN


def test_a_throttled_array_says_so() -> None:
    """--array=0-3%2: two tasks run, and the others wait for them."""
    floor = Floor()
    array = floor.submit(array=TaskSet(((0, 3, 1),)), throttle=2)
    floor.cycle()
    assert floor.state.allocations.running_tasks(array) == 2
    assert floor.reason(array) is Reason.ARRAY_TASK_LIMIT
    assert floor.plan()[:4] == ((), (), (), False)


def test_an_exclusive_job_waits_for_an_idle_node() -> None:
    """A whole node is asked for, on which a small job runs."""
    floor = Floor()
    floor.submit(nodes_required="n5")
    job_id = floor.submit(nodes_required="n5", sharing=Sharing.EXCLUSIVE)
    floor.cycle()
    assert (floor.given(job_id), floor.reason(job_id)) == ("", Reason.RESOURCES)


def test_a_job_s_own_reason_is_taken_back() -> None:
    """Its time to begin comes while all nodes are held: it waits like the others of its shape."""
    floor = Floor()
    floor.submit(partitions="gpu", gres=EIGHT)
    floor.submit(partitions="gpu", gres=EIGHT)
    later = floor.submit(partitions="gpu", gres=EIGHT, begin_s=60)
    floor.cycle()
    assert floor.reason(later) is Reason.BEGIN_TIME
    floor.tick(61)
    floor.cycle()
    assert floor.reason(later) is Reason.PRIORITY
