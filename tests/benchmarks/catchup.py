"""A follower that was down for long: how soon it is level, and what the leader does meanwhile.

    ops/bench catchup [--missed 200000] [--clients 64] [--apart]

One of three controllers is killed. The others take changes of held jobs, an entry each, until it
has missed so many; it is started again while the clients go on. It is level when it has committed
what the leader had committed a moment before. The leader's rate until then is compared with its
rate in the last seconds before. With `--apart` the leader and the clients have one core and the
followers another, so that a follower takes from the leader only what it would as a host of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path

from spur.client.client import Client
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.hall import SPEC, submission
from spur.values.errors import SpurError
from spur.values.ids import JobId
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.declare import Done
from spur.wire.jobs import JobAccepted, JobChanges, UpdateJob
from tests.benchmarks.figures import Figure, describe_machine, print_figures
from tests.benchmarks.queue_load import running_cluster
from tests.benchmarks.scratch import scratch_directory

CONNECTIONS = 8

NICE_MAX = 10_000

BEFORE_S = 5.0
"""The leader's rate is that of so many seconds before the follower is started."""

LEVEL_S_MAX = 300.0

LEVEL_ENTRIES = 2_000
"""So near to the end a follower is level: entries are on their way all the time."""


class Load:
    """Clients that change jobs, one after the other, until it is over."""

    def __init__(self) -> None:
        self.done = 0
        self.is_over = False

    async def work(self, client: Client) -> None:
        """Change a job of its own again and again."""
        made = await client.ask(submission(SPEC, hold=True), JobAccepted)
        if not isinstance(made, JobAccepted):
            raise RuntimeError(f"a submission was refused: {made}")
        nice = 0
        while not self.is_over:
            nice = nice % NICE_MAX + 1
            request = UpdateJob(JobId(made.job_id), None, JobChanges(nice=nice))
            answer = await client.ask(request, Done)
            if not isinstance(answer, Done):
                raise RuntimeError(f"a change was refused: {answer}")
            self.done += 1


def give_core(pid: int, core: int) -> None:
    """Let a process, and what it has started, run on one core alone."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})
        for child in (task / "children").read_text().split():
            give_core(int(child), core)


async def show(controllers: Controllers, member: ControllerProcess) -> ReplicaInfo | None:
    """Return what a controller knows of itself; None when it does not answer."""
    try:
        async with controllers.local(member, deadline_s=1.0) as client:
            answer = await client.ask(ShowReplica(), ReplicaInfo)
    except SpurError:
        return None
    return answer if isinstance(answer, ReplicaInfo) else None


async def measure(directory: Path, options: argparse.Namespace) -> dict[str, float]:
    """Return seconds until the follower was level, and the leader's rates."""
    async with running_cluster(directory, 3) as controllers:
        leader = await controllers.leader()
        late = next(member for member in controllers.members if member is not leader)
        late.kill()
        if options.apart:
            os.sched_setaffinity(0, {0})
            for member in controllers.members:
                if member is not late:
                    give_core(member.pid, int(member is not leader))
        clients = [controllers.local(leader) for _ in range(CONNECTIONS)]
        load = Load()
        async with asyncio.TaskGroup() as tasks:
            for number in range(options.clients):
                tasks.create_task(load.work(clients[number % CONNECTIONS]))
            while load.done < options.missed:
                began_s, done = time.perf_counter(), load.done
                await asyncio.sleep(BEFORE_S)
            before = (load.done - done) / (time.perf_counter() - began_s)
            began_s, done = time.perf_counter(), load.done
            late.start()
            if options.apart:
                give_core(late.pid, 1)
            await _until_level(controllers, leader, late)
            took_s = time.perf_counter() - began_s
            meanwhile = (load.done - done) / took_s
            load.is_over = True
        for client in clients:
            await client.close()
    return {"level": took_s, "before": before, "meanwhile": meanwhile}


async def _until_level(
    controllers: Controllers, leader: ControllerProcess, late: ControllerProcess
) -> None:
    end_s = time.perf_counter() + LEVEL_S_MAX
    while time.perf_counter() < end_s:
        goal = await show(controllers, leader)
        here = await show(controllers, late)
        if goal is not None and here is not None and here.commit >= goal.commit - LEVEL_ENTRIES:
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"the follower is not level after {LEVEL_S_MAX:g} s")


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="a follower that missed much")
    parser.add_argument("--missed", type=int, default=200_000, help="entries, at least")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--apart", action="store_true", help="leader and followers on two cores")
    options = parser.parse_args()
    with scratch_directory("catchup") as scratch:
        machine = describe_machine(scratch)
        found = asyncio.run(measure(scratch / "cluster", options))
    conditions: dict[str, str | int | float | bool] = {
        "missed": options.missed,
        "apart": options.apart,
        "before": round(found["before"]),
        "meanwhile": round(found["meanwhile"]),
    }
    figures = [
        Figure(name=name, subject=subject, unit=unit, values=(value,), conditions=conditions)
        for name, subject, unit, value in (
            ("catchup", "follower of 3, until level", "s", found["level"]),
            ("catchup rate", "leader meanwhile", "%", 100 * found["meanwhile"] / found["before"]),
        )
    ]
    print_figures(figures, machine)


if __name__ == "__main__":
    main()
