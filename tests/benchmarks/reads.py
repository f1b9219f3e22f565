"""What a read costs the leader: one that it answers, and one that a follower answers.

    ops/bench reads [--seconds 10] [--rounds 3] [--clients 16] [--pending 1000] [--rows 100]

Clients of one controller's Unix socket ask for pages of the queue, one after the other. Processor
time of the leader's front is read from the kernel, less what it takes when nobody asks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path

from spur.testing.controllers import ControllerProcess, Controllers
from spur.values.ids import JobId
from spur.wire.jobs import JobFilter, JobPage, QueryJobs
from tests.benchmarks.figures import Figure, describe_machine, print_figures
from tests.benchmarks.queue_load import fill, running_cluster
from tests.benchmarks.scratch import scratch_directory

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def processor_s(member: ControllerProcess) -> float:
    """Return the processor time that a controller's front has had."""
    fields = Path(f"/proc/{member.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


async def cost_ms(
    controllers: Controllers,
    leader: ControllerProcess,
    asked: ControllerProcess,
    options: argparse.Namespace,
    idle: float,
) -> tuple[float, float]:
    """Return the leader's processor time of a read in ms, and how many reads came a second."""
    clients = [controllers.local(asked) for _ in range(options.clients)]
    count = 0
    until_s = time.perf_counter() + options.seconds

    async def read(number: int) -> None:
        nonlocal count
        while time.perf_counter() < until_s:
            request = QueryJobs(JobFilter(), JobId(0), options.rows)
            page = await clients[number].ask(request, JobPage)
            if not isinstance(page, JobPage):
                raise RuntimeError(f"a query was refused: {page}")
            count += 1

    began_s, before_s = time.perf_counter(), processor_s(leader)
    await asyncio.gather(*(read(number) for number in range(options.clients)))
    took_s = time.perf_counter() - began_s
    spent_s = processor_s(leader) - before_s - idle * took_s
    for client in clients:
        await client.close()
    return 1000 * max(0.0, spent_s) / count, count / took_s


async def idle_share(leader: ControllerProcess, seconds: float) -> float:
    """Return the share of a processor that the leader takes when nobody asks."""
    before_s = processor_s(leader)
    await asyncio.sleep(seconds)
    return (processor_s(leader) - before_s) / seconds


async def measure(directory: Path, options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the leader's cost of reads by who answers, and their ratio, of each round."""
    found: dict[str, list[float]] = {"leader": [], "follower": [], "ratio": [], "rate": []}
    async with running_cluster(directory, 3) as controllers:
        leader = await controllers.leader()
        follower = next(member for member in controllers.members if member is not leader)
        filler = controllers.client()
        await fill([filler], options.pending)
        await filler.close()
        for _ in range(options.rounds):
            idle = await idle_share(leader, options.seconds)
            own, _ = await cost_ms(controllers, leader, leader, options, idle)
            other, rate = await cost_ms(controllers, leader, follower, options, idle)
            found["leader"].append(own)
            found["follower"].append(other)
            found["ratio"].append(100 * other / own)
            found["rate"].append(rate)
    return found


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="what a read costs the leader")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--pending", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=100, help="of one page")
    options = parser.parse_args()
    with scratch_directory("reads") as scratch:
        machine = describe_machine(scratch)
        found = asyncio.run(measure(scratch / "cluster", options))
    conditions: dict[str, str | int | float | bool] = {
        "rows": options.rows,
        "pending": options.pending,
        "clients": options.clients,
    }
    figures = [
        Figure(
            name=name, subject=subject, unit=unit, values=tuple(found[key]), conditions=conditions
        )
        for name, subject, unit, key in (
            ("leader's processor time of a read", "answered by itself", "ms", "leader"),
            ("leader's processor time of a read", "answered by a follower", "ms", "follower"),
            ("the second of the first", "3 controllers", "%", "ratio"),
            ("reads at a follower", "3 controllers", "1/s", "rate"),
        )
    ]
    print_figures(figures, machine)


if __name__ == "__main__":
    main()
