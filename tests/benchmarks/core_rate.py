"""What the Raft core alone costs: three cores in one process, without disk, network or encoding.

    ops/bench core_rate [--seconds 2] [--runs 5] [--bytes 200]

Messages are passed by hand and every write is durable at once, so the rate is an upper limit of
what three replicas in one process could commit; a replica of a real cluster does a third of that
work. A batch is what is proposed in one turn of the loop. Processor time is counted, not the clock
on the wall, so that others on the machine disturb less.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from spur.consensus.core import Core, CoreSettings, HardState
from spur.events.envelope import Entry, EntryKind
from spur.testing.simulation.core_script import membership_of
from tests.benchmarks.figures import Figure, describe_machine, print_figures

BATCHES = (1, 8, 64, 512)

KEPT = 1000
"""Entries that stay in memory behind the commit index."""


def start() -> tuple[Core, dict[int, Core]]:
    """Return a leader and all three cores."""
    voters = (1, 2, 3)
    cores = {
        me: Core(
            me=me,
            settings=CoreSettings(),
            rng=random.Random(me),
            hard=HardState(0, 0),
            membership=membership_of(voters),
            base_index=0,
            base_term=0,
            entries=(),
            commit=0,
        )
        for me in voters
    }
    while True:
        for core in cores.values():
            core.tick()
            settle(cores)
            if core.no_op_committed:
                return core, cores


def settle(cores: dict[int, Core]) -> None:
    """Pass messages until nothing moves."""
    moved = True
    while moved:
        moved = False
        for core in cores.values():
            messages = core.take_messages()
            ready = core.ready()
            if ready is not None:
                core.persisted(ready)
                messages.extend(ready.after)
            for message in messages:
                cores[message.to].step(message)
                moved = True


def measure(batch: int, seconds: float, body: bytes) -> float:
    """Return proposals committed in a second of processor time."""
    leader, cores = start()
    kind = int(EntryKind.EVENTS)
    first = leader.commit
    began = time.process_time()
    while (took := time.process_time() - began) < seconds:
        for _ in range(batch):
            if not isinstance(leader.propose(kind, body), Entry):
                raise RuntimeError("the core refused a proposal; nothing was measured")
        settle(cores)
        for core in cores.values():
            core.trim(core.commit - KEPT)
    return (leader.commit - first) / took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="rate of the Raft core alone")
    parser.add_argument("--seconds", type=float, default=2.0, help="processor time of one run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=200, help="size of one proposal")
    options = parser.parse_args()
    body = b"x" * options.bytes
    figures = [
        Figure(
            name="core rate",
            subject=f"three cores in one process, {batch} proposals a turn",
            unit="proposals/s of processor time",
            values=tuple(measure(batch, options.seconds, body) for _ in range(options.runs)),
            conditions={"batch": batch, "bytes": options.bytes},
        )
        for batch in BATCHES
    ]
    print_figures(figures, describe_machine(Path.cwd()))


if __name__ == "__main__":
    main()
