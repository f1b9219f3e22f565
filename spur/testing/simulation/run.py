"""One simulated run: a cluster, its clients and its nemesis, from a seed to a verdict.

python -m spur.testing.simulation.run --seeds 300 [--first 1] [--jobs 2]
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spur.consensus.boxes import CoreSettings
from spur.consensus.genesis import Genesis
from spur.consensus.membership import Member, Membership
from spur.consensus.opening import ReplicaOptions, create_replica
from spur.consensus.replica import ReplicaSettings
from spur.projections.react import Effect
from spur.testing.disk import SimDisk
from spur.testing.simulation.checks import Checks, Violation
from spur.testing.simulation.load import Load
from spur.testing.simulation.member import SimMember
from spur.testing.simulation.nemesis import Nemesis, Plan, draw_plan
from spur.testing.simulation.network import Network
from spur.testing.simulation.world import World

__all__ = ["Result", "Run", "main", "run_seed"]

TROUBLE_S = 20.0
"""Virtual time in which the nemesis strikes."""

HEALING_S = 30.0
"""Virtual time after healing within which everything must have converged and answered."""


@dataclass(frozen=True)
class Result:
    """What came of a seed."""

    seed: int
    fault: str
    """Empty when nothing was wrong."""
    calls: int
    committed: int
    asked: int
    answered: int


class _RunChecks(Checks):
    """The checks of a run, which also hand effects on to the agents."""

    load: Load

    def released(self, member: SimMember, effect: Effect) -> None:
        super().released(member, effect)
        self.load.performed(effect)


def _options_of(plan: Plan) -> ReplicaOptions:
    """Return small segments and short memories, so that each run meets their ends."""
    core = CoreSettings()
    if plan.tiny_batches:
        core = replace(core, append_bytes_max=1, inflight_count_max=2)
    return ReplicaOptions(
        core=core,
        replica=ReplicaSettings(
            commit_slice=20, memory_entries=40, memory_bytes=1 << 16, sync_ledger_every=16
        ),
        wal_segment_bytes=16 << 10,
    )


class Run:
    """Everything of one run."""

    def __init__(self, seed: int) -> None:
        world = self.world = World(seed)
        plan = self.plan = draw_plan(world)
        self.checks = _RunChecks()
        self.network = Network(world, plan.weather, self._receive)
        options = _options_of(plan)
        self.members = [
            SimMember(
                world,
                self.network,
                self.checks,
                me=number,
                disk=disk,
                options=options,
                disk_delay_s=plan.disk_delay_s,
            )
            for number, disk in enumerate(self._disks(options), 1)
        ]
        self.nemesis = Nemesis(world, self.network, self.members, plan)
        for member in self.members:
            member.on_sent = self.nemesis.sent
            member.on_power_loss = self.nemesis.down_at_operation
        self.load = self.checks.load = Load(world, self.members, self.checks)
        self._was_answered = False

    def _disks(self, options: ReplicaOptions) -> list[SimDisk]:
        rng = self.world.rng
        members = tuple(
            Member(number, rng.randbytes(16), True, f"h{number}:1", f"h{number}:2")
            for number in range(1, self.plan.members + 1)
        )
        genesis = Genesis(
            cluster_id=rng.randbytes(16),
            membership=Membership(members).encode(),
            segment_entries=64,
        )
        disks = []
        for member in members:
            disk = SimDisk()
            create_replica(disk, genesis, me=member.id, options=options)
            disks.append(disk)
        return disks

    def _receive(self, message: object) -> None:
        self.members[message.to - 1].receive(message)  # type: ignore[attr-defined]  # any message

    def judge(self) -> None:
        """Run to the end. Raises: Violation."""
        world = self.world
        for member in self.members:
            member.start()
        self.load.start()
        self.nemesis.start()
        world.run_until(TROUBLE_S)
        self.load.is_stopped = True
        self.nemesis.stop()
        world.run_until(TROUBLE_S + HEALING_S / 2)
        self.load.last_request(self._last_answered)
        world.run_until(TROUBLE_S + HEALING_S)
        if not self._was_answered:
            raise Violation("the healed cluster did not answer")
        down = [member.me for member in self.members if not member.is_up]
        if down:
            raise Violation(f"healed members are down: {down}")
        self.checks.converged(self.members)
        self.load.judge()

    def _last_answered(self, outcome: object) -> None:
        self._was_answered = outcome is not None


def run_seed(seed: int) -> Result:
    """Run one seed and return what came of it; the same seed gives the same result."""
    run = Run(seed)
    fault = ""
    try:
        run.judge()
    except Violation as violation:
        fault = str(violation)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    return Result(
        seed=seed,
        fault=fault,
        calls=run.world.calls,
        committed=len(run.checks.committed_by_index),
        asked=run.load.asked,
        answered=run.load.answered,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many seeds; the exit status is 1 when one of them found a fault."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    began = time.monotonic()
    totals = [0, 0, 0, 0]
    faults = []
    with multiprocessing.Pool(options.jobs) as pool:
        for result in pool.imap_unordered(run_seed, seeds, chunksize=4):
            totals = [
                total + more
                for total, more in zip(
                    totals,
                    (result.calls, result.committed, result.asked, result.answered),
                    strict=True,
                )
            ]
            if result.fault:
                faults.append(result)
                sys.stdout.write(f"seed {result.seed}: {result.fault}\n")
                sys.stdout.flush()
    calls, committed, asked, answered = totals
    sys.stdout.write(
        f"{options.seeds} seeds, {len(faults)} with a fault; {calls} steps, {committed} entries,"
        f" {answered} of {asked} requests answered; {time.monotonic() - began:.0f} s\n"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
