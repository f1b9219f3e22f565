"""squeue and scontrol show job, word for word: a scene that a real Slurm 22.05 showed.

`slurm/squeue.json` holds the recorded command lines and what they printed, `slurm/scontrol.json`
records of jobs; the jobs below are those
of that scene. What Slurm knows there and Spur does not yet (dependencies, licences in use, ranks of
its own) is given to the lines as it was, so that the columns are compared and nothing else.

resvport is left out: later releases know it, and so do we.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spur.slurm.bunches import Bunch, Typesetter
from spur.slurm.columns.jobline import JobLine
from spur.slurm.columns.jobs import BY_LETTER, BY_NAME, DEFAULT_FORMAT, LONG_FORMAT
from spur.slurm.formats import parse_format, parse_long_format
from spur.slurm.getopt import parse_arguments
from spur.slurm.joborder import DEFAULT_SORT, parse_sort, sorted_bunches
from spur.slurm.layers import layer_of
from spur.slurm.options import OPTIONS
from spur.slurm.showjob import show_job
from spur.slurm.timespec import Moment
from spur.values.arrays import TaskSet
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec, JobText, ResourceAsk, Sharing
from spur.values.states import Hold, JobState, Reason
from spur.values.tres import GresAsk, NodeShare, Per
from spur.wire.jobs import JobView

CASES: list[dict[str, Any]] = json.loads(  # as recorded: texts and statuses
    (Path(__file__).parent / "slurm" / "squeue.json").read_text(encoding="utf-8")
)

NS = 1_000_000_000


class Utc:
    """The zone of the recording."""

    def now(self) -> int:
        return 0

    def moment(self, seconds: int) -> Moment:
        return Moment(*datetime.fromtimestamp(seconds, UTC).timetuple()[:6])

    def seconds(self, moment: Moment) -> int:
        return int(datetime(*moment, tzinfo=UTC).timestamp())


SCENE_S = Utc().seconds(Moment(2026, 11, 30, 8, 34, 0))

NODES_DOWN = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)

USERS = {2001: "u1", 2002: "u2", 2003: "u3", 2004: "u4"}

ASK = ResourceAsk(
    nodes_min=1,
    nodes_max=0,
    tasks=1,
    tasks_per_node=0,
    cpus_per_task=1,
    memory_mib=500,
    memory_is_default=False,
    memory_per=Per.CPU,
    gres=(),
    features="",
    nodes_required="",
    nodes_excluded="",
    sharing=Sharing.PARTITION,
    licenses="",
    reservation="",
    tasks_per_socket=0,
    tasks_per_core=0,
    tasks_per_gpu=0,
    sockets_per_node=0,
    cores_per_socket=0,
    threads_per_core=0,
    cpus_per_node_min=0,
    cpus_per_gpu=0,
    disk_mib=0,
    contiguous=False,
    overcommit=False,
    preferred="",
    tasks_follow=False,
)


@dataclass(frozen=True, kw_only=True)
class Story:
    """What a job of the scene has that others do not."""

    partition: str = "debug"
    account: str = "physics"
    rank: int
    reason: str = "None"
    limit_s: int = 600
    nodes: str = ""
    """Where it runs, with commas; it waits when empty."""
    submit_s: int = 1
    start_in_s: int = 0
    array: tuple[int, TaskSet] | None = None
    throttle: int = 0
    het: tuple[int, int] = (0, 0)
    qos: str = "normal"
    nice: int = 0
    comment: str = ""
    cpus: int = 0


def line(
    job_id: int,
    uid: int,
    name: str,
    story: Story,
    **ask: Any,  # fields of ResourceAsk
) -> JobLine:
    """Return one job of the scene."""
    text = JobText(f"/home/{USERS[uid]}".encode(), (b"",), b"", b"", b"", story.comment.encode())
    spec = spec_of(name, story, replace(ASK, **ask))
    job = view_of(job_id, uid, spec, story)
    user = USERS.__getitem__
    return JobLine(
        job, job.tasks, story.reason, story.limit_s, 0, Utc(), user, user, text, "oracle"
    )


def spec_of(name: str, story: Story, ask: ResourceAsk) -> JobSpec:
    """Return what the job asked for."""
    begins = story.start_in_s and not story.nodes
    return JobSpec(
        name=name,
        partitions=(PartitionName(story.partition),),
        account=story.account,
        qos=story.qos,
        ask=ask,
        time_limit_s=story.limit_s,
        begin_ns=(SCENE_S + story.start_in_s) * NS if begins else 0,
        nice=story.nice,
        requeue=True,
        batch=True,
        deadline_ns=0,
        dependency=None,
        kill_on_invalid_dependency=None,
        time_limit_min_s=None,
    )


def view_of(job_id: int, uid: int, spec: JobSpec, story: Story) -> JobView:
    """Return the job's row of the queue."""
    runs = bool(story.nodes)
    start_ns = (SCENE_S + story.start_in_s) * NS if runs else 0
    array_id, tasks = story.array or (0, None)
    nodes = [NodeName(node) for node in story.nodes.split(",") if node]
    return JobView(
        job_id=JobId(job_id),
        array_id=JobId(array_id),
        tasks=tasks,
        throttle=story.throttle,
        het_id=JobId(story.het[0]),
        het_offset=story.het[1],
        het_size=2 if story.het[0] else 0,
        uid=uid,
        gid=uid,
        spec=spec,
        run=0,
        state=JobState.RUNNING if runs else JobState.PENDING,
        completing=False,
        reason=Reason.NONE,
        shape=b"",
        hold=Hold.NONE if story.rank else Hold.USER,
        priority=story.rank,
        points=float(story.rank or 1),
        submit_ns=(SCENE_S + story.submit_s) * NS,
        since_ns=(SCENE_S + story.submit_s) * NS,
        partition=PartitionName(story.partition if runs else ""),
        start_ns=start_ns,
        limit_ns=start_ns + story.limit_s * NS if runs else 0,
        end_ns=0,
        exit_code=0,
        signal=0,
        shares=tuple(NodeShare(node, story.cpus or 1, 0, 0, b"\1", False) for node in nodes),
        dependency=None,
    )


SCENE = (
    line(
        1501,
        2001,
        "alpha",
        Story(rank=12349, limit_s=1200, nodes="n1,n2", submit_s=0, comment="note"),
        tasks=2,
        nodes_min=2,
        memory_mib=1000,
        memory_per=Per.NODE,
        features="small",
        nodes_required="n1,n2",
        nodes_max=2,
    ),
    line(
        1502,
        2001,
        "bigjob",
        Story(
            partition="long",
            account="astro",
            qos="high",
            rank=14085,
            limit_s=93600,
            nodes="n5",
            cpus=12,
            submit_s=0,
            nice=10,
        ),
        tasks=12,
        memory_mib=20480,
        nodes_max=1,
        memory_per=Per.NODE,
        nodes_required="n5",
    ),
    line(
        1503,
        2002,
        "gpu_job_with_a_long_name",
        Story(
            partition="gpu", account="hep", rank=12100, limit_s=7200, nodes="g1", cpus=2, submit_s=0
        ),
        cpus_per_task=2,
        memory_mib=0,
        gres=(GresAsk("gpu", "mi300x", 4, Per.NODE),),
    ),
    line(
        1504,
        2002,
        "g2",
        Story(
            partition="gpu", account="hep", rank=12009, limit_s=3600, nodes="g2", cpus=4, submit_s=0
        ),
        memory_mib=4000,
        memory_per=Per.GPU,
        features="a100",
        gres=(GresAsk("gpu", "a100", 2, Per.JOB),),
    ),
    line(
        1505,
        2002,
        "arr",
        Story(
            account="hep",
            rank=12323,
            limit_s=300,
            submit_s=0,
            reason="JobArrayTaskLimit",
            array=(1505, TaskSet(((3, 6, 1),))),
            throttle=2,
        ),
        memory_mib=100,
        memory_per=Per.NODE,
        nodes_required="n3",
    ),
    line(
        1509,
        2002,
        "arr",
        Story(
            account="hep",
            rank=12323,
            limit_s=300,
            nodes="n3",
            array=(1505, TaskSet.single(1)),
            submit_s=0,
        ),
        memory_mib=100,
        memory_per=Per.NODE,
        nodes_required="n3",
    ),
    line(
        1510,
        2002,
        "arr",
        Story(
            account="hep",
            rank=12323,
            limit_s=300,
            nodes="n3",
            array=(1505, TaskSet.single(2)),
            submit_s=0,
        ),
        memory_mib=100,
        memory_per=Per.NODE,
        nodes_required="n3",
    ),
    line(
        1506,
        2003,
        "het",
        Story(account="chem", rank=12324, het=(1506, 0), nodes="n4", submit_s=0),
        memory_mib=200,
        memory_per=Per.NODE,
        nodes_required="n4",
        nodes_excluded="n6",
    ),
    line(
        1507,
        2003,
        "het",
        Story(account="chem", rank=12328, het=(1506, 1), nodes="n6", cpus=2, submit_s=0),
        memory_mib=300,
        memory_per=Per.NODE,
        nodes_required="n6",
        nodes_excluded="n4",
        tasks=2,
    ),
    line(
        1508,
        2003,
        "excl",
        Story(
            partition="excl",
            account="chem",
            rank=10525,
            limit_s=1800,
            reason=NODES_DOWN,
            submit_s=0,
        ),
        nodes_required="n6",
        sharing=Sharing.EXCLUSIVE,
    ),
    line(1511, 2001, "held", Story(rank=0, reason="JobHeldUser")),
    line(1512, 2001, "adminheld", Story(rank=0, reason="JobHeldAdmin", start_in_s=3601)),
    line(
        1513,
        2001,
        "later",
        Story(partition="long", rank=11324, limit_s=3600, reason="BeginTime", start_in_s=7201),
    ),
    line(1514, 2001, "dep", Story(rank=12324, reason="Dependency")),
    line(1515, 2001, "depnever", Story(rank=12324, reason="Dependency")),
    line(
        1516,
        2003,
        "resources",
        Story(partition="gpu", account="chem", rank=12259, reason="Resources"),
        gres=(GresAsk("gpu", "mi300x", 8, Per.NODE),),
    ),
    line(
        1517,
        2003,
        "priority",
        Story(partition="gpu", account="chem", rank=11759, nice=500, reason="Priority"),
        gres=(GresAsk("gpu", "mi300x", 8, Per.NODE),),
    ),
    line(
        1518,
        2003,
        "lic1",
        Story(account="chem", rank=12323, nodes="n4", start_in_s=2, submit_s=1),
        memory_mib=100,
        memory_per=Per.NODE,
        nodes_required="n4",
        licenses="matlab:4",
    ),
    line(
        1519,
        2003,
        "lic",
        Story(account="chem", rank=12323, reason="Priority", submit_s=2),
        memory_mib=100,
        memory_per=Per.NODE,
        nodes_required="n4",
        licenses="matlab:1,ansys",
    ),
    line(
        1520, 2001, "ptl", Story(rank=12324, limit_s=7200, reason="PartitionTimeLimit", submit_s=2)
    ),
    line(
        1521,
        2001,
        "pnl",
        Story(partition="small", rank=10588, limit_s=300, reason="PartitionNodeLimit", submit_s=2),
        nodes_min=3,
        tasks=3,
        nodes_max=3,
    ),
    line(
        1522,
        2001,
        "partdown",
        Story(partition="closed", rank=10537, limit_s=3600, reason="PartitionDown", submit_s=2),
    ),
    line(
        1523,
        2001,
        "qosmax",
        Story(rank=12187, reason="Priority", submit_s=2, qos="capped"),
        tasks=4,
        memory_mib=100,
        memory_per=Per.NODE,
        nodes_required="n4",
    ),
    line(
        1524,
        2004,
        "assocgrp",
        Story(account="bio", rank=12380, reason="AssocGrpCpuLimit", submit_s=2),
        tasks=12,
        nodes_min=5,
    ),
    line(
        1525,
        2002,
        "nodedown",
        Story(
            partition="broken",
            account="hep",
            rank=10552,
            limit_s=3600,
            reason=NODES_DOWN,
            submit_s=2,
        ),
    ),
)
"""The jobs of the recording."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_squeue_shows_what_slurm_showed(case: dict[str, Any]) -> None:
    """Someone's script cuts the columns of squeue at the places where Slurm puts them."""
    given, words = parse_arguments(
        shlex.split(case["command"])[1:], OPTIONS["squeue"], program="squeue"
    )
    values = layer_of(given, "squeue").values
    if "format" in values:
        layout = parse_format(values["format"], BY_LETTER)
    elif "long_format" in values:
        layout = parse_long_format(values["long_format"], BY_NAME)
    else:
        layout = parse_format(LONG_FORMAT if "long" in values else DEFAULT_FORMAT, BY_LETTER)
    now_ns = (SCENE_S + case["now_s"]) * NS
    lines = [row._replace(now_ns=now_ns, converts="noconvert" not in values) for row in SCENE]
    bunches = [Bunch(row).split() if "array" in values else Bunch(row) for row in lines]
    found = sorted_bunches(bunches, parse_sort(values.get("sort", DEFAULT_SORT)))
    shown = [layout.header(), *Typesetter(layout).text(found).split("\n")[:-1]]
    # The first line of -l is the date.
    assert shown == (case["stdout"][1:] if "long" in values else case["stdout"])
    assert words == []
    complaints = (f"squeue: error: Invalid job format specification: {n}" for n in layout.unknown)
    # The first byte of a letter that takes two.
    assert list(complaints) == case["stderr"].replace("\\xc3", "\udcc3").splitlines()


@pytest.mark.parametrize(
    ("state", "reason", "shown"),
    [
        (JobState.FAILED, "NonZeroExitCode", "(NonZeroExitCode)"),
        (JobState.TIMEOUT, "TimeLimit", "(TimeLimit)"),
        (JobState.COMPLETED, "None", "n[1-2]"),
        (JobState.CANCELLED, "None", "n[1-2]"),
    ],
)
def test_a_job_that_failed_shows_how_in_place_of_its_nodes(
    state: JobState, reason: str, shown: str
) -> None:
    """As Slurm did in the same states; while its nodes are cleaned up it still shows them."""
    line = next(row for row in SCENE if row.job.spec.name == "alpha")
    ended = line._replace(job=replace(line.job, state=state), reason=reason)
    layout = parse_format("%R", BY_LETTER)
    assert layout.line(ended) == shown
    ends = ended._replace(job=replace(ended.job, completing=True))
    assert layout.line(ends) == "n[1-2]"


def test_jobs_that_nobody_ranked_stand_by_their_nice() -> None:
    """A user lets one of their jobs wait behind another, and holds a third."""
    base = next(row for row in SCENE if row.job.spec.name == "ptl")

    def job(name: str, nice: int, hold: Hold = Hold.NONE) -> JobLine:
        spec = replace(base.job.spec, name=name, nice=nice)
        row = replace(base.job, spec=spec, priority=None, points=1.0 - nice, hold=hold)
        return base._replace(job=row)

    rows = [job("held", 0, Hold.USER), job("nice", 500), job("plain", 0)]
    found = sorted_bunches(map(Bunch, rows), parse_sort("-p"))
    shown = [bunch.line.job.spec.name for bunch, _ in found]
    assert shown == ["plain", "nice", "held"]


RECORDS: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "slurm" / "scontrol.json").read_text(encoding="utf-8")
)["jobs"]

UNKNOWN_HERE = re.compile(r"AllocNode:Sid=\S+|(?<=Std(?:Err|Out)=).*")
"""What the controller keeps apart from the queue: files, and where a job was submitted."""


@pytest.mark.parametrize("name", RECORDS)
def test_scontrol_tells_of_a_job_what_slurm_told(name: str) -> None:
    """Someone's script pulls a key out of the record of a job."""
    (row,) = (row for row in SCENE if row.job.job_id == int(name))
    row = row._replace(now_ns=(SCENE_S + 13) * NS)
    shown = show_job(row, one_line=False).split("\n")
    known = [UNKNOWN_HERE.sub("", line) for line in shown]
    assert known == [UNKNOWN_HERE.sub("", line) for line in RECORDS[name]]
    whole = show_job(row, one_line=True)
    assert whole == " ".join(line.removeprefix("   ") for line in shown[:-2]) + "\n"
