"""What sacctmgr says as it shows, adds, changes and deletes, as a real Slurm 22.05 said it.

`slurm/sacctmgr.json` holds cases: what was done before, and commands with what they said. Each
begins with the accounts of the recorded site, which `sacctmgr` itself adds.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from spur.slurm.wording import SlurmError
from spur.testing.builders import Cluster, actor
from spur.testing.conformance.cases import Case, Step
from spur.testing.conformance.judge import differs
from spur.values.accounts import Subject
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.wire.accounts import EntityPage, QueryEntities
from spur.wire.cluster import Reconfigure
from spur.wire.declare import Answer, Request
from spur_cli.commands.sacctmgr import execute
from spur_cli.slurm import accountadds
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals

HERE = Path(__file__).parent
SITE = HERE.parent / "data" / "slurm" / "cluster"
RECORDED = msgspec.json.decode((HERE / "slurm" / "sacctmgr.json").read_bytes(), type=list[Case])

UIDS = {"root": 0, "u1": 2001, "u2": 2002, "u3": 2003, "u4": 2004}

A = TypeVar("A", bound=Answer)


class Asking(Session):
    """A session of a user whose controller is in this process."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        super().__init__("sacctmgr", {})
        self._cluster = cluster
        self._who = actor(UIDS[user])

    def ask(
        self, request: Request, expected: type[A], *, held_with: Signals | None = None
    ) -> A | Rejection:
        answer = self._cluster.ask(request, self._who)
        assert isinstance(answer, (expected, Rejection))
        return answer


def newborn() -> Cluster:
    """Return a cluster with the recorded configuration and nobody in it."""
    files = [
        ConfigFile(name, (SITE / name).read_text(encoding="utf-8"))
        for name in ("slurm.conf", "gres.conf", "topology.conf")
    ]
    cluster = Cluster(checked=False)
    assert not isinstance(cluster.ask(Reconfigure(tuple(files))), Rejection)
    return cluster


def call(cluster: Cluster, words: list[str], user: str = "root") -> tuple[str, int]:
    """Run sacctmgr; return what else goes to stderr, and the exit status."""
    try:
        return "", execute(Asking(cluster, user), words)
    except SlurmError as error:
        return "".join(f"{line}\n" for line in error.lines), error.status


@pytest.fixture(autouse=True)
def known_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be on a host that knows the recorded users."""
    monkeypatch.setattr(accountadds, "user_id", UIDS.get)


@pytest.fixture
def cluster() -> Cluster:
    """Return the recorded cluster with its accounts."""
    cluster = newborn()
    for line in (SITE / "accounts.txt").read_text(encoding="utf-8").splitlines():
        said, status = call(cluster, ["-i", *shlex.split(line)])
        assert (said, status) == ("", 0), line
    return cluster


def typed(text: str) -> io.TextIOBase:
    """Return a standard input where somebody has typed this."""
    end, begin = os.pipe()
    os.write(begin, text.encode())
    os.close(begin)
    return os.fdopen(end)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.name)
def test_sacctmgr_says_what_slurm_said(
    cluster: Cluster,
    case: Case,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A site's scripts and people call sacctmgr as they always did."""
    for step in case.setup:
        call(cluster, shlex.split(step.command or "")[1:], step.user)
    capsys.readouterr()
    for step in case.steps:
        with typed(step.stdin or "") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert _differs(cluster, step, capsys) == ""


def _differs(cluster: Cluster, step: Step, capsys: pytest.CaptureFixture[str]) -> str:
    said, status = call(cluster, shlex.split(step.command or "")[1:], step.user)
    out, err = capsys.readouterr()
    return differs(step, stdout=out, stderr=err + said, exit_code=status, variables={}, recorded={})


def test_enough_was_recorded() -> None:
    """A file that lost its cases would pass every test."""
    assert len(RECORDED) >= 150


def test_the_site_is_there_after_a_replay(cluster: Cluster) -> None:
    """Someone reads what the log holds of the site."""
    page = cluster.ask(QueryEntities(Subject.ASSOCIATION, (), 100))
    assert isinstance(page, EntityPage)
    limits = {view.key: view.settings for view in page.entities}["bio", "", ""]
    assert [(setting.name, setting.resource, setting.value) for setting in limits] == [
        ("Fairshare", "", 20),
        ("GrpSubmitJobs", "", 10),
        ("GrpTRES", "cpu", 8),
        ("MaxJobs", "", 3),
        ("Parent", "", "root"),
        ("QOS", "", ("low", "normal")),
    ]
