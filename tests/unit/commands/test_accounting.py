"""What a job counts for where AccountingStorageEnforce asks for associations and QOS."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.testing.accounts import (
    add_account,
    add_association,
    add_qos,
    add_user,
    change,
    word,
    words,
)
from spur.testing.builders import ADMIN, Cluster, actor
from spur.testing.hall import SPEC, submission
from spur.values.accounts import Subject
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.wire.accounts import EditEntities
from spur.wire.cluster import Reconfigure
from spur.wire.jobs import JobAccepted

CONF = """\
ClusterName=hall
SlurmctldHost=ctl
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce={enforced}
NodeName=n1 CPUs=4 RealMemory=8000
PartitionName=main Nodes=n1 Default=YES
PartitionName=chemonly Nodes=n1 AllowAccounts=chem
PartitionName=quick Nodes=n1 AllowQos=high
"""

ADA, STRANGER = actor(1001), actor(1009)


def site(enforced: str, *, limits: str = "NO") -> Cluster:
    """Return a cluster where ada is in physics and chem; physics may use normal and high."""
    cluster = Cluster()
    text = CONF.format(enforced=enforced) + f"EnforcePartLimits={limits}\n"
    answer = cluster.ask(Reconfigure((ConfigFile("slurm.conf", text),)))
    assert not isinstance(answer, Rejection), answer
    edits = (
        *add_account("physics"),
        *add_account("chem"),
        add_qos("high"),
        add_qos("low"),
        add_user("ada", uid=1001),
        add_association("physics", "ada"),
        add_association("chem", "ada"),
        change(Subject.ASSOCIATION, ("physics", "", ""), words("QOS", "high", "normal")),
    )
    assert not isinstance(cluster.ask(EditEntities(edits)), Rejection)
    return cluster


def outcome(
    cluster: Cluster, account: str = "", qos: str = "", *, partition: str = "", by: object = ADA
) -> str:
    """Submit; return the account and QOS of the job, or the code of the refusal."""
    partitions = (partition,) if partition else ()
    spec = replace(SPEC, account=account, qos=qos, partitions=partitions)
    answer = cluster.ask(submission(spec), by)  # type: ignore[arg-type]  # an actor
    if isinstance(answer, Rejection):
        assert answer.text.endswith("nothing was changed")
        return answer.code
    assert isinstance(answer, JobAccepted)
    job = cluster.state.jobs[answer.job_id]
    return f"{job.spec.account}/{job.spec.qos}"


def test_only_accounts_of_the_user_are_taken() -> None:
    """Ada submits for herself, another group, nobody; a stranger has no account at all."""
    cluster = site("associations")
    assert outcome(cluster) == "physics/normal"
    assert outcome(cluster, "Chem") == "chem/normal"
    assert outcome(cluster, "nosuch") == "invalid-account"
    assert outcome(cluster, "root") == "invalid-account"
    assert outcome(cluster, by=STRANGER) == "invalid-account"
    assert outcome(cluster, by=ADMIN) == "root/normal"
    assert outcome(cluster, qos="nosuch") == "physics/nosuch"


def test_only_qos_of_the_association_are_taken() -> None:
    """Ada asks for better service; an operator may use any."""
    cluster = site("qos")
    assert outcome(cluster, qos="HIGH") == "physics/high"
    assert outcome(cluster, qos="nosuch") == "invalid-qos"
    assert outcome(cluster, qos="low") == "invalid-qos"
    assert outcome(cluster, "chem", qos="high") == "invalid-qos"
    assert outcome(cluster, "nosuch") == "invalid-account"
    cluster.ask(
        EditEntities((change(Subject.USER, ("ada",), word("AdminLevel", "operator")),)), ADMIN
    )
    assert outcome(cluster, qos="low") == "physics/low"
    assert outcome(cluster, qos="nosuch") == "invalid-qos"


@pytest.mark.parametrize("enforced", ["none", "associations,limits,qos"])
def test_partitions_are_open_to_their_accounts_and_qos(enforced: str) -> None:
    """A partition of chemistry, and one for jobs of high QOS, where limits are enforced."""
    cluster = site(enforced, limits="ALL")
    assert outcome(cluster, partition="chemonly") == "invalid-account"
    assert outcome(cluster, "chem", partition="chemonly") == "chem/normal"
    assert outcome(cluster, partition="quick") == "invalid-qos"
    assert outcome(cluster, qos="high", partition="quick") == "physics/high"


def test_a_change_counts_from_its_entry_on() -> None:
    """Chem gets high, and the next job has it."""
    cluster = site("all")
    assert outcome(cluster, "chem", qos="high") == "invalid-qos"
    cluster.ask(
        EditEntities((change(Subject.ASSOCIATION, ("chem", "ada", ""), words("QOS", "+high")),))
    )
    assert outcome(cluster, "chem", qos="high") == "chem/high"
    assert outcome(cluster, "chem", qos="normal") == "chem/normal"


def test_before_the_first_association_nothing_is_enforced() -> None:
    """A site sets the parameter and has added nobody yet."""
    cluster = Cluster()
    text = CONF.format(enforced="associations,qos")
    cluster.ask(Reconfigure((ConfigFile("slurm.conf", text),)))
    assert outcome(cluster, by=STRANGER) == "/"
