"""Limits of partitions: what EnforcePartLimits refuses and what waits, as a Slurm 22.05 said."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.events.envelope import Actor
from spur.testing.builders import ADMIN, actor
from spur.testing.floor import Floor
from spur.testing.hall import ASK, SPEC, submission
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.values.ids import PartitionName
from spur.values.states import Reason
from spur.values.tres import Per
from spur.wire.cluster import AddHost, HostAdded

CONF = """\
ClusterName=site
SlurmctldHost=ctl
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
EnforcePartLimits={enforced}
NodeName=n[1-4] CPUs=4 RealMemory=8000
NodeName=a[1-2] CPUs=4 RealMemory=8000 Feature=amd Weight=9
PartitionName=ok Nodes=n[1-4] Default=YES
PartitionName=few Nodes=n[1-4] MinNodes=2 MaxNodes=3 MaxTime=10
PartitionName=lean Nodes=n[1-4] MaxMemPerNode=1000
PartitionName=narrow Nodes=n[1-4] MaxCPUsPerNode=2
PartitionName=chem Nodes=n[1-4] AllowAccounts=chem
PartitionName=nophys Nodes=n[1-4] DenyAccounts=physics
PartitionName=quick Nodes=n[1-4] AllowQos=high
PartitionName=rare Nodes=n[1-4] DenyQos=normal
PartitionName=elsewhere Nodes=n[1-4] AllocNodes=login[7-9]
PartitionName=roots Nodes=n[1-4] RootOnly=YES
PartitionName=mixed Nodes=n[1-4],a[1-2]
"""


def floor(enforced: str = "NO") -> Floor:
    return Floor(ConfigFile("slurm.conf", CONF.format(enforced=enforced)))


def outcome(
    made: Floor, partitions: str, *, limit_s: int = 300, by: Actor | None = None, **ask: Any
) -> str:
    """Submit for physics at normal QOS; return the code of the refusal, or "taken"."""
    names = tuple(PartitionName(name) for name in partitions.split(","))
    spec = replace(
        SPEC,
        partitions=names,
        account="physics",
        qos="normal",
        time_limit_s=limit_s,
        ask=replace(ASK, **{"memory_mib": 0, **ask}),
    )
    answer = made.cluster.ask(submission(spec), by or actor(1001))
    return answer.code if isinstance(answer, Rejection) else "taken"


BROKEN: list[tuple[str, dict[str, Any], str, Reason]] = [
    ("few", {"nodes_max": 1}, "over-node-limit", Reason.PARTITION_NODE_LIMIT),
    ("few", {"nodes_min": 4}, "over-node-limit", Reason.PARTITION_NODE_LIMIT),
    ("few", {"nodes_max": 4}, "over-node-limit", Reason.PARTITION_NODE_LIMIT),
    ("few", {"limit_s": 1200}, "over-time-limit", Reason.PARTITION_TIME_LIMIT),
    ("lean", {"memory_mib": 2000}, "over-memory-limit", Reason.MEMORY_LIMIT),
    (
        "lean",
        {"memory_mib": 600, "memory_per": Per.CPU, "cpus_per_task": 2},
        "over-memory-limit",
        Reason.MEMORY_LIMIT,
    ),
    ("chem", {}, "invalid-account", Reason.ACCOUNT_NOT_ALLOWED),
    ("nophys", {}, "invalid-account", Reason.ACCOUNT_NOT_ALLOWED),
    ("quick", {}, "invalid-qos", Reason.QOS_NOT_ALLOWED),
    ("rare", {}, "invalid-qos", Reason.QOS_NOT_ALLOWED),
]


@pytest.mark.parametrize(("partition", "ask", "code", "reason"), BROKEN, ids=str)
def test_a_broken_limit_refuses_or_waits_as_the_site_wants(
    partition: str, ask: dict[str, Any], code: str, reason: Reason
) -> None:
    """NO lets the job wait until the limit changes, ANY and ALL refuse it."""
    made = floor()
    ask = dict(ask)
    limit_s = ask.pop("limit_s", 300)
    job_id = made.submit(
        partitions=partition, limit_s=limit_s, account="physics", qos="normal", **ask
    )
    made.cycle()
    assert (made.given(job_id), made.reason(job_id)) == ("", reason)
    for enforced in ("ANY", "ALL"):
        assert outcome(floor(enforced), partition, limit_s=limit_s, **ask) == code


@pytest.mark.parametrize(("partition", "ask", "code", "reason"), BROKEN[3:], ids=str)
def test_of_several_partitions_one_that_takes_the_job_may_be_enough(
    partition: str, ask: dict[str, Any], code: str, reason: Reason
) -> None:
    """ANY is met by the other partition, ALL is not; the job starts where it may."""
    names = f"{partition},ok"
    assert outcome(floor("ANY"), names, **ask) == "taken"
    assert outcome(floor("ALL"), names, **ask) == code
    made = floor()
    ask = {"limit_s": 300, **ask}
    job_id = made.submit(partitions=names, account="physics", qos="normal", **ask)
    made.cycle()
    assert made.given(job_id)


@pytest.mark.parametrize("enforced", ["NO", "ANY", "ALL"])
def test_who_may_never_use_a_partition_is_refused_at_once(enforced: str) -> None:
    """One is root's, one takes what is submitted on other hosts alone."""
    made = floor(enforced)
    hosts = {}
    for name in ("login1", "login8"):
        added = made.cluster.ask(AddHost(name, "login"), ADMIN)
        assert isinstance(added, HostAdded)
        hosts[name] = Actor(
            uid=1001, gid=1001, host_id=added.host_id, host_role="login", via="socket"
        )
    assert outcome(made, "roots") == "not-permitted"
    assert outcome(made, "elsewhere", by=hosts["login1"]) == "not-permitted"
    assert outcome(made, "elsewhere", by=hosts["login8"]) == "taken"
    assert outcome(made, "ok", by=hosts["login1"]) == "taken"


def test_a_job_gets_the_fewest_nodes_of_its_partition() -> None:
    """MinNodes=2, and a job that says nothing of nodes."""
    made = floor()
    job_id = made.submit(partitions="few")
    made.cycle()
    assert made.given(job_id) == "n1[0] 500M; n2[0] 500M"


def test_cpus_of_a_node_are_limited_for_all_jobs_of_a_partition() -> None:
    """MaxCPUsPerNode=2: a third job waits though half of the node is idle, others may have it."""
    made = floor()
    jobs = [made.submit(partitions="narrow", nodes_required="n1") for _ in range(3)]
    other = made.submit(partitions="ok", nodes_required="n1")
    made.cycle()
    assert [made.given(job) for job in jobs] == ["n1[0] 500M", "n1[1] 500M", ""]
    assert made.given(other) == "n1[2] 500M"
    assert made.reason(jobs[2]) is Reason.RESOURCES
    made.end(jobs[0])
    made.cycle()
    assert made.given(jobs[2]) == "n1[0] 500M"


@pytest.mark.parametrize(
    ("ask", "given"),
    [
        ({"preferred": "amd"}, "a1"),
        ({"preferred": "amd", "nodes_min": 2}, "a1 a2"),
        ({"preferred": "amd", "nodes_min": 3}, "n1 n2 n3"),
        ({}, "n1"),
    ],
)
def test_a_preference_is_met_where_it_can_be(ask: dict[str, Any], given: str) -> None:
    """--prefer=amd: the nodes that have it, as long as they are enough."""
    made = floor()
    job_id = made.submit(partitions="mixed", **ask)
    made.cycle()
    assert [share.split("[")[0] for share in made.given(job_id).split("; ")] == given.split()
