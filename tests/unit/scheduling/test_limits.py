"""Limits of associations and QOS: who waits for which reason, and starts when others have ended."""

from __future__ import annotations

from typing import Any

import pytest

from spur.testing.accounts import add_account, add_association, add_qos, add_user, change, number
from spur.testing.accounts import words as names
from spur.testing.floor import FLOOR, Floor
from spur.values.accounts import Setting, Subject
from spur.values.arrays import TaskSet
from spur.values.config import ConfigFile
from spur.values.states import Reason
from spur.values.tres import GresAsk, Per
from spur.wire.accounts import EditEntities, EntityEdit
from spur.wire.declare import Done

ADA, BOB = 1001, 1002

GPUS_2 = (GresAsk("gpu", "mi300x", 2, Per.NODE),)

PARAMETERS = """\
NodeName=n[1-4] CPUs=4 RealMemory=8000
NodeName=g1 CPUs=16 RealMemory=64000 Gres=gpu:mi300x:8
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=1:00:00
PartitionName=gpu Nodes=g1 MaxTime=1:00:00
PartitionName=wide Nodes=n[3-4] MaxTime=1:00:00
ClusterName=floor
SlurmctldHost=ctl
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
GresTypes=gpu
"""


def limited(
    *edits: EntityEdit, of_ada: tuple[Setting, ...] = (), more: str = "", enforce: str = "limits"
) -> Floor:
    """Return a floor where ada and bob have the account `lab`, below `science`."""
    text = f"{PARAMETERS}{more}\nAccountingStorageEnforce={enforce}\n"
    floor = Floor((ConfigFile("slurm.conf", text), ConfigFile("gres.conf", "")))
    qos = names("QOS", "normal", "small")
    made = (
        add_qos("small"),
        *add_account("science"),
        *add_account("lab", parent="science"),
        add_user("ada", uid=ADA),
        add_user("bob", uid=BOB),
        add_association("lab", "ada", settings=(*of_ada, qos)),
        add_association("lab", "bob", settings=(qos,)),
        *edits,
    )
    assert floor.cluster.ask(EditEntities(made)) == Done()
    return floor


def on_qos(*settings: Setting) -> EntityEdit:
    """Return the edit that limits the QOS."""
    return change(Subject.QOS, ("small",), *settings)


def on_science(*settings: Setting) -> EntityEdit:
    """Return the edit that limits the account above."""
    return change(Subject.ASSOCIATION, ("science", "", ""), *settings)


def start(floor: Floor, *, by: int = ADA, qos: str = "small", **ask: Any) -> Reason:
    """Submit a job and plan; return why it waits, NONE when it started."""
    job_id = floor.submit(account="lab", qos=qos, by=by, memory_mib=100, **ask)
    floor.cycle()
    return Reason.NONE if floor.given(job_id) else floor.reason(job_id)


FIRST: dict[str, Any] = {"tasks": 3}

RULES = [
    (on_qos(number("GrpTRES", 4, "cpu")), {"tasks": 2, "by": BOB}, Reason.QOS_GRP_CPU),
    (on_qos(number("GrpTRES", 150, "mem")), {"by": BOB}, Reason.QOS_GRP_MEMORY),
    (on_qos(number("GrpTRES", 1, "node")), {"by": BOB}, Reason.QOS_GRP_NODE),
    (on_qos(number("GrpJobs", 1)), {"by": BOB}, Reason.QOS_GRP_JOBS),
    (on_qos(number("MaxJobsPerUser", 1)), {}, Reason.QOS_MAX_JOBS_PER_USER),
    (on_qos(number("MaxJobsPerAccount", 1)), {"by": BOB}, Reason.QOS_MAX_JOBS_PER_ACCOUNT),
    (on_qos(number("MaxTRESPerUser", 4, "cpu")), {"tasks": 2}, Reason.QOS_MAX_CPU_PER_USER),
    (
        on_qos(number("MaxTRESPerAccount", 4, "cpu")),
        {"tasks": 2, "by": BOB},
        Reason.QOS_MAX_CPU_PER_ACCOUNT,
    ),
    (on_qos(number("MaxTRESPerJob", 3, "cpu")), {"tasks": 4}, Reason.QOS_MAX_CPU_PER_JOB),
    (on_qos(number("MaxTRESPerNode", 3, "cpu")), {"tasks": 4}, Reason.QOS_MAX_CPU_PER_NODE),
    (on_qos(number("MinTRESPerJob", 2, "cpu")), {}, Reason.QOS_MIN_CPU),
    (on_qos(number("MaxWallDurationPerJob", 600)), {"limit_s": 601}, Reason.QOS_MAX_WALL_PER_JOB),
    (on_science(number("GrpTRES", 4, "cpu")), {"tasks": 2, "by": BOB}, Reason.ASSOC_GRP_CPU),
    (on_science(number("GrpJobs", 1)), {"by": BOB}, Reason.ASSOC_GRP_JOBS),
    (on_science(number("MaxJobs", 1)), {}, Reason.ASSOC_MAX_JOBS),
    (on_science(number("MaxTRESPerJob", 3, "cpu")), {"tasks": 4}, Reason.ASSOC_MAX_CPU_PER_JOB),
    (
        on_science(number("MaxWallDurationPerJob", 600)),
        {"limit_s": 601},
        Reason.ASSOC_MAX_WALL_PER_JOB,
    ),
]


@pytest.mark.parametrize(("edit", "second", "reason"), RULES)
def test_a_job_over_a_limit_waits_for_its_reason(
    edit: EntityEdit, second: dict[str, Any], reason: Reason
) -> None:
    """Ada has three CPUs of one node, and the next job would go beyond what is allowed."""
    floor = limited(edit)
    assert start(floor, **FIRST) is Reason.NONE
    assert start(floor, **second) is reason


@pytest.mark.parametrize(("edit", "second", "reason"), RULES)
def test_a_limit_that_is_not_enforced_keeps_nobody(
    edit: EntityEdit, second: dict[str, Any], reason: Reason
) -> None:
    """AccountingStorageEnforce names associations alone."""
    floor = limited(edit, enforce="associations")
    assert start(floor, **FIRST) is Reason.NONE
    assert start(floor, **second) is Reason.NONE


def test_max_jobs_is_of_each_association_and_a_group_of_all_below() -> None:
    """The account's MaxJobs is inherited: each user may run one job, whatever others do."""
    floor = limited(on_science(number("MaxJobs", 1)))
    assert [start(floor), start(floor, by=BOB)] == [Reason.NONE, Reason.NONE]


def test_the_nearest_association_decides() -> None:
    """Ada's own limit is wider than that of the account above her."""
    floor = limited(on_science(number("MaxJobs", 1)), of_ada=(number("MaxJobs", 2),))
    assert [start(floor) for _ in range(3)] == [Reason.NONE, Reason.NONE, Reason.ASSOC_MAX_JOBS]


def test_a_qos_goes_before_the_association() -> None:
    """The QOS allows eight CPUs a job where the account allows two."""
    floor = limited(
        on_qos(number("MaxTRESPerJob", 8, "cpu")), on_science(number("MaxTRESPerJob", 2, "cpu"))
    )
    assert start(floor, tasks=4) is Reason.NONE
    assert start(floor, qos="normal", tasks=4) is Reason.ASSOC_MAX_CPU_PER_JOB


def test_gpus_count_by_kind() -> None:
    """Two GPUs of a kind are allowed to each user."""
    floor = limited(on_qos(number("MaxTRESPerUser", 2, "gres/gpu:mi300x")))
    asked: dict[str, Any] = {"partitions": "gpu", "gres": GPUS_2}
    assert start(floor, **asked) is Reason.NONE
    assert start(floor, **asked) is Reason.QOS_MAX_GRES_PER_USER
    assert start(floor, by=BOB, **asked) is Reason.NONE


def test_tasks_of_an_array_start_up_to_the_limit() -> None:
    """Ten tasks where three jobs may run; when one ends the next starts."""
    floor = limited(on_qos(number("MaxJobsPerUser", 3)))
    floor.submit(account="lab", qos="small", memory_mib=100, array=TaskSet(((0, 9, 1),)))
    floor.cycle()
    running = [job_id for job_id in floor.state.runs.rows if floor.given(job_id)]
    assert len(running) == 3
    floor.end(running[0])
    floor.cycle()
    assert sum(bool(floor.given(job_id)) for job_id in floor.state.runs.rows) == 3


def test_others_go_on_unless_the_site_says_so() -> None:
    """The first in the queue is over a limit: by itself it holds up nobody behind it."""
    edit = on_qos(number("MaxTRESPerJob", 2, "cpu"))
    everything: dict[str, Any] = {"nodes_min": 4, "tasks": 16}
    for more, second in (("", Reason.NONE), ("assoc_limit_stop", Reason.RESOURCES)):
        floor = limited(edit, more=f"SchedulerParameters={more}" if more else "")
        assert start(floor, **everything) is Reason.QOS_MAX_CPU_PER_JOB
        waits = start(floor, by=BOB, qos="normal", limit_s=600)
        assert waits is (Reason.NONE if second is Reason.NONE else Reason.PRIORITY)


def test_a_short_job_passes_one_that_is_stopped_by_a_limit() -> None:
    """What the first would start on is kept for later; who is over by then goes ahead."""
    floor = limited(
        on_qos(number("MaxTRESPerJob", 2, "cpu")), more="SchedulerParameters=assoc_limit_stop"
    )
    assert start(floor, nodes_min=4, tasks=16) is Reason.QOS_MAX_CPU_PER_JOB
    assert start(floor, by=BOB, qos="normal", limit_s=60) is Reason.NONE


def test_nodes_behind_the_first_of_another_partition_are_said_to_be_reserved() -> None:
    """The first of `debug` waits for all nodes; a long job wants two of them in `wide`."""
    floor = limited()
    everything: dict[str, Any] = {"nodes_min": 4, "tasks": 16}
    assert start(floor, tasks=4, limit_s=600) is Reason.NONE
    assert start(floor, **everything) is Reason.RESOURCES
    waits = start(floor, by=BOB, partitions="wide", nodes_min=2, tasks=8, limit_s=3000)
    assert waits is Reason.NODES_UNAVAILABLE


def test_without_accounting_there_is_no_limit() -> None:
    """A floor that has no associations."""
    assert start(Floor(FLOOR), qos="") is Reason.NONE


@pytest.mark.parametrize(
    ("edit", "qos", "code"),
    [
        (on_qos(number("MaxSubmitJobsPerUser", 3)), "small", "qos-max-submit-per-user"),
        (on_qos(number("MaxSubmitJobsPerAccount", 3)), "small", "qos-max-submit-per-account"),
        (on_qos(number("GrpSubmitJobs", 3)), "small", "qos-grp-submit-limit"),
        (on_science(number("GrpSubmitJobs", 3)), "normal", "assoc-grp-submit-limit"),
        (on_science(number("MaxSubmitJobs", 3)), "normal", "assoc-max-submit-limit"),
    ],
)
def test_jobs_beyond_a_limit_on_submission_are_refused(
    edit: EntityEdit, qos: str, code: str
) -> None:
    """One job and an array of two are there; what has ended does not count."""
    floor = limited(edit)
    first = floor.submit(account="lab", qos=qos, by=ADA)
    floor.submit(account="lab", qos=qos, by=ADA, array=TaskSet(((1, 2, 1),)))
    with pytest.raises(ValueError, match=code):
        floor.submit(account="lab", qos=qos, by=ADA)
    floor.cycle()
    floor.end(first)
    floor.submit(account="lab", qos=qos, by=ADA)
