"""What is said of runs: a line each, a file, and a table for a person at a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from spur.testing.chaos.plan import Plan
from spur.testing.chaos.verdict import Verdict

__all__ = ["Run", "show_table", "write_report"]


@dataclass(frozen=True)
class Run:
    """One run, however it ended."""

    plan: Plan
    verdict: Verdict | None
    """None when something was wrong."""
    wrong: str
    strikes: Counter[str]
    requests: Counter[str]
    longest_silence_s: float
    slowest_submission_s: float
    took_s: float
    directory: str
    """Where everything of it lies, when something was wrong."""

    def line(self) -> str:
        """Return the run in one line."""
        plan, verdict = self.plan, self.verdict
        head = (
            f"seed {plan.seed}: {plan.controllers} controllers, {plan.policy},"
            f" {self.strikes.total()} strikes in {plan.seconds:.0f} s"
        )
        if verdict is None:
            return f"{head}; WRONG: {self.wrong} (see {self.directory})"
        return (
            f"{head}; {verdict.jobs} jobs, {verdict.runs} records, {verdict.began} runs began,"
            f" {verdict.relaunches} relaunched, {verdict.requeued} requeued, {verdict.unfenced}"
            f" unfenced ({verdict.beside} lived on);"
            f" {verdict.operations} operations linearizable, longest silence"
            f" {self.longest_silence_s:.1f} s, submission {self.slowest_submission_s:.1f} s;"
            f" equal at entry {verdict.index}, term {verdict.term}; took {self.took_s:.0f} s"
        )

    def row(self) -> dict[str, object]:
        """Return the run as JSON can hold it."""
        return {
            "seed": self.plan.seed,
            "controllers": self.plan.controllers,
            "policy": self.plan.policy.value,
            "seconds": self.plan.seconds,
            "wrong": self.wrong,
            "directory": self.directory,
            "strikes": dict(self.strikes),
            "requests": dict(self.requests),
            "longest_silence_s": round(self.longest_silence_s, 3),
            "slowest_submission_s": round(self.slowest_submission_s, 3),
            "took_s": round(self.took_s, 1),
            "verdict": None if self.verdict is None else asdict(self.verdict),
        }


def write_report(path: Path, runs: Sequence[Run]) -> None:
    """Write all runs to a file."""
    content = msgspec.json.encode([run.row() for run in runs])
    path.write_bytes(msgspec.json.format(content, indent=2) + b"\n")


def show_table(runs: Sequence[Run]) -> None:
    """Show all runs to a person; nothing when there is no terminal."""
    if not sys.stderr.isatty():
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="chaos")
    for name in ("seed", "policy", "strikes", "jobs", "records", "silence", "term", "verdict"):
        table.add_column(name, justify="left" if name in ("policy", "verdict") else "right")
    for run in runs:
        verdict = run.verdict
        table.add_row(
            str(run.plan.seed),
            run.plan.policy.value,
            str(run.strikes.total()),
            str(verdict.jobs) if verdict else "",
            str(verdict.runs) if verdict else "",
            f"{run.longest_silence_s:.1f} s",
            str(verdict.term) if verdict else "",
            "[green]held[/]" if verdict else f"[red]{run.wrong[:200]}[/]",
        )
    Console(stderr=True).print(table)
    kinds: Counter[str] = Counter()
    for run in runs:
        kinds.update(run.strikes)
    Console(stderr=True).print(", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))
