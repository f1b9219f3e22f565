"""scontrol show node and partition, word for word, of the files of a real Slurm 22.05.

`slurm/scontrol.json` holds what was recorded; the configuration is that of the recording.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spur.slurm.configfile import parse_slurm_config
from spur.slurm.shownode import show_node, show_partition
from spur.slurm.timespec import Moment
from spur.values.config import ConfigFile
from spur.values.hostlist import parse_hostlist
from spur.values.ids import HostId, NodeName
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import PartitionInfo

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


ELSEWHERE = re.compile(r"PreemptMode=\S+|,license/.*")
"""The cluster's own way to preempt, and licences: the answer about partitions has neither."""


@pytest.mark.parametrize("name", RECORDED["partitions"])
def test_partition_is_told_as_slurm_told_it(name: str) -> None:
    """Someone compares the partitions of their old cluster with the new one."""
    (block,) = (part for part in CONFIG.partitions if part.name == name)
    names = parse_hostlist(block.nodes)
    info = PartitionInfo(
        name=block.name,
        state=block.state,
        default=block.default,
        nodes=block.nodes,
        node_count=len(names),
        default_time_s=block.default_time_s,
        max_time_s=block.max_time_s,
        block=block,
    )
    members = [node for node in nodes() if node.name in names]
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
