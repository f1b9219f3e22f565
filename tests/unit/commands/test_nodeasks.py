"""What a submission asks of nodes, against what is configured."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.scheduling.need import need_of
from spur.testing.builders import SMALL_CONFIG
from spur.testing.hall import ASK, SPEC, Hall
from spur.values.ids import PartitionName
from spur.values.tres import GresAsk, Per

GPU = (GresAsk("gpu", "", 1, Per.NODE),)


@pytest.mark.parametrize("field", ["nodes_required", "nodes_excluded"])
def test_node_that_is_not_there_is_refused(field: str) -> None:
    """Somebody mistypes a node; Slurm has no such job either."""
    with pytest.raises(ValueError, match="there is no node 'n9'"):
        Hall().submit(replace(SPEC, ask=replace(ASK, **{field: "n1,n9"})))


@pytest.mark.parametrize("field", ["features", "preferred"])
@pytest.mark.parametrize("text", ["[fast", "!fast", "nosuch", "fast&(nosuch|fast)", "nosuch*2"])
def test_feature_that_is_none_is_refused(field: str, text: str) -> None:
    """A constraint is malformed, or names what no node has."""
    hall = Hall(SMALL_CONFIG.replace("cpus = 64", 'cpus = 64\nfeatures = ["fast"]'))
    assert hall.submit(replace(SPEC, ask=replace(ASK, **{field: "fast"})))
    with pytest.raises(ValueError, match=r"can't be read|no node has feature"):
        hall.submit(replace(SPEC, ask=replace(ASK, **{field: text})))


@pytest.mark.parametrize(
    ("cluster", "partition", "given"),
    [
        ("memory_per_cpu_mib = 500", "", (500, Per.CPU)),
        ("memory_per_node_mib = 700", "", (700, Per.NODE)),
        ("memory_per_cpu_mib = 500", "memory_per_node_mib = 900", (900, Per.NODE)),
        ("", "", (0, Per.NODE)),
    ],
)
def test_memory_is_the_sites_for_who_names_none(
    cluster: str, partition: str, given: tuple[int, Per]
) -> None:
    """slurm.conf gives memory to jobs that do not say how much they need."""
    text = SMALL_CONFIG.replace('name = "hall"', f'name = "hall"\n{cluster}')
    hall = Hall(text.replace('name = "gpu"', f'name = "gpu"\n{partition}'))
    ask = replace(ASK, memory_mib=0)
    job = hall.state.jobs[hall.submit(replace(SPEC, ask=ask))]
    assert (job.spec.ask.memory_mib, job.spec.ask.memory_per) == given
    named = hall.state.jobs[hall.submit(replace(SPEC, ask=replace(ASK, memory_mib=-1)))]
    assert named.spec.ask.memory_mib == -1


def test_memory_for_each_gpu_is_left_to_the_partition() -> None:
    """What a partition gives for a GPU depends on where the job comes to run."""
    text = SMALL_CONFIG.replace('name = "hall"', 'name = "hall"\nmemory_per_cpu_mib = 500')
    hall = Hall(text.replace('name = "gpu"', 'name = "gpu"\nmemory_per_gpu_mib = 4000'))
    ask = replace(ASK, memory_mib=0, gres=GPU)
    row = hall.state.jobs[hall.submit(replace(SPEC, ask=ask))]
    given = row.spec.ask
    assert (given.memory_mib, given.memory_per, given.memory_is_default) == (500, Per.CPU, True)
    block = hall.state.partitions[PartitionName("gpu")].block
    settings = hall.state.config[1].settings
    need = need_of(given, block, settings, counts_memory=True)
    assert (need.memory_mib, need.memory_per) == (4000, Per.GPU)
    named = replace(given, memory_is_default=False)
    need = need_of(named, block, settings, counts_memory=True)
    assert (need.memory_mib, need.memory_per) == (500, Per.CPU)
