"""How long a command takes, from its start to its exit, beside the real one.

    ops/bench commands [--runs 20] [--pending 10000] [--separate 5000] [--oracle SLURM_CONF]

Each command is a process of its own, started when the one before it has ended; the clusters take
turns. Ours is there three times: cold (SPUR_WARM=0), and warm, run by the worker that commands
leave behind, with launchers as `spur link` makes them (native where there is a C compiler) and in
Python. First with an empty queue: squeue, sbatch, srun hostname (always cold). Then with a long
one: arrays of a thousand held tasks, each task a line of `squeue -r`; then as many single jobs,
submitted by eight shells each, a line of `squeue` each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.benchmarks.clusters import Commands, add_oracle, sides, ways
from tests.benchmarks.figures import Figure, describe_machine, print_figures, progress
from tests.benchmarks.scratch import scratch_directory

ARRAY = 1_000

SHELLS = 8


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


def fill_singly(cluster: Commands, jobs: int) -> None:
    """Submit so many held jobs, one by one from several shells."""
    words = ("sbatch", "--hold", "-o", "/dev/null", "--wrap", "true")
    with ThreadPoolExecutor(SHELLS) as shells:
        for done in [shells.submit(cluster.run, *words) for _ in range(jobs)]:
            done.result()


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="commands, cold and warm")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--separate", type=int, default=5_000)
    add_oracle(parser)
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    with scratch_directory("commands") as scratch, sides(scratch, options) as clusters:
        machine = describe_machine(scratch)
        runs, few = options.runs, max(5, options.runs // 3)
        asked = ways(clusters)
        timed(clusters[0], "squeue")
        time.sleep(1)  # the worker that it left has come up
        found["squeue, empty"] = measure(asked, runs, lambda one: timed(one, "squeue")[0])
        found["sbatch, empty"] = measure(asked, runs, submit_and_cancel)
        found["srun hostname"] = measure(
            [asked[0], *asked[3:]], runs, lambda one: timed(one, "srun", "hostname")[0]
        )
        for cluster in clusters:
            fill(cluster, options.pending)
        found[f"squeue -r, {options.pending} tasks pending"] = measure(
            asked, few, lambda one: timed(one, "squeue", "-r")[0]
        )
        for cluster in clusters:
            cluster.run("scancel", "--state=PENDING")
        if options.separate:
            for cluster in clusters:
                fill_singly(cluster, options.separate)
            progress("the queue is long")
            timed(clusters[0], "squeue")
            time.sleep(1)
            found[f"squeue, {options.separate} jobs pending"] = measure(
                asked, few, lambda one: timed(one, "squeue")[0]
            )
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
