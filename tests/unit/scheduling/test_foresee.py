"""When and where those that wait would start, seen by who asks `squeue --start`."""

from __future__ import annotations

from typing import Any

from spur.scheduling.foresee import JOBS_MAX
from spur.scheduling.plan import plan_and_foresee
from spur.testing.floor import Floor
from spur.values.ids import JobId
from spur.values.tres import GresAsk, Per

ALL_OF_G1: dict[str, Any] = {
    "partitions": "gpu",
    "gres": (GresAsk("gpu", "mi300x", 8, Per.NODE),),
}

WHOLE_N5: dict[str, Any] = {"nodes_required": "n5", "tasks": 16, "nodes_max": 1}


def foreseen(floor: Floor) -> dict[JobId, tuple[int, str]]:
    """Plan, let it happen, and return after how many seconds each would start, and where."""
    floor.cycle()
    _, starts = plan_and_foresee(floor.state, floor.cluster.now_ns, floor.queue)
    now_ns = floor.cluster.now_ns
    return {
        each.job_id: (round((each.start_ns - now_ns) / 60e9), ",".join(each.nodes))
        for each in starts
    }


def test_each_starts_when_the_one_before_has_ended() -> None:
    """One job has all GPUs for an hour; two others want them, for ten minutes each."""
    floor = Floor()
    floor.submit(limit_s=3600, **ALL_OF_G1)
    second, third = floor.submit(limit_s=600, **ALL_OF_G1), floor.submit(limit_s=600, **ALL_OF_G1)
    assert foreseen(floor) == {second: (60, "g1"), third: (70, "g1")}


def test_a_short_job_goes_before_what_is_kept() -> None:
    """Half of n5 runs for an hour and the next wants all of it.

    Of two that want a quarter, the short one runs already, and the long one comes behind.
    """
    floor = Floor()
    floor.submit(nodes_required="n5", tasks=8, limit_s=3600, partitions="low")
    whole = floor.submit(limit_s=600, partitions="low", **WHOLE_N5)
    quarter: dict[str, Any] = {"nodes_required": "n5", "tasks": 4, "nodes_max": 1}
    floor.submit(limit_s=600, partitions="low", **quarter)
    long = floor.submit(limit_s=7200, partitions="low", **quarter)
    assert foreseen(floor) == {whole: (60, "n5"), long: (70, "n5")}


def test_what_no_time_limit_ends_is_not_foreseen() -> None:
    """A job without a time limit has the node."""
    floor = Floor()
    floor.submit(limit_s=0, partitions="low", **WHOLE_N5)
    floor.submit(limit_s=600, partitions="low", **WHOLE_N5)
    assert foreseen(floor) == {}


def test_who_waits_for_something_else_is_not_foreseen() -> None:
    """Held, later, and in a partition that is down."""
    floor = Floor()
    for ask in ({"hold": True}, {"begin_s": 600.0}, {"partitions": "closed"}):
        floor.submit(**ask)
    assert foreseen(floor) == {}


def test_a_long_queue_is_foreseen_in_part() -> None:
    """A thousand equal jobs for one node: the first hundred are told when."""
    floor = Floor(checked=False)
    for _ in range(JOBS_MAX + 50):
        floor.submit(limit_s=60, **WHOLE_N5)
    found = foreseen(floor)
    assert [minutes for minutes, _ in found.values()] == list(range(1, JOBS_MAX + 1))
