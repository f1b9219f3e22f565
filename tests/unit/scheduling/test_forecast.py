"""`sbatch --test-only`: when a job would start that nobody submitted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.testing.builders import ADMIN, actor
from spur.testing.floor import Floor
from spur.testing.hall import ASK, SPEC
from spur.values.errors import Rejection
from spur.values.ids import PartitionName
from spur.values.jobspec import JobSpec, Sharing
from spur.values.states import NodeAction
from spur.values.tres import GresAsk, Per
from spur.wire.forecasts import ForecastJob, JobForecast
from spur.wire.nodes import UpdateNodes

USER = actor(1001)


def spec_of(
    *, partitions: str = "debug", limit_s: int = 600, begin_ns: int = 0, **ask: Any
) -> JobSpec:
    names = tuple(PartitionName(name) for name in partitions.split(","))
    wanted = replace(ASK, memory_mib=0, **ask)
    return replace(SPEC, partitions=names, ask=wanted, time_limit_s=limit_s, begin_ns=begin_ns)


def told(floor: Floor, spec: JobSpec) -> JobForecast:
    answer = floor.cluster.ask(ForecastJob(spec), USER)
    assert isinstance(answer, JobForecast), answer
    return answer


@pytest.mark.parametrize(
    ("spec", "nodes", "cpus"),
    [
        (spec_of(), "n1", 1),
        (spec_of(tasks=6, nodes_min=2, nodes_max=2, cpus_per_task=2), "n[5-6]", 12),
        (spec_of(partitions="gpu", gres=(GresAsk("gpu", "", 2, Per.NODE),)), "g1", 4),
        (spec_of(partitions="closed"), "n1", 1),
    ],
)
def test_an_idle_cluster_starts_it_now(spec: JobSpec, nodes: str, cpus: int) -> None:
    """Somebody asks before the day begins; the log grows by nothing."""
    floor = Floor()
    index = floor.state.index
    found = told(floor, spec)
    assert (found.nodes, found.cpus, found.job_id) == (nodes, cpus, 1)
    assert abs(found.start_ns - floor.cluster.now_ns) < 10**9
    assert floor.state.index == index


def test_a_full_partition_starts_it_when_the_first_jobs_must_have_ended() -> None:
    """Six nodes run for ten minutes, of which one is set free after five."""
    floor = Floor()
    floor.submit(limit_s=600, nodes_min=5, nodes_max=5, tasks=5, sharing=Sharing.EXCLUSIVE)
    short = floor.submit(limit_s=300, sharing=Sharing.EXCLUSIVE)
    floor.cycle()
    run = floor.state.runs[short]
    assert run.started is not None
    found = told(floor, spec_of(tasks=2))
    assert (found.start_ns, found.nodes) == (run.started.limit_ns, run.started.shares[0].node)
    assert found.partition == "debug"


def test_the_sooner_of_two_partitions_is_told() -> None:
    """One partition is full, the other has room."""
    floor = Floor()
    floor.submit(nodes_min=6, nodes_max=6, tasks=6, sharing=Sharing.EXCLUSIVE)
    floor.cycle()
    assert told(floor, spec_of(partitions="debug,low")).partition == "low"


def test_it_does_not_start_before_it_may() -> None:
    """Begin in an hour: then, though there is room now."""
    floor = Floor()
    begin_ns = floor.cluster.now_ns + 3_600 * 10**9
    assert told(floor, spec_of(begin_ns=begin_ns)).start_ns == begin_ns


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (spec_of(partitions="nosuch"), "unknown-partition"),
        (spec_of(features="nosuch"), "invalid-feature"),
        (spec_of(nodes_min=9, nodes_max=9, tasks=9), "nodes-unavailable"),
        (spec_of(nodes_required="n9"), "unknown-node"),
    ],
)
def test_what_would_be_refused_is_refused(spec: JobSpec, code: str) -> None:
    """Somebody tries out what cannot be."""
    answer = Floor().cluster.ask(ForecastJob(spec), USER)
    assert isinstance(answer, Rejection)
    assert answer.code == code


def test_nodes_out_of_use_are_told_of() -> None:
    """All nodes are drained: nobody can say when it would start."""
    floor = Floor()
    floor.cluster.ask(UpdateNodes("n[1-6]", NodeAction.DRAIN, "power"), ADMIN)
    answer = floor.cluster.ask(ForecastJob(spec_of()), USER)
    assert isinstance(answer, Rejection)
    assert answer.code == "does-not-fit"
