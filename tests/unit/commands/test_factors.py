"""What a priority is made of, as sprio shows it."""

from __future__ import annotations

from msgspec.structs import replace

from spur.slurm.columns.priorities import BY_LETTER, PriorityLine, Weights
from spur.slurm.formats import parse_format
from spur.testing.builders import Cluster, actor
from spur.testing.hall import SPEC, submission
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.values.ids import JobId, PartitionName
from spur.wire.cluster import Reconfigure
from spur.wire.factors import FactorList, FactorView, QueryFactors

USER = actor(1001)

SITE = """\
ClusterName=hall
SlurmctldHost=ctl
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightPartition=2000
PriorityWeightJobSize=500
PriorityWeightTRES=cpu=100
NodeName=n[1-4] CPUs=64 RealMemory=512000
PartitionName=gpu Nodes=n[1-4] Default=YES PriorityJobFactor=10
PartitionName=low Nodes=n[1-2] PriorityJobFactor=5
"""


def cluster() -> Cluster:
    made = Cluster()
    assert not isinstance(made.ask(Reconfigure((ConfigFile("slurm.conf", SITE),))), Rejection)
    both = replace(SPEC, partitions=(PartitionName("gpu"), PartitionName("low")))
    made.ask(submission(both), USER)
    return made


def test_each_partition_has_its_own_factors() -> None:
    """A job that names two partitions is worth more in one of them."""
    told = cluster().ask(QueryFactors((JobId(1), JobId(99))), USER)
    assert isinstance(told, FactorList)
    values = {
        (str(row.partition), each.name): each.value * each.weight
        for row in told.rows
        for each in row.factors
    }
    assert values["gpu", "partition"] == 2000
    assert values["low", "partition"] == 1000
    assert values["low", "tres/cpu"] == 2 * values["gpu", "tres/cpu"] > 0


def test_too_many_jobs_at_once_are_refused() -> None:
    """Somebody asks for more than one page."""
    refused = cluster().ask(QueryFactors(tuple(map(JobId, range(1, 1002)))), USER)
    assert isinstance(refused, Rejection)
    assert refused.code == "invalid-value"


def test_weights_and_factors_have_their_columns() -> None:
    """The weights stand where the factors do."""
    layout = parse_format("%P|%J|%T|%Y", BY_LETTER)
    weights = Weights(size=500, partition=2000, resources="cpu=100")
    factors = (FactorView("partition", 0.5, 2000), FactorView("tres/cpu", 0.03, 100))
    assert layout.line(PriorityLine(None, "", weights, factors)) == "2000|500|cpu=100|"
