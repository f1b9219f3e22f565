"""Variables of batch scripts, held against environments that a real Slurm 22.05 gave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spur.slurm.getopt import parse_arguments
from spur.slurm.gpuenv import gpu_variables
from spur.slurm.jobenv import (
    TABLE,
    BatchFacts,
    batch_environment,
    compress,
    decode_environment,
    spread_tasks,
)
from spur.slurm.layers import Layer, layer_of
from spur.slurm.options import OPTIONS
from spur.slurm.submission import merge, submission_of
from spur.values.config import GresPool
from spur.values.hostlist import parse_hostlist
from spur.values.tres import Per, gpu_mask

DATA = Path(__file__).resolve().parents[2] / "data" / "slurm" / "batch-environments.json"
ROWS: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))

POOLS = {
    "g1": (GresPool("gpu", "mi300x", 8, "", "", ("amd_gpu_env",)),),
    "g2": (GresPool("gpu", "a100", 4, "", "", ("nvidia_gpu_env",)),),
}

MADE_UP = {
    "threads": ("SLURM_NPROCS", "SLURM_NTASKS"),
    "hint-and-node": ("SLURM_NPROCS", "SLURM_NTASKS"),
}
"""Where Slurm gives a number of tasks though nobody named one."""


class Noon:
    """A calendar that no option of these asks."""

    def now(self) -> int:
        return 0

    def moment(self, seconds: int) -> Any:
        raise NotImplementedError

    def seconds(self, moment: Any) -> int:
        raise NotImplementedError


def uncompressed(text: str) -> tuple[int, ...]:
    """Read 4(x2),1."""
    found: list[int] = []
    for part in text.split(","):
        number, _, times = part.rstrip(")").partition("(x")
        found += [int(number)] * int(times or 1)
    return tuple(found)


DEFAULT_MEMORY: dict[str, Any] = {
    "memory_mib": 500,
    "memory_per": Per.CPU,
    "memory_is_default": True,
}


def facts_of(row: dict[str, Any], **changes: Any) -> BatchFacts:
    """Return the facts of a recorded job: asked as its options say, allocated as it was."""
    seen: dict[str, str] = row["environment"]
    given, _ = parse_arguments(row["options"], OPTIONS["sbatch"], program="sbatch")
    settings = merge(Layer({}, {}), Layer({}, {}), layer_of(given, "sbatch"), "sbatch")
    submission = submission_of(
        settings,
        program="sbatch",
        default_name=seen["SLURM_JOB_NAME"],
        argv=(b"",),
        working_directory=b"/",
        calendar=Noon(),
    )
    names_memory = any("mem" in name for name in dict(submission.text.options))
    spec = msgspec.structs.replace(
        submission.spec,
        account=seen.get("SLURM_JOB_ACCOUNT", ""),  # associations fill these in
        qos=seen.get("SLURM_JOB_QOS", ""),
        ask=msgspec.structs.replace(
            submission.spec.ask,
            tasks=int(seen.get("SLURM_NTASKS", submission.spec.ask.tasks)),
            # As a job gets the cluster's default where it names no memory.
            **({} if names_memory else DEFAULT_MEMORY),
        ),
    )
    nodes = parse_hostlist(seen["SLURM_JOB_NODELIST"])
    gpus = tuple(int(index) for index in seen.get("SLURM_JOB_GPUS", "").split(",") if index)
    is_gpu = seen["SLURM_JOB_PARTITION"] == "gpu"
    array = submission.array
    return BatchFacts(
        job_id=int(seen["SLURM_JOB_ID"]),
        array_id=int(seen.get("SLURM_ARRAY_JOB_ID", "0")),
        task=None if array is None else int(seen["SLURM_ARRAY_TASK_ID"]),
        array_count=0 if array is None else array.tasks.count,
        array_min=0 if array is None else array.tasks.first,
        array_max=0 if array is None else array.tasks.last,
        array_step=0 if array is None else array.tasks.ranges[0][2],
        restarts=0,
        uid=2001,
        gid=2001,
        user="u1",
        spec=spec,
        partition=seen["SLURM_JOB_PARTITION"],
        options=dict(submission.text.options),
        nodes=nodes,
        cpus=uncompressed(seen["SLURM_JOB_CPUS_PER_NODE"]),
        gpus=gpu_mask(gpus),
        pools=POOLS.get(nodes[0], ()),
        default_memory_per=Per.GPU if is_gpu else Per.CPU,
        default_memory_mib=4000 if is_gpu else 500,
        cluster="oracle",
        topology=seen["SLURM_TOPOLOGY_ADDR"],
        topology_pattern=seen["SLURM_TOPOLOGY_ADDR_PATTERN"],
        working_cluster=seen["SLURM_WORKING_CLUSTER"],
    )._replace(**changes)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_environment_is_what_slurm_gives(row: dict[str, Any]) -> None:
    """Somebody moves scripts here that look at what the batch system told them."""
    found = batch_environment(facts_of(row))
    got = {n.decode(): v.decode() for n, v in found.items() if v is not None}
    got.pop("HIP_VISIBLE_DEVICES", None)  # not known to that release
    expected: dict[str, str] = dict(row["environment"])
    for name in MADE_UP.get(row["name"], ()):
        expected.pop(name)
    expected |= {"ENVIRONMENT": "BATCH", "HOSTNAME": expected["SLURMD_NODENAME"]}
    assert got == expected


def test_variables_of_another_job_are_taken_out() -> None:
    """Someone submits from inside an array task on a GPU: its variables are not the new job's."""
    found = batch_environment(facts_of(ROWS[0]))
    for name in (
        b"SLURM_ARRAY_TASK_ID",
        b"CUDA_VISIBLE_DEVICES",
        b"SLURM_STEP_ID",
        b"SLURM_NTASKS",
    ):
        assert name in found
        assert found[name] is None


def test_a_requeued_job_counts_its_restarts() -> None:
    """A job looks whether this is its first try; on the first there is no variable."""
    facts = facts_of(ROWS[0])
    assert batch_environment(facts)[b"SLURM_RESTART_COUNT"] is None
    assert batch_environment(facts._replace(restarts=2))[b"SLURM_RESTART_COUNT"] == b"2"


@pytest.mark.parametrize(
    ("cpus", "text"), [((4, 4, 1), "4(x2),1"), ((2, 1, 2), "2,1,2"), ((1,), "1"), ((), "")]
)
def test_numbers_of_nodes_are_compressed(cpus: tuple[int, ...], text: str) -> None:
    """A script reads how many CPUs it has on each node."""
    assert compress(cpus) == text


def test_more_tasks_than_cpus_are_all_dealt_out() -> None:
    """An allocation that shrank below its tasks still says where each would be."""
    row = next(row for row in ROWS if row["name"] == "seven-on-three")
    assert spread_tasks(facts_of(row, cpus=(1, 1, 1))) == (3, 2, 2)


def test_gpus_of_each_maker_have_their_variables() -> None:
    """A node mixes makers, or its gres.conf says nothing: what each library reads is right."""
    amd = GresPool("gpu", "mi300x", 2, "", "", ("amd_gpu_env",))
    nvidia = GresPool("gpu", "a100", 2, "", "", ("nvidia_gpu_env",))
    intel = GresPool("gpu", "max", 2, "", "", ("intel_gpu_env", "opencl_env"))
    fabric = GresPool("nic", "", 8, "", "", ())

    def of(mask: int, *pools: GresPool) -> dict[str, str]:
        found = gpu_variables(mask, pools)
        return {n.decode(): v.decode() for n, v in found.items() if v is not None}

    assert of(0b1100, fabric, nvidia, amd) == {
        "ROCR_VISIBLE_DEVICES": "2,3",
        "HIP_VISIBLE_DEVICES": "0,1",  # among those that ROCR_VISIBLE_DEVICES leaves
    }
    assert of(0b11, nvidia, amd) == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert of(0b10, intel) == {"ZE_AFFINITY_MASK": "1", "GPU_DEVICE_ORDINAL": "1"}
    assert of(0b1, GresPool("gpu", "", 1, "", "", ())) == {
        "CUDA_VISIBLE_DEVICES": "0",
        "ROCR_VISIBLE_DEVICES": "0",
        "ZE_AFFINITY_MASK": "0",
        "GPU_DEVICE_ORDINAL": "0",
    }
    assert of(0, nvidia) == {}


def test_an_environment_is_read_as_it_was_sent() -> None:
    """A variable holds an equals sign, bytes that are no text, or nothing at all."""
    content = b"A=b=c\0EMPTY=\0RAW=\xff\0nonsense\0"
    assert decode_environment(content) == {b"A": b"b=c", b"EMPTY": b"", b"RAW": b"\xff"}


def test_every_row_is_a_name() -> None:
    """Someone adds a row to the table: it goes into the process as it stands there."""
    assert all(name.isidentifier() and name.isupper() for name in TABLE)
