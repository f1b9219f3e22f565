"""What one cycle of the scheduler takes, with a long queue of many shapes on many nodes.

    ops/bench cycle [--pending 100000] [--shapes 200] [--nodes 1000] [--runs 3]

Three figures: the first plan on idle nodes, which starts as much as one plan may; plans until
nothing more fits; and the plan of a full cluster, which only finds that nothing fits. Then, with
one job waiting and all nodes idle, the plan that starts it.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

from spur.testing.floor import Floor
from spur.values.tres import GresAsk, Per
from tests.benchmarks.figures import Figure, describe_machine, print_figures

CONFIG = """\
[cluster]
name = "cycle"
memory_per_cpu_mib = 1000
job_count_max = 1000000

[[nodes]]
names = "n[1-{nodes}]"
sockets = 2
cores_per_socket = 32
memory_mib = 512000
gpus = "gfx942:8"

[[partitions]]
name = "debug"
nodes = "n[1-{nodes}]"
default = true
max_time_s = 864000
"""


def shapes(count: int, rng: random.Random) -> list[dict[str, Any]]:
    """Return asks that all differ."""
    found = []
    for number in range(count):
        gpus = rng.choice((0, 0, 1, 2, 8))
        found.append(
            {
                "tasks": rng.choice((1, 1, 1, 2, 4, 8, 64, 128)),
                "cpus_per_task": 1 + rng.randrange(8),
                "limit_s": rng.choice((600, 3600, 7200)),
                "memory_mib": 100 * (1 + number),
                "gres": (GresAsk("gpu", "", gpus, Per.NODE),) if gpus else (),
                "nodes_min": rng.choice((1, 1, 1, 1, 2, 4)),
            }
        )
    return found


def timed(floor: Floor) -> tuple[float, int]:
    """Return what a plan takes in milliseconds, and how many jobs it starts."""
    began = time.perf_counter()
    made = floor.plan()
    return (time.perf_counter() - began) * 1e3, len(made.placements)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rng = random.Random(1)
    floor = Floor(CONFIG.format(nodes=options.nodes), checked=False)
    alone = floor.submit()
    floor.plan()
    few = [timed(floor)[0] for _ in range(options.runs)]
    floor.cycle()
    floor.end(alone)
    asks = shapes(options.shapes, rng)
    for _ in range(options.pending):
        floor.submit(by=1000 + rng.randrange(50), **rng.choice(asks))
    floor.queue.refresh()
    first = [timed(floor) for _ in range(options.runs)]
    fill_ms, starts = 0.0, 0
    while True:
        took_ms, count = timed(floor)
        if not count:
            break
        fill_ms += took_ms
        starts += count
        floor.cycle()
    full = [timed(floor)[0] for _ in range(options.runs)]
    conditions = {name: getattr(options, name) for name in ("pending", "shapes", "nodes")}
    rows: list[tuple[str, list[float], dict[str, int]]] = [
        ("plan of one waiting job, idle nodes", few, {"pending": 1}),
        ("first plan of a long queue", [took for took, _ in first], {"starts": first[0][1]}),
        ("plans until the nodes are full", [fill_ms], {"starts": starts}),
        ("plan when nothing fits", full, {}),
    ]
    print_figures(
        [
            Figure(
                name=name,
                subject="spur.scheduling",
                unit="ms",
                values=tuple(values),
                conditions={**conditions, **more},
            )
            for name, values, more in rows
        ],
        describe_machine(Path()),
    )


if __name__ == "__main__":
    main()
