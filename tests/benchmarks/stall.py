"""The longest stall of the leader's loop, with a long queue and much going on.

    ops/bench stall [--controllers 3] [--pending 100000] [--seconds 60] [--rate 500]

On these controllers with the queue filled: for a minute, `--rate` submissions a second arrive, ten
thousand rows are read every second, and a snapshot is written. Each controller notes how late its
ticks come; the figure is the longest of the leader's. The term tells whether there was an election.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from spur.client.client import Client
from spur.testing.controllers import Controllers
from spur.values.ids import JobId
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.jobs import JobFilter, JobPage, QueryJobs
from tests.benchmarks.figures import Figure, describe_machine, percentile, print_figures
from tests.benchmarks.queue_load import fill, running_cluster, submit_steadily
from tests.benchmarks.scratch import scratch_directory

ROWS_PER_SECOND = 10_000
PAGE_ROWS = 1_000


async def show(client: Client) -> ReplicaInfo:
    """Return what a controller says of itself."""
    answer = await client.ask(ShowReplica(), ReplicaInfo)
    if not isinstance(answer, ReplicaInfo):
        raise RuntimeError(f"a controller did not say what it is: {answer}")
    return answer


async def read_steadily(client: Client, until: float, took_s: list[float]) -> None:
    """Read ten thousand rows every second, page by page."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while time.perf_counter() < until:
        began, after = time.perf_counter(), JobId(0)
        for _ in range(ROWS_PER_SECOND // PAGE_ROWS):
            page = await client.ask(QueryJobs(JobFilter(), after, PAGE_ROWS), JobPage)
            if not isinstance(page, JobPage):
                raise RuntimeError(f"a query was refused: {page}")
            if page.next is None:
                break
            after = page.next
        took_s.append(time.perf_counter() - began)
        due += 1.0
        await asyncio.sleep(max(0.0, due - loop.time()))


async def measure(directory: Path, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one run."""
    settings = f"snapshot_entries = {options.snapshot_entries}\n"
    async with running_cluster(directory, options.controllers, settings=settings) as controllers:
        clients = [controllers.client() for _ in range(4)]
        await fill(clients, options.pending)
        local = controllers.local(await controllers.leader())
        before, resident = await show(local), resident_mib(controllers)
        submits_s: list[float] = []
        reads_s: list[float] = []
        until = time.perf_counter() + options.seconds
        await asyncio.gather(
            submit_steadily(clients[0], options.rate, until, submits_s),
            read_steadily(clients[1], until, reads_s),
        )
        after = await show(local)
        figures = {
            "stall": after.stall_ns_max / 1e6,
            "submit p99": percentile(sorted(submits_s), 0.99) * 1000,
            "read of 10 000 rows p50": percentile(sorted(reads_s), 0.5) * 1000,
            "elections": float(after.term - before.term),
            "snapshots": float(after.snapshot_index > before.snapshot_index),
            "resident": resident,
        }
        for client in (*clients, local):
            await client.close()
    return figures


def resident_mib(controllers: Controllers) -> float:
    """Return the most memory that a controller's front holds."""
    found = []
    for member in controllers.members:
        status = Path(f"/proc/{member.pid}/status").read_text()
        line = next(each for each in status.splitlines() if each.startswith("VmRSS"))
        found.append(int(line.split()[1]) / 1024)
    return max(found)


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="stalls of the leader's loop")
    parser.add_argument("--controllers", type=int, default=3)
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--snapshot-entries", type=int, default=10_000)
    options = parser.parse_args()
    with scratch_directory("stall") as scratch:
        machine = describe_machine(scratch)
        found = asyncio.run(measure(scratch / "cluster", options))
    units = {"elections": "", "snapshots": "", "resident": "MiB"}
    figures = [
        Figure(
            name=name,
            subject=f"{options.controllers} controllers, {options.pending} pending",
            unit=units.get(name, "ms"),
            values=(value,),
        )
        for name, value in found.items()
    ]
    print_figures(figures, machine)


if __name__ == "__main__":
    main()
