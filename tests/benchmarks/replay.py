"""How fast a log becomes state: mixed lives of jobs replayed onto many that wait.

    ops/bench replay [--live 100000] [--lives 30000] [--runs 5]

One process makes the log by asking a cluster, the way a leader does: submissions, plans of the
scheduler, reports of the nodes, holds, requeues, cancels, purges. For each run a fresh process
then reads it: first the waiting jobs, after which its memory is the figure, then the lives, which
are timed: strict decoding, apply, chain, dedup, and the digest brought up to date at the end.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from spur.consensus.disk import OsDisk
from spur.consensus.genesis import store_genesis
from spur.consensus.ledger import Ledger
from spur.projections.apply import follow
from spur.projections.digest import state_digest
from spur.testing.builders import CLUSTER, GENESIS, Cluster, actor, newborn
from spur.testing.golden import read_ledger
from spur.testing.hall import SPEC, submission
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, NodeShareState
from spur.values.tres import GresAsk, NodeShare, Per
from spur.wire.cluster import Tick
from spur.wire.declare import Request
from spur.wire.jobs import CancelJob, HoldJob, JobAccepted, ReleaseJob, RequeueJob
from spur.wire.nodes import RegisterNode
from spur.wire.runs import PlaceJobs, Placement, ReportRun
from tests.benchmarks.figures import Figure, describe_machine, print_figures

NODES = 200
CPUS = 64
CONFIG = f"""\
[cluster]
name = "hall"
min_job_age_s = 60
job_count_max = 10000000

[[nodes]]
names = "n[1-{NODES}]"
cpus = {CPUS}
memory_mib = 512000
gpus = "gfx942:8"

[[partitions]]
name = "gpu"
nodes = "n[1-{NODES}]"
default = true
"""

BATCH = 100
"""Jobs that are submitted, placed and reported together."""


class Mill:
    """A cluster through which jobs pass, batch by batch, and leave it as they came."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(checked=False)
        self.cluster.configure(CONFIG)
        self._rng = random.Random(seed)
        self._reports = [0] * (NODES + 1)
        for number in range(1, NODES + 1):
            self._ask(RegisterNode(_node(number), b"boot", CPUS, 512_000, "gfx942", 8))

    def _ask(self, request: Request, uid: int | None = None) -> object:
        who = CLUSTER if uid is None else actor(uid)
        outcome = self.cluster.ask(request, who)
        if isinstance(outcome, Rejection):
            raise ValueError(f"{request}: {outcome.text}")
        return outcome

    def spec(self) -> JobSpec:
        """Return one of two hundred shapes under one of many names."""
        rng = self._rng
        ask = msgspec.structs.replace(
            SPEC.ask,
            cpus_per_task=1 + rng.randrange(8),
            memory_mib=1_000 * (1 + rng.randrange(25)),
            gres=(GresAsk("gpu", "gfx942", 1, Per.NODE),),
        )
        return msgspec.structs.replace(
            SPEC, name=f"train-{rng.randrange(10_000)}", ask=ask, time_limit_s=3_600
        )

    def submit(self) -> JobId:
        """Let a user submit a job."""
        outcome = self._ask(submission(self.spec()), 1_000 + self._rng.randrange(300))
        assert isinstance(outcome, JobAccepted)
        return outcome.job_id

    def batch(self) -> None:
        """Let a batch of jobs be submitted, run and leave; a few are held, requeued, cancelled."""
        rng = self._rng
        jobs = [self.submit() for _ in range(BATCH)]
        owner = {job_id: self.cluster.state.jobs[job_id].uid for job_id in jobs}
        for job_id in rng.sample(jobs, 5):
            self._ask(HoldJob(job_id, None, Hold.USER), owner[job_id])
            self._ask(ReleaseJob(job_id, None), owner[job_id])
        for job_id in rng.sample(jobs, 3):
            self._ask(CancelJob(job_id, None), owner[job_id])
            jobs.remove(job_id)
        self._run(jobs)
        again = rng.sample(jobs, 4)
        for job_id in again:
            self._ask(RequeueJob(job_id, None, False), owner[job_id])
        self._run(again)
        self.cluster.pass_seconds(61)
        self._ask(Tick())

    def _run(self, jobs: Sequence[JobId]) -> None:
        """Start jobs, one on each node in turn, and let the nodes report."""
        nodes = [1 + place % NODES for place in range(len(jobs))]
        placements = tuple(
            Placement(
                job_id,
                self.cluster.state.runs[job_id].number,
                None,
                SPEC.partitions[0],
                (NodeShare(_node(number), 8, 25_000, 1, b"\xff", False),),
                (("age", 100), ("fairshare", 200_000)),
                (),
                "least fragmentation",
            )
            for job_id, number in zip(jobs, nodes, strict=True)
        )
        self._ask(PlaceJobs(self.cluster.state.index, b"p" * 32, placements))
        for state in (NodeShareState.LAUNCHED, NodeShareState.ENDED):
            for job_id, number in zip(jobs, nodes, strict=True):
                self._report(job_id, number, state)

    def _report(self, job_id: JobId, number: int, state: NodeShareState) -> None:
        self._reports[number] += 1
        run = self.cluster.state.runs[job_id]
        self._ask(
            ReportRun(
                _node(number),
                b"o" * 16,
                self._reports[number],
                job_id,
                run.number,
                run.attempt,
                state,
                0,
                0,
                False,
                1_000_000,
            )
        )


def _node(number: int) -> NodeName:
    return NodeName(f"n{number}")


def write_log(path: Path, *, live: int, lives: int, seed: int) -> int:
    """Write a log of `live` waiting jobs and then `lives` whole lives; return where these begin."""
    mill = Mill(seed)
    entries = mill.cluster.entries
    path.mkdir(parents=True, exist_ok=True)
    disk = OsDisk(str(path))
    store_genesis(disk, GENESIS)
    ledger = Ledger.open(disk, GENESIS, covered_from=1)

    def flush() -> None:
        ledger.append(entries)
        entries.clear()
        mill.cluster.effects.clear()

    for _ in range(live):
        mill.submit()
        mill.cluster.pass_seconds(0.1)
        if len(entries) >= 10_000:
            flush()
    first = mill.cluster.state.index + 1
    for _ in range(lives // BATCH):
        mill.batch()
        flush()
    ledger.sync()
    ledger.close()
    return first


def measure(path: Path, first: int) -> dict[str, float]:
    """Replay a log in this process; return its figures."""
    entries = read_ledger(path)
    state = newborn()
    follow(state, (entry for _, entry in zip(range(first - 1), entries, strict=False)))
    state_digest(state)
    gc.collect()
    rss_mb = _rss_mb()
    gc.freeze()
    rest = list(entries)
    start = time.perf_counter()
    follow(state, rest)
    digest = state_digest(state)
    took_s = time.perf_counter() - start
    events = sum(len(msgspec.msgpack.decode(entry.body)[5]) for entry in rest)
    return {
        "events_per_s": events / took_s,
        "us_per_entry": took_s / len(rest) * 1e6,
        "events": events,
        "entries": len(rest),
        "rss_mb": rss_mb,
        "jobs": len(state.jobs),
        "digest": int.from_bytes(digest[:4], "big"),
    }


def _rss_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmRSS in /proc/self/status")


def main() -> None:
    """Make a log, replay it in fresh processes, print the figures."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.replay", description=__doc__)
    parser.add_argument("--live", type=int, default=100_000)
    parser.add_argument("--lives", type=int, default=30_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="keep or find the log in this directory")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        sys.stdout.write(json.dumps(measure(options.log, options.measure)))
        return
    with tempfile.TemporaryDirectory() as directory:
        path = options.log or Path(directory) / "log"
        mark = path / "first"
        if not mark.exists():
            first = write_log(path, live=options.live, lives=options.lives, seed=options.seed)
            mark.write_text(str(first))
        command = [sys.executable, "-m", "tests.benchmarks.replay", "--log", str(path)]
        command += ["--measure", mark.read_text()]
        results = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(options.runs)
        ]
    conditions = {name: results[0][name] for name in ("events", "entries", "jobs")}
    print_figures(
        [
            Figure(
                name=name,
                subject="spur",
                unit=unit,
                values=tuple(result[key] for result in results),
                conditions=conditions,
            )
            for name, key, unit in (
                ("replay onto waiting jobs", "events_per_s", "events/s"),
                ("replay, a single entry", "us_per_entry", "us"),
                ("memory with the waiting jobs alone", "rss_mb", "MB"),
            )
        ],
        machine=describe_machine(Path(tempfile.gettempdir())),
    )


if __name__ == "__main__":
    main()
