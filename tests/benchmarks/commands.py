"""How long a cold command takes, from its start to its exit, beside the real one.

    ops/bench commands [--runs 20] [--pending 10000] [--oracle SLURM_CONF] [--oracle-user USER]

Each command is a process of its own, started when the one before it has ended; the two clusters
take turns. First with an empty queue: squeue, sbatch, srun hostname. Then with a long one: arrays
of a thousand held tasks, each task a line of `squeue -r`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from tests.benchmarks.clusters import Commands, add_oracle, sides
from tests.benchmarks.figures import Figure, describe_machine, print_figures
from tests.benchmarks.scratch import scratch_directory

ARRAY = 1_000


def measure(
    clusters: Sequence[Commands], runs: int, work: Callable[[Commands], float]
) -> dict[str, list[float]]:
    """Return the milliseconds of each run, in turn on each cluster, but for a first one."""
    took_ms: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    for number in range(runs + 1):
        for cluster in clusters:
            milliseconds = work(cluster)
            if number:
                took_ms[cluster.name].append(milliseconds)
    return took_ms


def timed(cluster: Commands, *words: str) -> tuple[float, str]:
    """Return the milliseconds that a command took, and what it printed."""
    began = time.perf_counter()
    printed = cluster.run(*words)
    return (time.perf_counter() - began) * 1000, printed


def submit_and_cancel(cluster: Commands) -> float:
    """Return how long a submission takes; the job is cancelled, so the queue stays empty."""
    took_ms, printed = timed(cluster, "sbatch", "--hold", "-o", "/dev/null", "--wrap", "true")
    cluster.run("scancel", printed.split()[-1])
    return took_ms


def fill(cluster: Commands, pending: int) -> None:
    """Submit held arrays until so many tasks wait."""
    for _ in range(pending // ARRAY):
        tasks = f"--array=0-{ARRAY - 1}"
        cluster.run("sbatch", "--hold", tasks, "-o", "/dev/null", "--wrap", "true")


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="cold commands")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--pending", type=int, default=10_000)
    add_oracle(parser)
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    with scratch_directory("commands") as scratch, sides(scratch, options) as clusters:
        machine = describe_machine(scratch)
        runs = options.runs
        found["squeue, empty"] = measure(clusters, runs, lambda one: timed(one, "squeue")[0])
        found["sbatch, empty"] = measure(clusters, runs, submit_and_cancel)
        found["srun hostname"] = measure(
            clusters, runs, lambda one: timed(one, "srun", "hostname")[0]
        )
        for cluster in clusters:
            fill(cluster, options.pending)
        found[f"squeue -r, {options.pending} pending"] = measure(
            clusters, max(3, runs // 4), lambda one: timed(one, "squeue", "-r")[0]
        )
        for cluster in clusters:
            cluster.run("scancel", "--state=PENDING")
    print_figures(
        [
            Figure(name=name, subject=subject, unit="ms", values=tuple(values))
            for name, by_subject in found.items()
            for subject, values in by_subject.items()
        ],
        machine,
    )


if __name__ == "__main__":
    main()
