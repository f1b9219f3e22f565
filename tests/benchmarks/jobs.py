"""Jobs of `true`, from their submission to the record of their end, beside a real Slurm.

    ops/bench jobs [--jobs 1000] [--rounds 3] [--shells 8] [--oracle SLURM_CONF]

By RPC: ours are submitted one by one over eight connections, each answered when its entry is
committed; the other's in one call, as an array, which is the most it can be given at once. By
command: sbatch from so many shells, one job after the other in each. The two clusters take turns,
with the same configuration, so with the same slots. The time ends when no job of the round waits or
runs any more by the queue's own account, looked at every 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from spur.client.client import Client
from spur.client.tls import credentials_in
from spur.controller.birth import TLS_DIRECTORY
from spur.testing.hall import SPEC, submission
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobText, encode_text
from spur.values.states import JobState
from spur.wire.declare import Attachment
from spur.wire.jobs import JobAccepted, JobFilter, JobPage, QueryJobs, SubmitJob
from tests.benchmarks.clusters import Commands, add_oracle, layout_of, sides, ways
from tests.benchmarks.figures import Figure, describe_machine, print_figures
from tests.benchmarks.scratch import scratch_directory

CONNECTIONS = 8
LOOK_S = 0.05
LIVE = (JobState.PENDING, JobState.RUNNING)


def by_rpc(directory: Path, partition: str, count: int) -> float:
    """Return the seconds that jobs submitted to our cluster one by one take."""
    return asyncio.run(_by_rpc(directory, partition, count))


async def _by_rpc(directory: Path, partition: str, count: int) -> float:
    places, layout = layout_of(directory)
    tls = credentials_in(places.controller(layout.controllers[0].name) / TLS_DIRECTORY)
    addresses = [place.rpc_address for place in layout.controllers]
    clients = [Client(addresses, tls=tls, deadline_s=120.0) for _ in range(CONNECTIONS)]
    request = _submission(partition)
    began = time.perf_counter()

    async def submit(number: int) -> None:
        for _ in range(number, count, 64):
            answer = await clients[number % CONNECTIONS].ask(request, JobAccepted)
            if not isinstance(answer, JobAccepted):
                raise RuntimeError(f"a submission was refused: {answer}")

    await asyncio.gather(*map(submit, range(64)))
    await _end(clients[0])
    took_s = time.perf_counter() - began
    if await _has_any(clients[0], (JobState.FAILED, JobState.NODE_FAIL)):
        raise RuntimeError("jobs failed: what was measured is not what was meant")
    for client in clients:
        await client.close()
    return took_s


async def _end(client: Client) -> None:
    """Return when nothing waits or runs."""
    while True:
        if not await _has_any(client, LIVE):
            return
        await asyncio.sleep(LOOK_S)


async def _has_any(client: Client, states: tuple[JobState, ...]) -> bool:
    page = await client.ask(QueryJobs(JobFilter(states=states), JobId(0), 1), JobPage)
    if not isinstance(page, JobPage):
        raise RuntimeError(f"the queue was not shown: {page}")
    return bool(page.kinds)


def _submission(partition: str) -> SubmitJob:
    spec = replace(
        SPEC,
        name="true",
        partitions=(PartitionName(partition),),
        account="",
        qos="",
        time_limit_s=60,
    )
    made = submission(spec)
    text = JobText(b"/tmp", (b"true",), b"", b"/dev/null", b"", b"")
    return replace(
        made,
        attachments=(
            Attachment("script", b"#!/bin/sh\ntrue\n"),
            Attachment("environment", b"PATH=/usr/bin:/bin\0"),
            Attachment("text", encode_text(text)),
        ),
    )


def by_array(cluster: Commands, count: int) -> float:
    """Return the seconds that an array of so many tasks takes."""
    began = time.perf_counter()
    cluster.run("sbatch", f"--array=0-{count - 1}", "-o", "/dev/null", "--wrap", "true")
    _wait_for_the_end(cluster)
    return time.perf_counter() - began


def by_command(cluster: Commands, count: int, shells: int) -> float:
    """Return the seconds that jobs take which are submitted by so many shells at once."""
    began = time.perf_counter()

    def shell(number: int) -> None:
        for _ in range(number, count, shells):
            cluster.run("sbatch", "-o", "/dev/null", "--wrap", "true")

    with ThreadPoolExecutor(max_workers=shells) as pool:
        list(pool.map(shell, range(shells)))
    _wait_for_the_end(cluster)
    return time.perf_counter() - began


def _wait_for_the_end(cluster: Commands) -> None:
    while cluster.run("squeue", "-h", "-t", "PENDING,RUNNING"):
        time.sleep(LOOK_S)


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="jobs from submission to recorded end")
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shells", type=int, default=8)
    parser.add_argument("--shell-jobs", type=int, default=200, help="jobs of a round by command")
    add_oracle(parser)
    options = parser.parse_args()
    rates: dict[tuple[str, str], list[float]] = {}

    def note(name: str, subject: str, count: int, work: Callable[[], float]) -> None:
        rates.setdefault((name, subject), []).append(count / work())

    with scratch_directory("jobs") as scratch, sides(scratch, options) as clusters:
        machine = describe_machine(scratch)
        ours = clusters[0]
        partition = ours.run("sinfo", "-h", "-o", "%P").partition("*")[0].split()[-1]
        count, shells = options.jobs, options.shells
        for _ in range(options.rounds):
            note("jobs by RPC", "spur", count, partial(by_rpc, scratch, partition, count))
            for other in clusters[1:]:
                note("jobs by RPC", other.name, count, partial(by_array, other, count))
            for cluster in ways(clusters):
                note(
                    f"jobs by sbatch, {shells} shells",
                    cluster.name,
                    options.shell_jobs,
                    partial(by_command, cluster, options.shell_jobs, shells),
                )
    print_figures(
        [
            Figure(name=name, subject=subject, unit="1/s", values=tuple(values))
            for (name, subject), values in rates.items()
        ],
        machine,
    )


if __name__ == "__main__":
    main()
