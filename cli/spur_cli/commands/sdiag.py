"""`sdiag`: what the leading controller counts of its requests, of jobs and of its scheduler."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from spur.slurm.diagnostics import Calls, show_statistics
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.wire.statistics import ResetStatistics, ShowStatistics, Statistics
from spur_cli.registry import Command
from spur_cli.slurm.people import user_name
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]


def run(arguments: list[str], command: Command) -> int:
    """Show the counts, or set them to zero."""
    return guarded("sdiag", lambda session: _sdiag(session, arguments))


def _sdiag(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    if words:
        raise SlurmError(error_line("sdiag", f"Unrecognized option: {words[0]}"))
    values = {**session.environment_options().values, **line.values}
    if "clusters" in values:
        from spur_cli.slurm.clusters import cluster_meant

        cluster_meant(session, values["clusters"])
    if values.get("reset"):
        _ask(session, ResetStatistics(), "slurm_reset_statistics")
        sys.stdout.write("Reset scheduling statistics\n")
        return 0
    told = _ask(session, ShowStatistics(), "slurm_get_statistics")
    if {"json", "yaml"} & set(values):
        from spur.slurm.dataparser.statistics import statistics_document
        from spur_cli.slurm.documents import document_form, write_document

        form = document_form("sdiag", values)
        body = {"statistics": statistics_document(told, user_name)}
        return write_document(session, form, body, ["show", "diag"])
    sys.stdout.write(
        show_statistics(
            told,
            moment=time.ctime,
            user=user_name,
            order=_by_id if values.get("sort_by_id") else _order(values),
            latency_us=_latency_us(),
        )
    )
    return 0


def _ask(session: Session, request: ShowStatistics | ResetStatistics, call: str) -> Statistics:
    told = session.ask(request, Statistics)
    if isinstance(told, Rejection):
        raise SlurmError(f"{call}: {sentence_of(told)}")
    return told


def _by_id(row: Calls) -> tuple[int, ...]:
    return (row.number,)


def _order(values: dict[str, Any]) -> Callable[[Calls], tuple[int, ...]]:
    """Return what calls are sorted by: how often, unless the time that they took is asked for."""
    if values.get("sort_by_time"):
        return lambda row: (-row.time_us,)
    if values.get("sort_by_time2"):
        return lambda row: (-row.mean_us,)
    return lambda row: (-row.calls,)


def _latency_us() -> int:
    """Return what a thousand looks at the clock take."""
    began_ns = time.monotonic_ns()
    for _ in range(1000):
        time.time_ns()
    return (time.monotonic_ns() - began_ns) // 1000
