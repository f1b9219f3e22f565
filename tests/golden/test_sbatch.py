"""What sbatch says of submissions, and scontrol shows of them, as a real Slurm 22.05 did.

`slurm/submissions.json` holds what was recorded with and without EnforcePartLimits: the options,
and what was said on standard error; a submission about which nothing was said was accepted.
`slurm/jobs.json` holds lines of `scontrol show job` of held jobs with these options.
"""

from __future__ import annotations

import json
import pwd
import re
import shlex
from pathlib import Path
from typing import TypeVar

import pytest

from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError
from spur.testing.builders import CLUSTER as BY_CLUSTER
from spur.testing.builders import Cluster, actor
from spur.testing.conformance.site import overridden
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName
from spur.wire.cluster import Reconfigure
from spur.wire.declare import Answer, Request
from spur.wire.jobs import JobAccepted, SubmitJob
from spur.wire.nodes import RegisterNode
from spur.wire.texts import JobTexts, JobTextView, ReadTexts
from spur_cli.commands.sbatch import submit
from spur_cli.slurm.session import Session
from spur_cli.slurm.shows import show_jobs
from spur_cli.slurm.signals import Signals

HERE = Path(__file__).parent
CLUSTER = HERE.parent / "data" / "slurm" / "cluster"
RECORDED: list[dict[str, str | list[str]]] = json.loads(
    (HERE / "slurm" / "submissions.json").read_text(encoding="utf-8")
)

SHOWN: list[dict[str, str | list[str]]] = json.loads(
    (HERE / "slurm" / "jobs.json").read_text(encoding="utf-8")
)

A = TypeVar("A", bound=Answer)


class Asking(Session):
    """A session of a user whose controller is in this process."""

    def __init__(self, cluster: Cluster, program: str = "sbatch") -> None:
        super().__init__(program, {})
        self.cluster = cluster
        self.texts: dict[JobId, bytes] = {}

    def ask(
        self, request: Request, expected: type[A], *, held_with: Signals | None = None
    ) -> A | Rejection:
        answer: Answer | Rejection
        if isinstance(request, ReadTexts):
            views = [JobTextView(each, self.texts[each], False) for each in request.job_ids]
            answer = JobTexts(tuple(views), len(views))
        else:
            answer = self.cluster.ask(request, actor(2001))
        if isinstance(request, SubmitJob) and isinstance(answer, JobAccepted):
            contents = {each.name: each.content for each in request.attachments}
            self.texts[answer.job_id] = contents["text"]
        assert isinstance(answer, (expected, Rejection))
        return answer


def cluster_with(limits: str) -> Cluster:
    """Return the recorded cluster, as it enforces the limits of partitions."""
    files = [
        ConfigFile(name, (CLUSTER / name).read_text(encoding="utf-8"))
        for name in ("slurm.conf", "gres.conf", "topology.conf")
    ]
    text = overridden(files[0].text, {"EnforcePartLimits": limits})
    cluster = Cluster(checked=False)
    answer = cluster.ask(Reconfigure((ConfigFile("slurm.conf", text), *files[1:])))
    assert not isinstance(answer, Rejection), answer
    return cluster


@pytest.fixture(scope="module")
def clusters() -> dict[str, Cluster]:
    return {limits: cluster_with(limits) for limits in ("NO", "ALL")}


@pytest.mark.parametrize(
    ("limits", "options", "says"), [tuple(record.values()) for record in RECORDED]
)
def test_a_submission_is_answered_as_slurm_answered_it(
    clusters: dict[str, Cluster],
    capsys: pytest.CaptureFixture[str],
    limits: str,
    options: str,
    says: list[str],
) -> None:
    """Someone tries what their cluster refused, and what it let wait."""
    lines: tuple[str, ...] = ()
    try:
        submit(Asking(clusters[limits]), [*shlex.split(options), "--wrap", "sleep 1"])
    except SlurmError as error:
        lines = error.lines
    out, err = capsys.readouterr()
    assert [*err.splitlines(), *lines] == says
    assert bool(lines) != out.startswith("Submitted batch job ")


@pytest.mark.parametrize(("options", "lines"), [tuple(record.values()) for record in SHOWN])
def test_a_job_is_shown_as_slurm_showed_it(
    clusters: dict[str, Cluster],
    capsys: pytest.CaptureFixture[str],
    options: str,
    lines: list[str],
) -> None:
    """A script reads what scontrol tells of a job of its own."""
    session = Asking(clusters["NO"])
    words = ["-H", *shlex.split(options), "--wrap", "true"]
    assert submit(session, words) == 0
    (job_id,) = session.texts
    capsys.readouterr()
    show_jobs(session, Layer({}, {}), [str(job_id)])
    shown = [line.removeprefix("   ") for line in capsys.readouterr().out.splitlines()]
    user = pwd.getpwuid(2001).pw_name if _is_there(2001) else "2001"
    wanted = [line.replace("MailUser=u1", f"MailUser={user}") for line in lines]
    kept = [line for line in shown if line.split("=")[0] in _names(wanted)]
    assert [line.rstrip() for line in kept] == [line.rstrip() for line in wanted]
    extra = [line for line in shown[13:] if line.split("=")[0] not in _names(wanted)]
    assert {line.split("=")[0] for line in extra} <= ELSEWHERE


ELSEWHERE = {"", "Command", "WorkDir", "StdErr", "StdIn", "StdOut"}
"""Lines behind the nodes that hold paths of the recording."""


def _names(lines: list[str]) -> set[str]:
    return {line.split("=")[0] for line in lines}


def _is_there(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def test_enough_was_recorded() -> None:
    """Files that lost their lines would pass every test."""
    assert len(RECORDED) >= 90
    assert len(SHOWN) >= 120


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "using 1 processors on nodes n1 in partition debug"),
        ("--parsable", "using 1 processors on nodes n1 in partition debug"),
        ("-N2 -n6 -c2", "using 12 processors on nodes n[5-6] in partition debug"),
        ("-a 1-5", "using 1 processors on nodes n1 in partition debug"),
        ("-p closed", "using 1 processors on nodes n1 in partition closed"),
        ("-Q", ""),
    ],
)
def test_a_forecast_is_told_as_slurm_tells_it(
    capsys: pytest.CaptureFixture[str], options: str, says: str
) -> None:
    """Somebody asks when a job would start, and submits nothing."""
    cluster = cluster_with("NO")
    for number in range(1, 7):
        cpus, memory_mib = (4, 8_000) if number < 5 else (16, 32_000)
        cluster.ask(RegisterNode(NodeName(f"n{number}"), b"b", cpus, memory_mib, "", 0), BY_CLUSTER)
    status = submit(Asking(cluster), ["--test-only", *shlex.split(options), "--wrap", "true"])
    out, err = capsys.readouterr()
    assert (status, out) == (0, "")
    told = re.sub(r"Job \d+ to start at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d ", "", err)
    assert told == (f"sbatch: {says}\n" if says else "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-n100000", ["allocation failure: Requested node configuration is not available"]),
        ("-C nosuch", ["allocation failure: Invalid feature specification"]),
        (
            "-p nosuch",
            [
                "sbatch: error: invalid partition specified: nosuch",
                "allocation failure: Invalid partition name specified",
            ],
        ),
    ],
)
def test_a_forecast_of_what_cannot_be_is_a_failure(
    clusters: dict[str, Cluster], options: str, says: list[str]
) -> None:
    """Somebody tries out what would be refused."""
    words = ["--test-only", *shlex.split(options), "--wrap", "true"]
    with pytest.raises(SlurmError) as refused:
        submit(Asking(clusters["NO"]), words)
    assert (list(refused.value.lines), refused.value.status) == (says, 1)
