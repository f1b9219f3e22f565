"""The command `ops/chaos`: a whole cluster through everything that breaks, and a verdict.

    ops/chaos [--seeds 3] [--first-seed 1] [--jobs 100] [--seconds 20] [--controllers 3]
              [--plan] [--report FILE]

One line a run on standard output. `--plan` prints what is drawn and runs nothing. With `--seconds`
longer than a run is by default and one seed, it is the long form: jobs come all the while. Exit
status: 0 when everything held, 1 when not; then the directories stay for a look.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from spur.client.client import Client
from spur.testing.chaos.clients import Clients
from spur.testing.chaos.plan import Plan, draw
from spur.testing.chaos.report import Run, show_table, write_report
from spur.testing.chaos.stage import Stage, staged
from spur.testing.chaos.strikes import Strikes
from spur.testing.chaos.users import Users
from spur.testing.chaos.verdict import Verdict, await_ends, judge
from spur.testing.live.hosts import can_make_hosts
from spur.testing.live.load import Wrong

__all__ = ["go_through", "main"]

SECONDS = 20.0

JOBS = 100

SUBMITTERS = 3

ATTEMPT_S = 1.0


class _Course:
    """One run, and what can be said of it at any time."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan = plan
        self.directory = directory
        self.strikes: Strikes | None = None
        self.users: Users | None = None
        self.clients = Clients(random.Random(plan.seed + 1))

    def run(self) -> Verdict:
        """Go through all of it. Raises: Wrong."""
        with staged(self.directory, self.plan) as stage:
            try:
                with stage.hosts.inside(stage.login_host):
                    return asyncio.run(self._run(stage))
            except* Wrong as group:
                raise _first(group) from None
            finally:
                stage.hosts.heal()

    async def _run(self, stage: Stage) -> Verdict:
        async with AsyncExitStack() as stack:

            async def entered(client: Client) -> Client:
                return await stack.enter_async_context(client)

            def at_login() -> Client:
                return Client([stage.socket], attempt_s=ATTEMPT_S)

            submitters = [await entered(at_login()) for _ in range(SUBMITTERS)]
            writers = [await entered(at_login()) for _ in range(2)]
            readers = [
                await entered(
                    Client(
                        [member.rpc_address], tls=stage.controllers.credentials, attempt_s=ATTEMPT_S
                    )
                )
                for member in stage.controllers.members
            ]
            strikes = self.strikes = Strikes(stage)
            users = self.users = Users(stage, submitters)
            await self._rage(strikes, users, writers, readers)
            await asyncio.to_thread(strikes.heal)
            await self.clients.finish([*writers[:1], *readers])
            await await_ends(stage, submitters[0], self.clients)
            return await judge(stage, submitters[0], readers, users, self.clients)

    async def _rage(
        self, strikes: Strikes, users: Users, writers: list[Client], readers: list[Client]
    ) -> None:
        """Let everybody work while things go wrong, until all is submitted and undone."""
        async with asyncio.TaskGroup() as tasks:
            for writer in writers:
                tasks.create_task(self.clients.write(writer))
            for reader in readers:
                tasks.create_task(self.clients.read(reader))
            async with asyncio.TaskGroup() as work:
                work.create_task(users.run())
                work.create_task(strikes.rage())
            self.clients.is_over = True

    def told(self, verdict: Verdict | None, wrong: str, took_s: float) -> Run:
        """Return what there is to say."""
        strikes, users = self.strikes, self.users
        if strikes is not None and wrong:
            (self.directory / "strikes.txt").write_text("\n".join(strikes.told) + "\n")
        requests = Counter(self.clients.counts)
        if users is not None:
            requests.update(users.counts)
        return Run(
            plan=self.plan,
            verdict=verdict,
            wrong=wrong,
            strikes=Counter() if strikes is None else strikes.counts,
            requests=requests,
            longest_silence_s=self.clients.longest_silence_s,
            slowest_submission_s=0.0 if users is None else users.slowest_s,
            took_s=took_s,
            directory=str(self.directory) if wrong else "",
        )


def _first(group: BaseExceptionGroup[Wrong]) -> Wrong:
    """Return the first of what went wrong at once."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def go_through(plan: Plan, directory: Path) -> Run:
    """Take a cluster in a directory through a plan; takes root."""
    began_s = time.monotonic()
    course = _Course(plan, directory)
    try:
        verdict = course.run()
    except Wrong as wrong:
        return course.told(None, str(wrong), time.monotonic() - began_s)
    return course.told(verdict, "", time.monotonic() - began_s)


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="ops/chaos", description="Everything breaks; a verdict.")
    parser.add_argument("--seeds", type=int, default=3, help="how many runs")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, help=f"of each run ({JOBS}, or 5 a second)")
    parser.add_argument("--seconds", type=float, help=f"of strikes in each run ({SECONDS:g})")
    parser.add_argument("--controllers", type=int, choices=(3, 5), default=3)
    parser.add_argument("--plan", action="store_true", help="print the plans, and run nothing")
    parser.add_argument("--report", type=Path, help="write all of it to this file, as JSON")
    options = parser.parse_args(arguments)
    seconds = options.seconds or SECONDS
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    if options.seconds and "--seeds" not in arguments:
        seeds = seeds[:1]
    jobs = options.jobs or max(JOBS, int(seconds * JOBS / SECONDS))
    plans = [draw(s, jobs=jobs, seconds=seconds, controllers=options.controllers) for s in seeds]
    if options.plan:
        for plan in plans:
            sys.stdout.write("".join(f"{line}\n" for line in plan.lines()))
        return 0
    if not can_make_hosts():
        sys.stderr.write("chaos: takes root and ip-netns(8), for hosts of their own\n")
        return 2
    runs: list[Run] = []
    for plan in plans:
        directory = Path(tempfile.mkdtemp(prefix="spur-chaos-"))
        directory.chmod(0o755)
        runs.append(go_through(plan, directory))
        sys.stdout.write(f"{runs[-1].line()}\n")
        sys.stdout.flush()
        if not runs[-1].wrong:
            shutil.rmtree(directory)
        if options.report:
            write_report(options.report, runs)
    show_table(runs)
    return 1 if any(run.wrong for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
