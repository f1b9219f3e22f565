"""Raw log: three replicas on loopback, every commit synced, 64 clients, 200 bytes; beside etcd.

    ops/bench raw_log [--seconds 5] [--rounds 3] [--sides etcd,spur] [--tls both|on|off]

Sides take turns, A B A B, each on fresh replicas. The Python clients are one program
(`tests.benchmarks.load`); h2load is a client in C for etcd alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.figures import Figure, describe_machine, print_figures, sync_time_us
from tests.benchmarks.h2load import h2load_version, run_h2load
from tests.benchmarks.scratch import scratch_directory
from tests.benchmarks.sides import ROOT, Side, make_side

CLIENTS = 64
ENTRY_BYTES = 200

PYTHON, H2LOAD = "Python client", "h2load"

PYTHON_SHAPES = {
    "spur": ((64, "uvloop"),),
    # grpc.aio is faster on asyncio's own loop, and over fewer connections than tasks.
    "etcd": ((64, "asyncio"), (8, "asyncio")),
}
"""(connections, event loop) of the Python client's runs on a side."""

H2LOAD_SHAPES = ((64, 1), (8, 8))
"""(connections, requests at once on each): 64 in all, as with the Python client."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What one client measured in one run."""

    answered: int
    per_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A log under one client."""

    side: str
    client: str
    shape: str
    tls: bool

    def __str__(self) -> str:
        return f"{self.side}, {self.client}, {self.shape}"


@dataclass
class Results:
    """All samples of a comparison, in the order of the rounds."""

    samples: dict[Subject, list[Sample]] = field(default_factory=dict)

    def add(self, subject: Subject, sample: Sample) -> None:
        """Note one more sample."""
        self.samples.setdefault(subject, []).append(sample)

    def best(self, *, tls: bool, side: str, client: str) -> list[float]:
        """Return, round by round, the highest rate of a side under one kind of client."""
        rates = [
            [sample.per_second for sample in samples]
            for subject, samples in self.samples.items()
            if subject.tls == tls
            and subject.side.startswith(side)
            and subject.client.startswith(client)
        ]
        return [max(of_round) for of_round in zip(*rates, strict=True)]


async def python_client(
    side: Side, node: int, *, connections: int, loop: str, seconds: float
) -> Sample:
    """Run the Python client in a process of its own. Raises: RuntimeError when it failed."""
    process = await asyncio.create_subprocess_exec(
        str(side.python),
        *("-m", "tests.benchmarks.load", *side.target(node).arguments(), "--loop", loop),
        *("--clients", str(CLIENTS), "--connections", str(connections)),
        *("--bytes", str(ENTRY_BYTES), "--seconds", str(seconds)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, failure = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the client of {side.name} failed: {failure.decode()[-500:]}")
    found = json.loads(out)
    return Sample(
        answered=found["answered"],
        per_second=found["per_second"],
        p50_ms=found["p50_ms"],
        p99_ms=found["p99_ms"],
    )


async def counted(side: Side, run: Awaitable[Sample]) -> Sample:
    """Run one client; answers count only if the log itself grew by as many entries.

    Raises: RuntimeError when it did not.
    """
    before = await side.count()
    sample = await run
    grown = await side.count() - before
    if grown < sample.answered:
        raise RuntimeError(
            f"{side.name} answered {sample.answered} appends, but its log grew by {grown}"
        )
    return sample


async def measure(
    side: Side, results: Results, *, tls: bool, seconds: float, scratch: Path
) -> None:
    """Load a side with each client that fits it, one after the other."""
    leader = await side.leader()
    for connections, loop in PYTHON_SHAPES[side.name.split()[0]]:
        subject = Subject(
            side=side.name, client=PYTHON, shape=f"{connections} connections", tls=tls
        )
        run = python_client(side, leader, connections=connections, loop=loop, seconds=seconds)
        results.add(subject, await counted(side, run))
    url = side.h2load_url(leader)
    if url is None:
        return
    for connections, streams in H2LOAD_SHAPES:
        subject = Subject(
            side=side.name,
            client=f"{H2LOAD} {h2load_version()}",
            shape=f"{connections} x {streams}",
            tls=tls,
        )
        run = c_client(url, scratch, connections=connections, streams=streams, seconds=seconds)
        results.add(subject, await counted(side, run))


async def c_client(
    url: str, scratch: Path, *, connections: int, streams: int, seconds: float
) -> Sample:
    """Run h2load. Raises: RuntimeError when a request failed."""
    found = await asyncio.to_thread(
        run_h2load,
        url,
        scratch,
        connections=connections,
        streams=streams,
        value_bytes=ENTRY_BYTES,
        seconds=seconds,
    )
    return Sample(
        answered=found.answered,
        per_second=found.per_second,
        p50_ms=found.p50_ms,
        p99_ms=found.p99_ms,
    )


async def compare(options: argparse.Namespace, scratch: Path) -> Results:
    """Let the sides take turns."""
    results = Results()
    for _ in range(options.rounds):
        for tls in {"both": (True, False), "on": (True,), "off": (False,)}[options.tls]:
            for name in options.sides.split(","):
                side = make_side(name)
                try:
                    await side.start(scratch / name, tls=tls)
                    await measure(side, results, tls=tls, seconds=options.seconds, scratch=scratch)
                finally:
                    await side.stop()
    return results


def figures_of(results: Results, options: argparse.Namespace) -> list[Figure]:
    """Return rates, latencies, and our rate as a multiple of etcd's best."""
    conditions: dict[str, str | int | float | bool] = {
        "replicas": 3,
        "clients": CLIENTS,
        "bytes": ENTRY_BYTES,
        "seconds": options.seconds,
    }

    def figure(tls: bool, what: str, subject: str, unit: str, values: Iterable[float]) -> Figure:
        return Figure(
            name=f"raw log, {'TLS' if tls else 'no TLS'}: {what}",
            subject=subject,
            unit=unit,
            values=tuple(values),
            conditions={**conditions, "tls": tls},
        )

    figures = []
    for subject, samples in results.samples.items():
        tls, name = subject.tls, str(subject)
        figures += [
            figure(tls, "commits", name, "1/s", [sample.per_second for sample in samples]),
            figure(tls, "p50", name, "ms", [sample.p50_ms for sample in samples]),
            figure(tls, "p99", name, "ms", [sample.p99_ms for sample in samples]),
        ]
    if len(options.sides.split(",")) == 2:
        for tls in sorted({subject.tls for subject in results.samples}, reverse=True):
            ours = results.best(tls=tls, side="spur", client=PYTHON)
            for client in (PYTHON, H2LOAD):
                theirs = results.best(tls=tls, side="etcd", client=client)
                ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
                figures.append(figure(tls, "spur / etcd", f"etcd's best, {client}", "x", ratios))
    return figures


def main() -> None:
    """Run the comparison and print its figures."""
    parser = argparse.ArgumentParser(description="raw log beside etcd")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", default="etcd,spur", help="which, in which order")
    parser.add_argument("--tls", choices=("both", "on", "off"), default="both")
    options = parser.parse_args()
    with scratch_directory("raw-log") as scratch:
        sync_us, sync_us_p99 = sync_time_us(scratch)
        machine = f"{describe_machine(scratch)}, sync {sync_us:.0f} us (p99 {sync_us_p99:.0f})"
        results = asyncio.run(compare(options, scratch))
    print_figures(figures_of(results, options), machine)


if __name__ == "__main__":
    main()
