"""What sinfo shows of nodes in many states, as a real Slurm 22.05 showed it.

`slurm/sinfo.json` holds commands and what they said. Reservations are shown here before there are
any: the marks of the nodes that they keep are put there by hand.

%i is left out: later releases know it, and so do we.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from spur.slurm.wording import SlurmError
from spur.testing.builders import Cluster
from spur.testing.conformance.cases import Step
from spur.testing.conformance.judge import differs
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.wire.cluster import Reconfigure
from spur.wire.declare import Answer, Request
from spur.wire.nodes import NodeList
from spur_cli.commands.sinfo import show
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals

HERE = Path(__file__).parent
CLUSTER = HERE.parent / "data" / "slurm" / "cluster"
RECORDED = msgspec.json.decode((HERE / "slurm" / "sinfo.json").read_bytes(), type=list[Step])

SET_NS = 1_796_027_801_000_000_000
IS_OUT: dict[str, Any] = {"reason_uid": 0, "reason_ns": SET_NS}

FACTS: dict[str, dict[str, Any]] = {  # fields of NodeInfo
    "n1": {"state": "MIXED", "cpus_allocated": 2, "memory_mib_allocated": 100},
    "n2": {"state": "ALLOCATED", "cpus_allocated": 4, "memory_mib_allocated": 100},
    "n3": {
        "state": "MIXED+DRAIN",
        "cpus_allocated": 1,
        "memory_mib_allocated": 100,
        "reason": "replace dimm",
        **IS_OUT,
    },
    "n4": {"state": "IDLE+DRAIN", "reason": "a rather long reason text for a node", **IS_OUT},
    "n5": {"state": "IDLE+RESERVED"},
    "n6": {"state": "IDLE+MAINTENANCE+RESERVED"},
    "g1": {
        "state": "MIXED",
        "cpus_allocated": 2,
        "memory_mib_allocated": 12_000,
        "gpus_allocated": 0b111,
    },
    "g2": {"state": "DOWN", "reason": "psu", **IS_OUT},
    "x1": {"state": "DOWN", "reason": "not installed", **IS_OUT},
    "c1": {},
    "c2": {},
}

A = TypeVar("A", bound=Answer)


def recorded_cluster() -> Cluster:
    """Return a cluster with the recorded configuration."""
    files = [
        ConfigFile(name, (CLUSTER / name).read_text(encoding="utf-8"))
        for name in ("slurm.conf", "gres.conf", "topology.conf")
    ]
    cluster = Cluster(checked=False)
    answer = cluster.ask(Reconfigure(tuple(files)))
    assert not isinstance(answer, Rejection), answer
    return cluster


class Asking(Session):
    """A session whose controller is in this process, with its nodes in the recorded states."""

    def __init__(self, cluster: Cluster, step: Step) -> None:
        super().__init__("sinfo", step.env or {})
        self._cluster = cluster
        self._user = step.user

    @property
    def is_root(self) -> bool:
        return self._user == "root"

    def ask(
        self, request: Request, expected: type[A], *, held_with: Signals | None = None
    ) -> A | Rejection:
        answer = self._cluster.ask(request)
        if isinstance(answer, NodeList):
            nodes = [
                replace(
                    node,
                    load_milli=None if node.name[0] in "cx" else 500,
                    free_memory_mib=None if node.name[0] in "cx" else 10_000,
                    **FACTS[node.name],
                )
                for node in answer.nodes
                if node.name in FACTS
            ]
            answer = replace(answer, nodes=tuple(nodes))
        assert isinstance(answer, (expected, Rejection))
        return answer


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return recorded_cluster()


@pytest.mark.parametrize("step", RECORDED, ids=lambda step: step.command)
def test_sinfo_shows_what_slurm_showed(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    step: Step,
) -> None:
    """Someone reads sinfo by a script that was written for Slurm."""
    lines: tuple[str, ...] = ()
    status = 0
    try:
        words = shlex.split(step.command or "")[1:]
        status = show(Asking(cluster, step), words)
    except SlurmError as error:
        lines, status = error.lines, error.status
    out, err = capsys.readouterr()
    err += "".join(f"{line}\n" for line in lines)
    reason = differs(step, stdout=out, stderr=err, exit_code=status, variables={}, recorded={})
    assert reason == ""


def test_enough_was_recorded() -> None:
    """A file that lost its lines would pass every test."""
    assert len(RECORDED) >= 200
