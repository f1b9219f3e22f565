"""Plans for het jobs: all components at once, each on nodes of its own, or none."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from spur.testing.builders import actor
from spur.testing.floor import Floor
from spur.testing.hall import ASK, SPEC, het_submission
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Phase, Reason
from spur.wire.jobs import JobAccepted

ALL_OF_N5: dict[str, Any] = {"nodes_required": "n5", "tasks": 16, "nodes_max": 1}


def component(partitions: str = "debug", limit_s: int = 600, **ask: Any) -> JobSpec:
    """Return a component of one task, but for these fields of its ask."""
    return replace(
        SPEC,
        partitions=tuple(PartitionName(name) for name in partitions.split(",")),
        account="",
        qos="",
        time_limit_s=limit_s,
        ask=replace(ASK, memory_mib=0, **ask),
    )


def submit(floor: Floor, *specs: JobSpec) -> list[JobId]:
    """Submit a het job; return the ids of its components."""
    outcome = floor.cluster.ask(het_submission(*specs), actor(1001))
    assert isinstance(outcome, JobAccepted), outcome
    return [JobId(outcome.job_id + offset) for offset in range(len(specs))]


def test_components_get_nodes_of_their_own() -> None:
    """Two small components would fit one node together, and get two."""
    floor = Floor()
    ids = submit(floor, component(), component())
    index = floor.state.index
    floor.cycle()
    assert [floor.given(job_id) for job_id in ids] == ["n1[0] 500M", "n2[0] 500M"]
    starts = [floor.state.runs[job_id].started for job_id in ids]
    assert len({started.start_ns for started in starts if started is not None}) == 1
    assert floor.state.index == index + 1


def test_nothing_starts_while_one_component_has_no_room() -> None:
    """The second component's node is held; the first one's is free, and others may use it."""
    floor = Floor()
    held = floor.submit(**ALL_OF_N5)
    floor.cycle()
    ids = submit(floor, component(nodes_required="n1"), component(**ALL_OF_N5))
    short = floor.submit(nodes_required="n1", tasks=4, limit_s=300)
    floor.cycle()
    assert [floor.given(job_id) for job_id in ids] == ["", ""]
    assert floor.reason(ids[1]) is Reason.RESOURCES
    assert floor.given(short)
    floor.end(short)
    floor.end(held)
    floor.cycle()
    assert all(floor.given(job_id) for job_id in ids)


def test_a_long_job_does_not_keep_a_het_job_waiting() -> None:
    """The het job starts in ten minutes at the latest; a job that takes longer stays off."""
    floor = Floor()
    floor.submit(**ALL_OF_N5)
    floor.cycle()
    submit(floor, component(nodes_required="n1", tasks=4), component(**ALL_OF_N5))
    long = floor.submit(nodes_required="n1", tasks=4, limit_s=1_200)
    floor.cycle()
    assert not floor.given(long)


def test_a_component_may_start_in_any_of_its_partitions() -> None:
    """The first component's first partition is down, and its second one is not."""
    floor = Floor()
    ids = submit(floor, component("closed,debug"), component("gpu"))
    floor.cycle()
    assert [floor.given(job_id)[:2] for job_id in ids] == ["n1", "g1"]


def test_a_het_job_behind_another_waits_for_it() -> None:
    """Two het jobs want the same node; the one that was submitted first gets it."""
    floor = Floor()
    first = submit(floor, component(**ALL_OF_N5), component(nodes_required="n1"))
    second = submit(floor, component(**ALL_OF_N5), component(nodes_required="n2"))
    floor.cycle()
    assert [bool(floor.given(job_id)) for job_id in (*first, *second)] == [True, True, False, False]
    assert floor.state.runs[second[1]].phase is Phase.PENDING


def test_a_plan_made_anew_is_the_same() -> None:
    """A scheduler that was started just now knows the het jobs that wait."""
    floor = Floor()
    submit(floor, component(), component(**ALL_OF_N5))
    made = floor.plan()
    floor.queue = type(floor.queue)(floor.state)
    assert floor.plan() == made
    assert len(made.placements) == 2
