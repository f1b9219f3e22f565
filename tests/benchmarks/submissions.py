"""Committed submissions a second through the RPC: one controller, and three.

    ops/bench submissions [--seconds 10] [--rounds 3] [--clients 64] [--controllers 1,3] [--dead 0]
                          [--rate 0]

Each client submits one job after the other (1 KB script, 40 variables) over its share of eight
connections; a submission counts when its answer came, so it is durable on a majority. With `--dead`
so many followers are killed before the first. With `--rate` so many are offered a second, whatever
the answers take, and a submission's time counts from when it was due.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path

from spur.client.client import Client
from tests.benchmarks.figures import Figure, describe_machine, percentile, print_figures
from tests.benchmarks.queue_load import keep_submitting, running_cluster, submit_steadily
from tests.benchmarks.scratch import scratch_directory

CONNECTIONS = 8


async def measure(
    directory: Path, count: int, options: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """Return submissions a second, and the 99th percentile in ms, of each round."""
    rates, p99_ms = [], []
    async with running_cluster(directory, count) as controllers:
        leader = await controllers.leader()
        followers = [member for member in controllers.members if member is not leader]
        for follower in followers[: options.dead]:
            follower.kill()
        clients = [controllers.local(leader) for _ in range(CONNECTIONS)]
        for number in range(options.rounds + 1):
            took_s: list[float] = []
            began = time.perf_counter()
            until = began + (options.seconds if number else 2.0)
            await asyncio.gather(*load(clients, until, took_s, options))
            if number:
                rates.append(len(took_s) / (time.perf_counter() - began))
                p99_ms.append(percentile(sorted(took_s), 0.99) * 1000)
        for client in clients:
            await client.close()
    return rates, p99_ms


def load(
    clients: Sequence[Client], until: float, took_s: list[float], options: argparse.Namespace
) -> Iterator[Coroutine[None, None, None]]:
    """Yield what submits: as fast as answers come, or at a fixed rate."""
    if options.rate:
        for client in clients:
            yield submit_steadily(client, options.rate / CONNECTIONS, until, took_s)
    else:
        for number in range(options.clients):
            yield keep_submitting(clients[number % CONNECTIONS], until, took_s)


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="submissions through the RPC")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--controllers", default="1,3", help="sizes of the cluster")
    parser.add_argument("--dead", type=int, default=0, help="followers that are killed first")
    parser.add_argument("--rate", type=float, default=0.0, help="offered a second; 0: no limit")
    options = parser.parse_args()
    figures = []
    with scratch_directory("submissions") as scratch:
        machine = describe_machine(scratch)
        for size in map(int, options.controllers.split(",")):
            rates, p99_ms = asyncio.run(measure(scratch / str(size), size, options))
            subject = f"{size} controller{'s' if size > 1 else ''}"
            subject += f", {options.dead} of them dead" * bool(options.dead)
            conditions: dict[str, str | int | float | bool] = {"clients": options.clients}
            if options.rate:
                conditions = {"rate": options.rate}
            for name, unit, values in (
                ("submissions", "1/s", rates),
                ("submissions p99", "ms", p99_ms),
            ):
                figures.append(
                    Figure(
                        name=name,
                        subject=subject,
                        unit=unit,
                        values=tuple(values),
                        conditions=conditions,
                    )
                )
    print_figures(figures, machine)


if __name__ == "__main__":
    main()
