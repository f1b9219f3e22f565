"""sinfo, scontrol show node and partition, word for word, of the files of a real Slurm 22.05.

`slurm/sinfo.json` and `slurm/scontrol.json` hold what was recorded; the configuration and the
nodes' states are those of the recording.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from spur.slurm.configfile import parse_slurm_config
from spur.slurm.shownode import show_node, show_partition
from spur.slurm.timespec import Moment
from spur.slurm.wording import SlurmError
from spur.values.config import ConfigFile, NodeStart
from spur.values.errors import Rejection
from spur.values.hostlist import parse_hostlist
from spur.values.ids import HostId, NodeName
from spur.wire.declare import Answer, Request
from spur.wire.nodes import ListNodes, NodeInfo, NodeList
from spur.wire.partitions import ListPartitions, PartitionInfo, PartitionList
from spur_cli.commands.sinfo import show
from spur_cli.slurm.session import Session

HERE = Path(__file__).parent
CLUSTER = HERE.parent / "data" / "slurm" / "cluster"
RECORDED: dict[str, dict[str, list[str]]] = json.loads(
    (HERE / "slurm" / "scontrol.json").read_text(encoding="utf-8")
)

CONFIG = parse_slurm_config(
    tuple(
        ConfigFile(name, (CLUSTER / name).read_text(encoding="utf-8"))
        for name in ("slurm.conf", "gres.conf", "topology.conf")
    )
)


A = TypeVar("A", bound=Answer)


class Utc:
    """The zone of the recording."""

    def now(self) -> int:
        return 0

    def moment(self, seconds: int) -> Moment:
        return Moment(*datetime.fromtimestamp(seconds, UTC).timetuple()[:6])

    def seconds(self, moment: Moment) -> int:
        return int(datetime(*moment, tzinfo=UTC).timestamp())


def nodes(**changes: Any) -> list[NodeInfo]:  # fields of NodeInfo
    """Return every node, in no use."""
    fields: dict[str, Any] = {  # as above
        "state": "DOWN",
        "cpus_allocated": 0,
        "memory_mib_allocated": 0,
        "gpus_allocated": 0,
        "reason": "",
        "reason_uid": 0,
        "reason_ns": 0,
        "host_id": HostId(0),
        "boot_id": b"",
    }
    return [
        NodeInfo(
            name=NodeName(name),
            cpus=block.cpus,
            memory_mib=block.memory_mib,
            gpu_kind=block.gpu_kind,
            gpus=block.gpus,
            features=block.features,
            partitions=tuple(
                part.name for part in CONFIG.partitions if name in parse_hostlist(part.nodes)
            ),
            block=block,
            **{**fields, **changes},
        )
        for block in CONFIG.nodes
        for name in parse_hostlist(block.names)
    ]


def partitions() -> tuple[PartitionInfo, ...]:
    """Return every partition."""
    return tuple(
        PartitionInfo(
            name=block.name,
            state=block.state,
            default=block.default,
            nodes=block.nodes,
            node_count=len(parse_hostlist(block.nodes)),
            default_time_s=block.default_time_s,
            max_time_s=block.max_time_s,
            block=block,
        )
        for block in CONFIG.partitions
    )


ELSEWHERE = re.compile(r"PreemptMode=\S+|,license/.*")
"""The cluster's own way to preempt, and licences: the answer about partitions has neither."""


@pytest.mark.parametrize("name", RECORDED["partitions"])
def test_partition_is_told_as_slurm_told_it(name: str) -> None:
    """Someone compares the partitions of their old cluster with the new one."""
    (info,) = (part for part in partitions() if part.name == name)
    members = [node for node in nodes() if name in node.partitions]
    shown = show_partition(info, members, one_line=False).split("\n")
    assert [ELSEWHERE.sub("", line) for line in shown] == [
        ELSEWHERE.sub("", line) for line in RECORDED["partitions"][name]
    ]
    assert show_partition(info, members, one_line=True).count("\n") == 1


def test_node_that_never_answered_is_told_as_slurm_told_it() -> None:
    """A node is in the files and was taken out by hand before it came up."""
    taken_s = Utc().seconds(Moment(2026, 11, 30, 8, 36, 41))
    (node,) = (
        node
        for node in nodes(reason="not installed", reason_ns=taken_s * 1_000_000_000)
        if node.name == "x1"
    )
    shown = show_node(node, Utc(), lambda uid: "root", one_line=False)
    assert shown.split("\n") == RECORDED["nodes"]["x1"]


def test_node_in_use_says_what_is_held() -> None:
    """Jobs hold CPUs, memory and three GPUs of a node."""
    (node,) = (
        node
        for node in nodes(cpus_allocated=2, memory_mib_allocated=12_000, gpus_allocated=0b111)
        if node.name == "g1"
    )
    shown = show_node(node, Utc(), str, one_line=True)
    assert "AllocTRES=cpu=2,mem=12000M,gres/gpu=3,gres/gpu:mi300x=3" in shown
    assert "CfgTRES=cpu=16,mem=62.50G,billing=16,gres/gpu=8,gres/gpu:mi300x=8" in shown
    assert " Gres=gpu:mi300x:8 " in shown


SINFO: list[dict[str, Any]] = json.loads(  # texts and statuses
    (HERE / "slurm" / "sinfo.json").read_text(encoding="utf-8")
)

TAKEN_NS = Utc().seconds(Moment(2026, 11, 30, 8, 36, 41)) * 1_000_000_000

IN_USE: dict[str, tuple[str, int, int, int, str]] = {
    "n1": ("MIXED", 2, 100, 0, ""),
    "n2": ("ALLOCATED", 4, 100, 0, ""),
    "n3": ("MIXED+DRAIN", 1, 100, 0, "replace dimm"),
    "n4": ("IDLE+DRAIN", 0, 0, 0, "a rather long reason text for a node"),
    "g1": ("MIXED", 2, 12_000, 0b111, ""),
    "g2": ("DOWN", 0, 0, 0, "psu"),
    "x1": ("DOWN", 0, 0, 0, "not installed"),
}
"""State, CPUs, memory, GPUs held, and why it is out; the others are idle."""


def nodes_of_scene() -> Iterator[NodeInfo]:
    """Yield the nodes of the recording in their states; future ones are not seen."""
    for node in sorted(nodes(), key=lambda node: node.name):
        state, cpus, memory_mib, gpus, reason = IN_USE.get(node.name, ("IDLE", 0, 0, 0, ""))
        if node.block.start is not NodeStart.FUTURE:
            yield replace(
                node,
                state=state,
                cpus_allocated=cpus,
                memory_mib_allocated=memory_mib,
                gpus_allocated=gpus,
                reason=reason,
                reason_ns=TAKEN_NS if reason else 0,
            )


class Recording(Session):
    """A session with the cluster of the recording."""

    def ask(self, request: Request, expected: type[A]) -> A | Rejection:
        answers: dict[type[Request], Answer] = {
            ListPartitions: PartitionList(partitions()),
            ListNodes: NodeList(tuple(nodes_of_scene()), None),
        }
        answer = answers[type(request)]
        assert isinstance(answer, expected)
        return answer


@pytest.mark.parametrize("case", SINFO, ids=lambda case: case["name"])
def test_sinfo_shows_what_slurm_showed(
    case: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone's script cuts the columns of sinfo at the places where Slurm puts them."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    arguments = shlex.split(case["command"])[1:]
    try:
        status = show(Recording("sinfo", {}), arguments)
        complaints: tuple[str, ...] = ()
    except SlurmError as error:
        status, complaints = error.status, error.lines
    shown = capsys.readouterr()
    said = shown.err.splitlines() + list(complaints)
    assert (status, said) == (case["exit_code"], case["stderr"].rstrip("\n").splitlines())
    # The first line of -l is the date.
    first = 1 if "-l" in arguments else 0
    assert shown.out.split("\n")[first:] == case["stdout"][first:]
