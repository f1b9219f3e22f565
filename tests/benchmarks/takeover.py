"""Failover of whole controllers with a long queue: kill -9 of the leader, again and again.

    ops/bench takeover [--kills 50] [--pending 100000]

From the kill of the leader to the next accepted submission, by a client that asks all the while
with the same request id. A killed controller starts again and catches up before the next kill.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from spur.testing.controllers import ControllerProcess, Controllers
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.jobs import JobAccepted
from tests.benchmarks.figures import Figure, describe_machine, percentile, print_figures
from tests.benchmarks.queue_load import SUBMISSION, fill, running_cluster
from tests.benchmarks.scratch import scratch_directory

SETTLE_S = 1.0
"""Rest between a healed cluster and the next kill."""

HEAL_S_MAX = 120.0


async def fail_over(controllers: Controllers) -> float:
    """Kill the leader; return the seconds until another one accepted a submission."""
    leader = await controllers.leader()
    survivors = [member for member in controllers.members if member is not leader]
    async with controllers.client() as client:
        client_ready = await client.ask(SUBMISSION, JobAccepted)
        if not isinstance(client_ready, JobAccepted):
            raise RuntimeError(f"a submission was refused: {client_ready}")
        killed = time.perf_counter()
        leader.kill()
        answer = await client.ask(SUBMISSION, JobAccepted)
        took_s = time.perf_counter() - killed
    if not isinstance(answer, JobAccepted):
        raise RuntimeError(f"a submission was refused: {answer}")
    leader.start()
    await heal(controllers, leader, survivors[0])
    await asyncio.sleep(SETTLE_S)
    return took_s


async def heal(controllers: Controllers, late: ControllerProcess, other: ControllerProcess) -> None:
    """Wait until a restarted controller is level with another one."""
    async with controllers.local(late, deadline_s=HEAL_S_MAX) as mine:
        while True:
            async with controllers.local(other) as theirs:
                goal = await theirs.ask(ShowReplica(), ReplicaInfo)
            here = await mine.ask(ShowReplica(), ReplicaInfo)
            if (
                isinstance(goal, ReplicaInfo)
                and isinstance(here, ReplicaInfo)
                and here.commit >= goal.commit
                and here.leader
            ):
                return
            await asyncio.sleep(0.1)


async def measure(directory: Path, options: argparse.Namespace) -> list[float]:
    """Return the seconds of every failover."""
    async with running_cluster(directory, 3) as controllers:
        clients = [controllers.client() for _ in range(4)]
        await fill(clients, options.pending)
        for client in clients:
            await client.close()
        return [await fail_over(controllers) for _ in range(options.kills)]


def main() -> None:
    """Measure and print the figure."""
    parser = argparse.ArgumentParser(description="failover of whole controllers")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--pending", type=int, default=100_000)
    options = parser.parse_args()
    with scratch_directory("takeover") as scratch:
        machine = describe_machine(scratch)
        took_s = asyncio.run(measure(scratch / "cluster", options))
    figure = Figure(
        name="takeover",
        subject=f"3 controllers, {options.pending} pending",
        unit="s",
        values=tuple(took_s),
        conditions={"p95": round(percentile(sorted(took_s), 0.95), 3)},
    )
    print_figures([figure], machine)


if __name__ == "__main__":
    main()
