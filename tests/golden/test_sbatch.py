"""What sbatch says of submissions, word for word, on the configuration of a real Slurm 22.05.

`slurm/submissions.json` holds what was recorded with and without EnforcePartLimits: the options,
and what was said on standard error; a submission about which nothing was said was accepted.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TypeVar

import pytest

from spur.slurm.wording import SlurmError
from spur.testing.builders import Cluster, actor
from spur.testing.conformance.site import overridden
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.wire.cluster import Reconfigure
from spur.wire.declare import Answer, Request
from spur_cli.commands.sbatch import submit
from spur_cli.slurm.session import Session

HERE = Path(__file__).parent
CLUSTER = HERE.parent / "data" / "slurm" / "cluster"
RECORDED: list[dict[str, str | list[str]]] = json.loads(
    (HERE / "slurm" / "submissions.json").read_text(encoding="utf-8")
)

A = TypeVar("A", bound=Answer)


class Asking(Session):
    """A session of a user whose controller is in this process."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("sbatch", {})
        self._cluster = cluster

    def ask(self, request: Request, expected: type[A]) -> A | Rejection:
        answer = self._cluster.ask(request, actor(2001))
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


def test_enough_was_recorded() -> None:
    """A file that lost its lines would pass every test."""
    assert len(RECORDED) >= 90
