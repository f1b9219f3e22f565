"""Many seeds on several processes; what a faulty one did is saved, and how to run it again told.

python -m spur.testing.simulation.sweep --seeds 300 [--first 1] [--jobs 2] [--out DIR]
python -m spur.testing.simulation.sweep --seeds 1 --first 4711 --story
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spur.testing.simulation.run import Result, run_seed

__all__ = ["Sweep", "main", "replay_command", "save_story", "sweep"]

OUT = Path("tests/simulation/out")
"""Where the stories of faulty seeds go."""

CHUNK = 4
"""Seeds given to a process at a time."""

PROGRESS_SEEDS = 1000
"""Seeds after which a sweep says how far it is."""


@dataclass
class Sweep:
    """What came of many seeds."""

    seeds: int = 0
    steps: int = 0
    entries: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    runs_with: Counter[str] = field(default_factory=Counter)
    """In how many runs each thing happened."""
    faulty: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count one seed."""
        self.seeds += 1
        self.steps += result.steps
        self.entries += result.entries
        self.counts.update(result.counts)
        self.runs_with.update(result.counts.keys())
        if result.fault:
            self.faulty.append(result)

    def summary(self) -> str:
        """Return the line for docs/figures.md."""
        counts = self.counts
        return (
            f"{self.seeds} seeds, {len(self.faulty)} with a fault; {self.steps} steps,"
            f" {self.entries} entries, {counts['answered']} of {counts['asked']} requests answered,"
            f" {counts['leaders']} leaders, {counts['snapshots installed']} snapshots installed;"
            f" {self.seconds:.0f} s"
        )


def sweep(
    seeds: Sequence[int], *, jobs: int, told: Callable[[Result], None] = lambda _: None
) -> Sweep:
    """Run seeds; `told` hears of each as it ends, in any order."""
    began = time.monotonic()
    total = Sweep()
    # Forking would copy the threads' locks of whoever calls this.
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for result in pool.imap_unordered(run_seed, seeds, chunksize=CHUNK):
            total.add(result)
            told(result)
    total.faulty.sort(key=lambda result: result.seed)
    total.seconds = time.monotonic() - began
    return total


def replay_command(seed: int) -> str:
    """Return the command that runs one seed again and tells its story."""
    return f"python -m spur.testing.simulation.sweep --seeds 1 --first {seed} --story"


def save_story(seed: int, out: Path) -> Path:
    """Run a seed again, keeping its story, and return the file that it is saved in."""
    result = run_seed(seed, tells=True)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{seed}.log"
    lines = [f"seed {seed}: {result.fault or 'no fault'}", replay_command(seed), *result.story]
    path.write_text("\n".join(lines) + "\n")
    return path


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


class _Teller:
    """Tells of each faulty seed at once, and how far the sweep has come."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._count = 0

    def __call__(self, result: Result) -> None:
        self._count += 1
        if result.fault:
            path = save_story(result.seed, self._out)
            _say(
                f"seed {result.seed}: {result.fault}",
                f"    {replay_command(result.seed)}",
                f"    {path}",
            )
        if self._count % PROGRESS_SEEDS == 0:
            _say(f"{self._count} seeds")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many seeds; the exit status is 1 when one of them found a fault."""
    parser = argparse.ArgumentParser(prog="simulation")
    parser.add_argument("--seeds", type=int, default=300, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=OUT, help="where stories are saved")
    parser.add_argument("--story", action="store_true", help="print what happened in each run")
    parser.add_argument("--counts", action="store_true", help="print how often what happened")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    if options.story:
        results = [run_seed(seed, tells=True) for seed in seeds]
        for result in results:
            _say(*result.story, f"seed {result.seed}: {result.fault or 'no fault'}")
        return int(any(result.fault for result in results))
    total = sweep(seeds, jobs=options.jobs, told=_Teller(options.out))
    if options.counts:
        for name, count in sorted(total.counts.items()):
            _say(f"{count:10} in {total.runs_with[name]:6} runs: {name}")
    if total.faulty:
        _say("faulty seeds: " + " ".join(str(result.seed) for result in total.faulty))
    _say(total.summary())
    return int(bool(total.faulty))


if __name__ == "__main__":
    sys.exit(main())
