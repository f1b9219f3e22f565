"""Attempts without an agent: a launch order, its manifest on disk, and a supervisor of it.

async with Nursery(tmp_path) as nursery:
    outcome = await nursery.run(launch_order(script=b"#!/bin/sh\\nexit 3\\n", directory=...))
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from spur.agent.control import Order, deliver
from spur.agent.manifest import (
    MANIFEST,
    OUTCOME,
    AttemptName,
    Launch,
    Manifest,
    Outcome,
    Site,
    decode_outcome,
    directory_name,
    encode_manifest,
)
from spur.agent.notices import Claimed, Ended, Gone
from spur.agent.warm import Warm, WarmNotice
from spur.slurm.exports import encode_environment
from spur.values.config import NodeBlock, NodeStart
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec, JobText, ResourceAsk, Sharing, encode_text
from spur.values.steps import Dealing
from spur.values.tres import NodeShare, Per, cpu_set
from spur.wire.agents import LaunchOrder, LaunchStepOrder

__all__ = ["ASK", "BLOCK", "SPEC", "Life", "Nursery", "launch_order", "step_order"]

ASK = ResourceAsk(
    nodes_min=1,
    nodes_max=0,
    tasks=1,
    tasks_per_node=0,
    cpus_per_task=1,
    memory_mib=0,
    memory_per=Per.NODE,
    memory_is_default=False,
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
"""One task on one CPU."""

SPEC = JobSpec(
    name="job",
    partitions=(PartitionName("debug"),),
    account="",
    qos="",
    ask=ASK,
    time_limit_s=None,
    begin_ns=0,
    nice=0,
    requeue=True,
    batch=True,
    deadline_ns=0,
    dependency=None,
    kill_on_invalid_dependency=None,
    time_limit_min_s=None,
)

BLOCK = NodeBlock(
    names="n1",
    cpus=4,
    memory_mib=8000,
    gpu_kind="",
    gpus=0,
    features=(),
    agent="",
    boards=1,
    sockets=1,
    cores_per_socket=4,
    threads_per_core=1,
    core_spec_count=0,
    memory_spec_mib=0,
    disk_mib=0,
    weight=1,
    address="",
    port="",
    start=NodeStart.UNKNOWN,
    reason="",
    gres=(),
    others=(),
)


def launch_order(
    *,
    script: bytes = b"#!/bin/sh\n",
    directory: bytes = b"/",
    stdin: bytes = b"",
    stdout: bytes = b"",
    stderr: bytes = b"",
    arguments: tuple[bytes, ...] = (),
    options: tuple[tuple[str, bytes], ...] = (),
    variables: dict[bytes, bytes] | None = None,
    **changes: Any,
) -> LaunchOrder:
    """Return the order to run a script on node n1, by the user who runs this, as job 5."""
    text = JobText(directory, (b"job.sh", *arguments), stdin, stdout, stderr, b"", options)
    order = LaunchOrder(
        node=NodeName("n1"),
        job_id=JobId(5),
        run=0,
        attempt=1,
        uid=os.geteuid(),
        gid=os.getegid(),
        spec=SPEC,
        array_id=JobId(0),
        task=None,
        array_count=0,
        array_min=0,
        array_max=0,
        array_step=0,
        partition=PartitionName("debug"),
        partition_nodes="n1",
        shares=(NodeShare(NodeName("n1"), 1, 500, 0, cpu_set(1), False),),
        node_cpus=(4,),
        block=BLOCK,
        limit_ns=0,
        start_ns=0,
        script=script,
        environment=encode_environment({b"PATH": os.defpath.encode()} | (variables or {})),
        text=encode_text(text),
        cluster_name="demo",
        kill_wait_s=5,
        default_memory_per=Per.CPU,
        default_memory_mib=500,
        task_plugin="",
        file_append=False,
        topology="n1",
        topology_pattern="node",
    )
    return msgspec.structs.replace(order, **changes)


def step_order(**changes: Any) -> LaunchStepOrder:
    """Return the order for step 0 of job 5, with one task on node n1."""
    order = LaunchStepOrder(
        node=NodeName("n1"),
        job_id=JobId(5),
        run=0,
        attempt=1,
        step_id=0,
        name="prog",
        uid=os.geteuid(),
        gid=os.getegid(),
        shares=(NodeShare(NodeName("n1"), 1, 500, 0, cpu_set(1), False),),
        tasks=(1,),
        dealing=Dealing.BLOCK,
        plane=1,
        cpus_per_task=1,
        key_digest=b"",
        limit_ns=0,
        cluster_name="demo",
        kill_wait_s=5,
    )
    return msgspec.structs.replace(order, **changes)


@dataclass
class Life:
    """What came of one supervisor."""

    directory: Path
    claimed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    pid: int = 0
    status: int | None = None

    def tell(self, order: Order) -> bool:
        """Deliver an order, and return whether anything of the user's lived."""
        return deliver(str(self.directory), order).alive

    def outcome(self) -> Outcome:
        """Return what the supervisor wrote. Raises: FileNotFoundError when it did not."""
        return decode_outcome((self.directory / OUTCOME).read_bytes())


class Nursery:
    """A warm process of its own, and a spool."""

    def __init__(self, spool: Path) -> None:
        """Keep the attempts below a directory."""
        self.spool = spool
        self.lives: dict[str, Life] = {}

    async def __aenter__(self) -> Nursery:
        """Start the warm process."""
        self.warm = await Warm.start(self._hear)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the warm process end."""
        self.warm.close()

    def _hear(self, notice: WarmNotice) -> None:
        life = self.lives[notice.directory]
        match notice:
            case Claimed():
                life.claimed.set()
            case Ended():
                life.ended.set()
            case Gone():
                life.status = notice.status
                life.gone.set()

    async def begin(self, order: Launch, *, host_name: str = "") -> Life:
        """Write a manifest and have a supervisor forked for it."""
        step = order.step_id if isinstance(order, LaunchStepOrder) else None
        name = AttemptName(order.node, order.job_id, order.run, step, order.attempt)
        directory = self.spool / directory_name(name)
        directory.mkdir(parents=True, mode=0o711, exist_ok=True)
        site = Site(
            relay="/relay", slurm_conf="/etc/slurm.conf", host_name=host_name, working_cluster=""
        )
        manifest = Manifest("boot", 0, 1, 1, order, site)
        (directory / MANIFEST).write_bytes(encode_manifest(manifest))
        life = self.lives[str(directory)] = Life(directory)
        life.pid = await self.warm.fork(str(directory))
        return life

    async def run(self, order: Launch, *, host_name: str = "") -> Outcome:
        """Run an attempt to its end."""
        life = await self.begin(order, host_name=host_name)
        await life.gone.wait()
        return life.outcome()
