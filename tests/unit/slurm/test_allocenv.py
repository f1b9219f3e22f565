"""The variables of salloc's command."""

from __future__ import annotations

import msgspec
import pytest

from spur.slurm.allocenv import salloc_environment
from spur.slurm.getopt import parse_arguments
from spur.slurm.layers import Layer, layer_of
from spur.slurm.options import OPTIONS
from spur.slurm.submission import merge, submission_of
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import Hold, JobState, Reason
from spur.values.tres import NodeShare, Per
from spur.wire.jobs import JobView
from spur_cli.slurm.people import LocalCalendar

COMMON = {
    "SLURM_CLUSTER_NAME": "oracle",
    "SLURM_JOBID": "3658",
    "SLURM_JOB_ACCOUNT": "physics",
    "SLURM_JOB_CPUS_PER_NODE": "2(x2)",
    "SLURM_JOB_ID": "3658",
    "SLURM_JOB_NAME": "interactive",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_PARTITION": "debug",
    "SLURM_JOB_QOS": "normal",
    "SLURM_NNODES": "2",
    "SLURM_NODELIST": "n[1-2]",
    "SLURM_NODE_ALIASES": "(null)",
}


@pytest.mark.parametrize(
    ("line", "more"),
    [
        (
            "-n4",
            {"SLURM_NTASKS": "4", "SLURM_NPROCS": "4", "SLURM_TASKS_PER_NODE": "2(x2)"},
        ),
        ("-N2", {"SLURM_TASKS_PER_NODE": "2(x2)"}),
        ("-N2 --gpus=2", {"SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_GPUS": "2"}),
        (
            "-N2 --mem=100 -c2 -O",
            {
                "SLURM_TASKS_PER_NODE": "1(x2)",
                "SLURM_MEM_PER_NODE": "100",
                "SLURM_CPUS_PER_TASK": "2",
                "SLURM_OVERCOMMIT": "1",
            },
        ),
    ],
)
def test_command_finds_what_the_allocation_is(line: str, more: dict[str, str]) -> None:
    """Two nodes of the recorded cluster; what it filled in of memory was not asked for."""
    given, _ = parse_arguments(line.split(), OPTIONS["salloc"], program="salloc")
    settings = merge(Layer({}, {}), Layer({}, {}), layer_of(given, "salloc"), "salloc")
    submission = submission_of(
        settings,
        program="salloc",
        default_name="interactive",
        argv=(),
        working_directory=b"/",
        calendar=LocalCalendar(0),
        batch=False,
    )
    filled = msgspec.structs.replace(
        submission.spec.ask, memory_mib=500, memory_per=Per.CPU, memory_is_default=True
    )
    job = JobView(
        job_id=JobId(3658),
        array_id=JobId(0),
        tasks=None,
        throttle=0,
        het_id=JobId(0),
        het_offset=0,
        het_size=0,
        uid=2001,
        gid=2001,
        spec=msgspec.structs.replace(submission.spec, account="physics", qos="normal", ask=filled),
        run=0,
        state=JobState.RUNNING,
        completing=False,
        reason=Reason.NONE,
        shape=b"",
        hold=Hold.NONE,
        priority=None,
        points=1.0,
        submit_ns=0,
        since_ns=0,
        partition=PartitionName("debug"),
        start_ns=1,
        limit_ns=0,
        end_ns=0,
        exit_code=0,
        signal=0,
        shares=tuple(NodeShare(NodeName(n), 2, 500, 0, b"\3", False) for n in ("n1", "n2")),
        dependency=None,
    )
    found = salloc_environment(
        job, submission.spec, dict(submission.text.options), cluster="oracle", user="u1"
    )
    assert found == COMMON | more
