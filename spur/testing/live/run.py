"""The command `ops/nemesis`: real controllers, real troubles, and a verdict.

    ops/nemesis [--seconds 600] [--seed 1] [--controllers 3]

It writes one line when nothing was wrong; otherwise it says what was, leaves the directories for a
look, and its exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from spur.client.client import Client
from spur.testing.controllers import Controllers
from spur.testing.live.hosts import Hosts, can_make_hosts
from spur.testing.live.load import Load, Wrong
from spur.testing.live.nemesis import Nemesis
from spur.testing.live.verdict import Verdict, end, judge

__all__ = ["Ordeal", "main", "run"]

FIRST_PORT = 24210

SETTINGS = """\
tick_ms = 20
snapshot_entries = 500
"""
"""Elections of 200 to 400 ms; snapshots while things go wrong."""


@dataclass(frozen=True)
class Ordeal:
    """A run that ended well."""

    seed: int
    seconds: float
    controllers: int
    load: Load
    nemesis: Nemesis
    verdict: Verdict

    def __str__(self) -> str:
        counts, strikes = self.load.counts, self.nemesis
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(strikes.counts.items()))
        return (
            f"seed {self.seed}: {self.controllers} controllers, {self.seconds:.0f} s,"
            f" {strikes.strikes} strikes ({kinds}), term {self.verdict.term};"
            f" {counts['asked']} requests, {counts['answered']} answered,"
            f" {counts['unknown']} of unknown outcome, {counts['not taken']} not taken,"
            f" longest silence {self.load.longest_silence_s:.1f} s;"
            f" {len(self.load.history)} operations on {len(self.load.registers)} registers"
            f" linearizable, {len(self.load.acknowledged)} acknowledged jobs there once, all"
            f" controllers equal at entry {self.verdict.index}"
        )


def run(directory: Path, *, seconds: float, seed: int, controllers: int = 3) -> Ordeal:
    """Run controllers in a directory through an ordeal; takes root. Raises: Wrong."""
    rng = random.Random(seed)
    with Hosts(controllers + 1) as hosts:
        cluster = Controllers.create(
            directory,
            controllers,
            first_port=FIRST_PORT,
            hosts=[hosts.address(number) for number in range(1, controllers + 1)],
            prefixes=[hosts.prefix(number) for number in range(1, controllers + 1)],
            settings=SETTINGS,
        )
        cluster.start()
        try:
            # The last host is the clients'.
            with hosts.inside(controllers + 1):
                ordeal = asyncio.run(_go_through(cluster, hosts, rng, seconds, seed))
            end(cluster)
        finally:
            hosts.heal()
            for member in cluster.members:
                member.kill()
    return ordeal


async def _go_through(
    cluster: Controllers, hosts: Hosts, rng: random.Random, seconds: float, seed: int
) -> Ordeal:
    load = Load(random.Random(rng.random()))
    nemesis = Nemesis(cluster, hosts, random.Random(rng.random()))
    async with AsyncExitStack() as stack:
        clients = _clients(cluster, rng)
        for client in clients:
            await stack.enter_async_context(client)
        await load.begin(clients[0])
        try:
            await _rage(load, nemesis, clients, seconds)
        except* Wrong as group:
            raise _first(group) from None
        verdict = await judge(cluster, clients[0], load)
    return Ordeal(seed, seconds, len(cluster.members), load, nemesis, verdict)


async def _rage(load: Load, nemesis: Nemesis, clients: Sequence[Client], seconds: float) -> None:
    """Let the clients work while things go wrong, then heal everything."""
    works = (load.use_registers, load.use_registers, load.submit_jobs, load.seek_jobs)
    async with asyncio.TaskGroup() as tasks:
        for number, client in enumerate(clients):
            tasks.create_task(works[number % len(works)](client))
        raging = tasks.create_task(nemesis.rage())
        await asyncio.sleep(seconds)
        nemesis.is_over = True
        await raging
        await nemesis.heal()
        load.is_over = True


def _first(group: BaseExceptionGroup[Wrong]) -> Wrong:
    """Return the first of what went wrong at once."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _clients(cluster: Controllers, rng: random.Random) -> list[Client]:
    """Return clients of both kinds: over the network, and on the controllers' own hosts.

    Those on the hosts reach a controller that is cut off from all the others.
    """
    clients = []
    for _ in range(4):
        addresses = [member.rpc_address for member in cluster.members]
        rng.shuffle(addresses)
        clients.append(Client(addresses, tls=cluster.credentials, attempt_s=1.0))
    for _ in range(4):
        sockets = [member.socket for member in cluster.members]
        rng.shuffle(sockets)
        clients.append(Client(sockets, attempt_s=1.0))
    return clients


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="ops/nemesis", description="Real troubles, and a verdict."
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--controllers", type=int, choices=(3, 5), default=3)
    options = parser.parse_args(arguments)
    if not can_make_hosts():
        sys.stderr.write("nemesis: takes root and ip-netns(8), for hosts of their own\n")
        return 2
    directory = Path(tempfile.mkdtemp(prefix="spur-nemesis-"))
    began_s = time.monotonic()
    try:
        ordeal = run(
            directory,
            seconds=options.seconds,
            seed=options.seed,
            controllers=options.controllers,
        )
    except Wrong as wrong:
        sys.stderr.write(f"nemesis: seed {options.seed}: {wrong}\n")
        sys.stderr.write(f"nemesis: the directories are in {directory}\n")
        return 1
    shutil.rmtree(directory)
    sys.stdout.write(f"{ordeal}; took {time.monotonic() - began_s:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
