"""Plans of the scheduler: what still holds is started, and nothing is given twice."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.commands import placement as placement_commands
from spur.projections.dispatch import LaunchRun
from spur.testing.builders import ADMIN, CLUSTER, SMALL_CONFIG
from spur.testing.hall import ASK, NODES, SPEC, Hall, placement
from spur.values.arrays import TaskSet, format_tasks
from spur.values.config import ConfigFile, PartitionState
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import Sharing
from spur.values.states import Hold, JobState, NodeAction, Phase, Reason
from spur.values.tres import cpu_set, gpu_mask
from spur.wire.cluster import Reconfigure
from spur.wire.jobs import HoldJob
from spur.wire.nodes import UpdateNodes
from spur.wire.partitions import UpdatePartition
from spur.wire.runs import PlaceJobs, Placement, PlacementsJudged, RefusedCount

TEN = TaskSet(((0, 9, 1),))
GPU = PartitionName("gpu")


@pytest.fixture
def hall() -> Hall:
    """Four nodes that are there."""
    return Hall()


def refused(hall: Hall, proposed: Placement, code: str) -> None:
    """Propose one start; it must be refused, and nothing changed."""
    index = hall.state.index
    judged = hall.place(proposed)
    assert (judged.started, [refusal.code for refusal in judged.refusals]) == (0, [code])
    assert hall.state.index == index


def test_a_placement_that_holds_starts_its_job(hall: Hall) -> None:
    """The scheduler gives a job two CPUs and two GPUs of a node."""
    job_id = hall.submit()
    share = hall.share("n2", cpus=2, memory_mib=1_000, gpus=gpu_mask((0, 5)))
    assert hall.place(placement(job_id, share)) == PlacementsJudged(1, 0, ())
    view = hall.view(job_id)
    assert (view.state, view.partition, view.shares) == (JobState.RUNNING, "gpu", (share,))
    assert view.start_ns == hall.state.time_ns
    assert view.limit_ns == view.start_ns + 3_600_000_000_000
    use = hall.state.allocations.use(NodeName("n2"))
    assert (use.cpus, use.memory_mib, use.gpus) == (2, 1_000, 0b100001)
    assert hall.state.allocations.jobs_on(NodeName("n2")) == [job_id]
    (launch,) = hall.cluster.effects
    assert isinstance(launch, LaunchRun)
    assert (launch.node, launch.run, launch.attempt, launch.uid) == ("n2", 0, 1, 1001)
    assert len(launch.attachments) == 3 * 37


def test_the_decision_is_in_the_log(hall: Hall) -> None:
    """Someone asks why a job started there: the plan's reasons are in its event."""
    job_id = hall.submit()
    told = replace(
        placement(job_id, hall.share("n1")), refused=(RefusedCount(Reason.NODE_DOWN, 3),)
    )
    hall.place(told)
    assert b"first that fits" in hall.cluster.entries[-1].body
    assert b"NodeDown" in hall.cluster.entries[-1].body


@pytest.mark.parametrize(
    ("limit_s", "partition", "given_s"),
    [(None, "debug", 600), (None, "gpu", 86_400), (60, "debug", 60)],
)
def test_a_job_without_a_time_limit_has_its_partition_s(
    hall: Hall, limit_s: int | None, partition: str, given_s: int
) -> None:
    """Partitions differ in how long jobs may run that do not say."""
    spec = replace(SPEC, partitions=(GPU, PartitionName("debug")), time_limit_s=limit_s)
    job_id = hall.submit(spec)
    hall.place(placement(job_id, hall.share("n1"), partition=partition))
    view = hall.view(job_id)
    assert view.limit_ns - view.start_ns == given_s * 1_000_000_000


def test_a_partition_without_a_limit_gives_none() -> None:
    """Jobs of a partition without MaxTime run for as long as they like."""
    hall = Hall(SMALL_CONFIG.replace("max_time_s = 86400\n", ""))
    job_id = hall.start(hall.submit(replace(SPEC, time_limit_s=None)))
    assert hall.view(job_id).limit_ns == 0


# -- the job does not start


def test_an_unknown_job_is_not_started(hall: Hall) -> None:
    """The job was purged since."""
    refused(hall, placement(JobId(9), hall.share("n1")), "unknown-job")


def test_a_job_that_runs_is_not_started_again(hall: Hall) -> None:
    """The same job is in two plans, and twice in one."""
    job_id = hall.submit()
    proposed = placement(job_id, hall.share("n1"))
    assert hall.place(proposed, proposed).refusals[0].place == 1
    refused(hall, proposed, "wrong-state")
    hall.end(job_id)
    refused(hall, proposed, "wrong-state")


def test_a_plan_for_a_former_run_does_not_start_the_next(hall: Hall) -> None:
    """The job was requeued while the scheduler was planning its first run."""
    job_id = hall.start(hall.submit())
    hall.lose("n1")
    refused(hall, placement(job_id, hall.share("n2"), run=0), "wrong-state")
    assert hall.place(placement(job_id, hall.share("n2"), run=1)).started == 1


def test_a_held_job_is_not_started(hall: Hall) -> None:
    """Its owner held it while the scheduler was planning."""
    job_id = hall.submit()
    hall.cluster.ask(HoldJob(job_id, None, Hold.USER))
    refused(hall, placement(job_id, hall.share("n1")), "wrong-state")


def test_a_job_does_not_start_before_its_begin_time(hall: Hall) -> None:
    """Submitted with --begin=now+60."""
    begin_ns = hall.cluster.now_ns + 60_000_000_000
    job_id = hall.submit(replace(SPEC, begin_ns=begin_ns))
    refused(hall, placement(job_id, hall.share("n1")), "wrong-state")
    hall.tick(60)
    hall.start(job_id)


def test_a_job_starts_in_its_own_partitions_alone(hall: Hall) -> None:
    """A plan names a partition that the job did not, or that is not there."""
    job_id = hall.submit()
    for name in ("debug", "gup"):
        refused(hall, placement(job_id, hall.share("n1"), partition=name), "unknown-partition")


@pytest.mark.parametrize("state", [PartitionState.DOWN, PartitionState.INACTIVE])
def test_nothing_starts_in_a_partition_out_of_use(hall: Hall, state: PartitionState) -> None:
    """An operator stopped the partition."""
    job_id = hall.submit()
    hall.cluster.ask(UpdatePartition(GPU, state))
    refused(hall, placement(job_id, hall.share("n1")), "does-not-fit")


def test_jobs_of_a_draining_partition_still_start(hall: Hall) -> None:
    """A partition takes no new jobs; those that are queued start."""
    job_id = hall.submit()
    hall.cluster.ask(UpdatePartition(GPU, PartitionState.DRAIN))
    hall.start(job_id)


# -- the resources are not there


BAD_SHARES: list[dict[str, Any]] = [
    {"cpus": 65},
    {"cpus": 0},
    {"memory_mib": 512_001},
    {"memory_mib": -1},
    {"gpus": 1 << 8},
    {"gpus": -1},
    {"node": NodeName("n9")},
    {"cpu_set": b""},
    {"cpu_set": b"\0\1"},
    {"cpu_set": cpu_set(1 << 64)},
    {"is_shared": True},
]


@pytest.mark.parametrize("changes", BAD_SHARES, ids=str)
def test_a_share_that_no_node_has_is_refused(hall: Hall, changes: dict[str, Any]) -> None:
    """A scheduler with a fault asks for what is not there."""
    share = replace(hall.share("n1"), **changes)
    refused(hall, placement(hall.submit(), share), "does-not-fit")


HELD: list[dict[str, Any]] = [{"cpus": 3}, {"memory_mib": 1_001}, {"gpus": 0b110}]


@pytest.mark.parametrize("second", HELD, ids=str)
def test_what_is_held_is_not_given_again(hall: Hall, second: dict[str, Any]) -> None:
    """All but two CPUs, 1 000 MiB and six GPUs are held, by this plan or a former one."""
    first = hall.share("n1", cpus=62, memory_mib=511_000, gpus=0b11)
    share = hall.share("n1", **({"cpus": 1, "memory_mib": 0, "gpus": 0} | second))
    held, waiting = hall.submit(), hall.submit()
    judged = hall.place(placement(held, first), placement(waiting, share))
    assert [(refusal.place, refusal.code) for refusal in judged.refusals] == [(1, "does-not-fit")]
    refused(hall, placement(waiting, share), "does-not-fit")
    hall.end(held)
    assert hall.place(placement(waiting, share)).started == 1


def test_a_cpu_is_held_once(hall: Hall) -> None:
    """Sixty CPUs are free, and a plan gives a job one that is held."""
    share = hall.share("n1", cpus=4)
    first, second = hall.submit(), hall.submit()
    judged = hall.place(placement(first, share), placement(second, share))
    assert [(refusal.place, refusal.code) for refusal in judged.refusals] == [(1, "does-not-fit")]
    refused(hall, placement(second, replace(share, cpus=1, cpu_set=b"\x08")), "does-not-fit")
    assert hall.place(placement(second, replace(share, cpus=1, cpu_set=b"\x10"))).started == 1


def test_so_many_jobs_hold_a_cpu_as_the_partition_says() -> None:
    """OverSubscribe=YES:2: two jobs that ask for it hold one CPU, a third and one alone do not."""
    text = SMALL_CONFIG.replace(
        'nodes = "n1"\n', 'nodes = "n1"\nover_subscribe = "YES"\njobs_per_resource_max = 2\n'
    )
    hall = Hall(text)
    ask = replace(ASK, sharing=Sharing.OVERSUBSCRIBE)
    spec = replace(SPEC, partitions=(PartitionName("debug"),), ask=ask)
    share = hall.share("n1", cpus=2)
    shared = replace(share, is_shared=True)
    jobs = [hall.submit(spec) for _ in range(4)]
    plan = [placement(job_id, shared, partition="debug") for job_id in jobs[:3]]
    assert [refusal.place for refusal in hall.place(*plan).refusals] == [2]
    refused(hall, placement(jobs[3], share, partition="debug"), "does-not-fit")
    use = hall.state.allocations.use(NodeName("n1"))
    assert (use.cpus, use.memory_mib, use.shared_mask) == (2, 200, 0b11)
    hall.end(jobs[0])
    assert hall.state.allocations.use(NodeName("n1")).shared_mask == 0b11
    assert hall.place(plan[2]).started == 1


def test_the_last_of_everything_can_be_given(hall: Hall) -> None:
    """Two jobs share a node to the last CPU, MiB and GPU."""
    halves = [hall.share("n1", cpus=32, memory_mib=256_000, gpus=g) for g in (0x0F, 0xF0)]
    plan = [placement(hall.submit(), half) for half in halves]
    assert hall.place(*plan).started == 2


def test_a_node_named_twice_is_refused(hall: Hall) -> None:
    """A plan gives a job two shares of one node."""
    shares = (hall.share("n1", gpus=1), hall.share("n1", gpus=2))
    refused(hall, placement(hall.submit(), *shares), "does-not-fit")


def test_a_job_gets_as_many_nodes_as_it_asks_for(hall: Hall) -> None:
    """Two to three nodes are asked for."""
    ask = replace(ASK, nodes_min=2, nodes_max=3)
    job_id = hall.submit(replace(SPEC, ask=ask))
    shares = [hall.share(node) for node in NODES]
    for count in (0, 1, 4):
        refused(hall, placement(job_id, *shares[:count]), "does-not-fit")
    assert hall.place(placement(job_id, *shares[:3])).started == 1


def test_a_node_of_another_partition_is_refused(hall: Hall) -> None:
    """The debug partition has n1 alone."""
    job_id = hall.submit(replace(SPEC, partitions=(PartitionName("debug"),)))
    refused(hall, placement(job_id, hall.share("n2"), partition="debug"), "does-not-fit")


@pytest.mark.parametrize("action", [NodeAction.DRAIN, NodeAction.DOWN])
def test_a_node_out_of_use_takes_no_jobs(hall: Hall, action: NodeAction) -> None:
    """An operator drained the node, or took it down, while the scheduler was planning."""
    hall.cluster.ask(UpdateNodes("n1", action, "being looked at"))
    refused(hall, placement(hall.submit(), hall.share("n1")), "does-not-fit")


def test_a_lost_node_takes_no_jobs(hall: Hall) -> None:
    """The node went silent while the scheduler was planning."""
    hall.lose("n1")
    refused(hall, placement(hall.submit(), hall.share("n1")), "does-not-fit")


# -- arrays


def shown(hall: Hall) -> list[tuple[int, str, str]]:
    """Return every row's id, tasks and phase."""
    state = hall.state
    return [
        (
            job_id,
            format_tasks(state.jobs[job_id].tasks or TaskSet(())),
            state.runs[job_id].phase.name,
        )
        for job_id in state.jobs.sorted_keys()
    ]


def test_tasks_start_under_ids_of_their_own_and_the_last_keeps_the_array_s(hall: Hall) -> None:
    """An array of three starts in one plan; the last task keeps the id that sbatch printed."""
    array = hall.submit(tasks=TaskSet(((0, 2, 1),)))
    plan = [placement(array, hall.share("n1"), task=task) for task in (1, 0, 2)]
    assert hall.place(*plan).started == 3
    assert shown(hall) == [(1, "2", "RUNNING"), (2, "1", "RUNNING"), (3, "0", "RUNNING")]
    assert {hall.view(JobId(job_id)).array_id for job_id in (1, 2, 3)} == {array}
    for job_id in (1, 2, 3):
        hall.end(JobId(job_id))
    hall.tick(301)
    assert (len(hall.state.jobs), len(hall.state.arrays)) == (0, 0)


def test_a_task_starts_once(hall: Hall) -> None:
    """A task is in a plan twice; another plan names a task that is gone, or none, or too many."""
    array = hall.submit(tasks=TEN)
    proposed = placement(array, hall.share("n1"), task=4)
    assert hall.place(proposed, proposed).started == 1
    refused(hall, proposed, "wrong-state")
    refused(hall, placement(array, hall.share("n1")), "wrong-state")
    refused(hall, placement(array, hall.share("n1"), task=10), "wrong-state")
    refused(hall, placement(hall.submit(), hall.share("n1"), task=1), "wrong-state")


def test_a_throttled_array_runs_so_many_tasks_at_a_time(hall: Hall) -> None:
    """--array=0-9%2: two run; when one ends, the next may start."""
    array = hall.submit(tasks=TEN, throttle=2)
    plan = [placement(array, hall.share("n1"), task=task) for task in range(3)]
    assert hall.place(*plan).started == 2
    refused(hall, plan[2], "wrong-state")
    hall.end(JobId(2))
    assert hall.place(plan[2]).started == 1
    assert hall.state.allocations.running_tasks(array) == 2


# -- size


def test_a_plan_that_is_too_big_for_one_entry_is_taken_in_parts(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven starts, of which three fit one entry; the answer is that of the last part."""
    monkeypatch.setattr(placement_commands, "PLACEMENTS_PER_PART_MAX", 3)
    plan = [placement(hall.submit(), hall.share("n1")) for _ in range(6)]
    index = hall.state.index
    judged = hall.place(*plan, plan[0])
    assert hall.state.index == index + 3
    assert (judged.started, judged.refusals[0].place) == (0, 6)
    assert all(run.phase is Phase.RUNNING for run in hall.state.runs.rows.values())


def test_a_part_holds_a_limited_number_of_shares(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs of many nodes fill an entry by their shares; one that is bigger goes by itself."""
    monkeypatch.setattr(placement_commands, "SHARES_PER_PART_MAX", 3)
    plan = [
        placement(hall.submit(), *(hall.share(node) for node in NODES[:count]))
        for count in (2, 1, 4, 1)
    ]
    index = hall.state.index
    hall.place(*plan)
    assert hall.state.index == index + 3
    assert all(run.phase is Phase.RUNNING for run in hall.state.runs.rows.values())


def test_only_the_cluster_places(hall: Hall) -> None:
    """An administrator is no scheduler."""
    plan = PlaceJobs(1, b"", (placement(hall.submit(), hall.share("n1")),))
    outcome = hall.cluster.ask(plan, ADMIN)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "not-permitted"
    assert isinstance(hall.cluster.ask(plan, CLUSTER), PlacementsJudged)


# -- reconfiguration


@pytest.mark.parametrize(
    ("former", "latter"),
    [
        ("n[1-4]", "n[2-4]"),
        ("cpus = 64", "cpus = 3"),
        ("memory_mib = 512000", "memory_mib = 1000"),
        ("gfx942:8", "gfx942:4"),
    ],
)
def test_nodes_in_use_are_not_taken_from_under_their_jobs(
    hall: Hall, former: str, latter: str
) -> None:
    """Someone reconfigures nodes away, or makes them smaller, while a job holds more."""
    text = SMALL_CONFIG.replace(former, latter).replace('nodes = "n1"', 'nodes = "n2"')
    change = Reconfigure((ConfigFile("spur.toml", text),))
    job_id = hall.start(hall.submit(), hall.share("n1", cpus=4, memory_mib=2_000, gpus=0xFF))
    outcome = hall.cluster.ask(change)
    assert isinstance(outcome, Rejection)
    assert (outcome.code, outcome.text.endswith("nothing was changed")) == ("wrong-state", True)
    hall.end(job_id)
    assert not isinstance(hall.cluster.ask(change), Rejection)
