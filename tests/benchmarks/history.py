"""How fast the read model follows: whole lives of jobs folded into rows.

    ops/bench history [--jobs 2000] [--batch 500] [--runs 5]

A cluster in one process makes the log: each job is submitted, started, launched and ended. For each
run a new model takes it in batches, each of them one transaction.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spur.consensus.genesis import genesis_chain
from spur.events.envelope import Entry
from spur.store.model import Cursor, Model
from spur.testing.builders import GENESIS
from spur.testing.hall import Hall
from spur.values.states import NodeShareState
from tests.benchmarks.figures import Figure, describe_machine, print_figures


def made_log(jobs: int) -> list[Entry]:
    """Return the entries of so many whole lives."""
    hall = Hall(checked=False)
    for _ in range(jobs):
        job_id = hall.submit()
        hall.start(job_id)
        hall.report("n1", job_id, NodeShareState.LAUNCHED)
        hall.end(job_id)
    return hall.cluster.entries


def fold_s(entries: Sequence[Entry], batch: int, directory: Path) -> float:
    """Return how long a new model takes for all of them."""
    model = Model.open(
        directory / "model.db", Cursor(GENESIS.incarnation, 0, genesis_chain(GENESIS), 0)
    )
    begin_s = time.perf_counter()
    for first in range(0, len(entries), batch):
        model.fold(entries[first : first + batch])
    taken_s = time.perf_counter() - begin_s
    model.close()
    return taken_s


def main() -> None:
    """Print the figure."""
    parser = argparse.ArgumentParser(description="The rate of the read model.")
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=500, help="entries of one transaction")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    entries = made_log(options.jobs)
    rates = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as directory:
            rates.append(len(entries) / fold_s(entries, options.batch, Path(directory)))
            place = Path(directory)
    conditions = {"jobs": options.jobs, "entries": len(entries), "batch": options.batch}
    figure = Figure(
        name="entries folded into the read model",
        subject="spur.store",
        unit="entries/s",
        values=tuple(rates),
        conditions=conditions,
    )
    print_figures([figure], describe_machine(place.parent))


if __name__ == "__main__":
    main()
