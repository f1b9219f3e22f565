"""Failover: kill -9 of the leader, again and again, to the next accepted request; beside etcd.

    ops/bench failover [--kills 50] [--pending 100000] [--sides etcd,spur]

Sides take turns kill by kill, so that both see the same machine. Each is on TLS, with its own
default timers, and has `--pending` entries in its log before the first kill. A killed node starts
again and catches up before the next one is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, describe_machine, percentile, print_figures
from tests.benchmarks.scratch import scratch_directory
from tests.benchmarks.sides import ROOT, Side, make_side

SETTLE_S = 0.5
"""Rest between a healed cluster and the next kill."""


async def fill(side: Side, count: int) -> None:
    """Append `count` entries. Raises: RuntimeError when the client failed."""
    process = await asyncio.create_subprocess_exec(
        str(side.python),
        *("-m", "tests.benchmarks.load", *side.target(await side.leader()).arguments()),
        *("--count", str(count), "--warm-up", "0", "--seconds", "600", "--connections", "8"),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, failure = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"filling {side.name} failed: {failure.decode()[-500:]}")


async def fail_over(side: Side) -> float:
    """Kill the leader and return the seconds until a survivor accepted a request.

    Raises: RuntimeError when none did; then the probe's own words.
    """
    leader = await side.leader()
    survivors = [side.target(node) for node in side.nodes() if node != leader]
    argv = survivors[0].arguments()
    for other in survivors[1:]:
        argv += ["--address", other.address]
    process = await asyncio.create_subprocess_exec(
        *(str(side.python), "-m", "tests.benchmarks.probe", *argv),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    killed = time.monotonic()
    side.kill(leader)
    out, failure = await process.communicate(b"\n")
    if process.returncode:
        raise RuntimeError(f"{side.name} did not fail over: {failure.decode()[-500:]}")
    await side.heal(leader)
    await asyncio.sleep(SETTLE_S)
    return float(out) - killed


async def compare(options: argparse.Namespace, scratch: Path) -> dict[str, list[float]]:
    """Let the sides take turns, and return seconds by side."""
    sides = [make_side(name) for name in options.sides.split(",")]
    took_s: dict[str, list[float]] = {side.name: [] for side in sides}
    try:
        for side in sides:
            await side.start(scratch / side.name.split()[0], tls=True)
            if options.pending:
                await fill(side, options.pending)
        for _ in range(options.kills):
            for side in sides:
                took_s[side.name].append(await fail_over(side))
    finally:
        for side in sides:
            await side.stop()
    return took_s


def main() -> None:
    """Run the comparison and print its figures."""
    parser = argparse.ArgumentParser(description="failover beside etcd")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--sides", default="etcd,spur", help="which, in which order")
    options = parser.parse_args()
    with scratch_directory("failover") as scratch:
        machine = describe_machine(scratch)
        took_s = asyncio.run(compare(options, scratch))
    figures = [
        Figure(
            name="failover",
            subject=name,
            unit="s",
            values=tuple(values),
            conditions={
                "replicas": 3,
                "pending": options.pending,
                "p95": round(percentile(sorted(values), 0.95), 3),
            },
        )
        for name, values in took_s.items()
    ]
    print_figures(figures, machine)


if __name__ == "__main__":
    main()
