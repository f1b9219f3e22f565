"""`sprio`: what the priorities of waiting jobs are made of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spur.slurm.columns.jobline import JobLine
from spur.slurm.columns.priorities import BY_LETTER, PriorityLine, Weights, default_format
from spur.slurm.formats import Layout, parse_format
from spur.slurm.jobids import split_names
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import Hold, JobState, Reason
from spur.wire.cluster import ConfigInfo, ShowConfig
from spur.wire.factors import FactorList, FactorView, QueryFactors
from spur.wire.jobs import JobFilter
from spur_cli.registry import Command
from spur_cli.slurm.people import user_id
from spur_cli.slurm.queue import fetch_queue, lines_of
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]

Values = Mapping[str, Any]  # as `Layer.values`

FACTOR_JOBS = 1000
"""Jobs of one question about factors."""

_WAITING_FOR_OTHERS = (str(Reason.BEGIN_TIME), str(Reason.DEPENDENCY), str(Reason.ARRAY_TASK_LIMIT))
"""Reasons of jobs that nobody ranks yet."""


def run(arguments: list[str], command: Command) -> int:
    """Show the priorities."""
    return guarded("sprio", lambda session: _sprio(session, arguments))


def _sprio(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    values = {**session.environment_options().values, **line.values}
    wanted = _job_ids(values, words)
    if "clusters" in values:
        from spur_cli.slurm.clusters import cluster_meant

        cluster_meant(session, values["clusters"])
    parameters = _parameters(session)
    if parameters.get("prioritytype", "").lower() == "priority/basic":
        raise SlurmError(
            "You are not running a supported priority plugin",
            "(priority/basic).",
            "Only 'priority/multifactor' is supported.",
        )
    weights = Weights.of(parameters)
    layout = _layout(session, values, weights)
    uids = _uids(session, values)
    if not values.get("noheader"):
        header = layout.header() + "\n"
    else:
        header = ""
    if values.get("weights"):
        sys.stdout.write(header + layout.line(PriorityLine(None, "", weights)) + "\n")
        return 0
    lines = sorted(_lines(session, values, weights, wanted, uids), key=_key(values))
    if wanted and not lines:
        sys.stdout.write("Unable to find jobs matching user/id(s) specified\n")
        return 0
    sys.stdout.write(header + "".join(f"{text}\n" for text in layout.lines(lines)))
    return 0


def _job_ids(values: Values, words: list[str]) -> frozenset[int]:
    texts = [*split_names(values.get("jobs", "")), *words]
    for text in texts:
        if not (text.isascii() and text.isdigit() and int(text)):
            raise SlurmError(error_line("sprio", f"Invalid job id: {text}"))
    return frozenset(map(int, texts))


def _parameters(session: Session) -> dict[str, str]:
    info = session.ask(ShowConfig(), ConfigInfo)
    if isinstance(info, Rejection):
        raise SlurmError(f"slurm_load_ctl_conf error: {sentence_of(info)}")
    return {row.name.lower(): row.value for row in info.parameters}


def _layout(session: Session, values: Values, weights: Weights) -> Layout[PriorityLine]:
    form = values.get("format") or default_format(
        weights,
        is_long=bool(values.get("long")),
        is_normal=bool(values.get("norm")),
        with_user="users" in values,
        with_weights=bool(values.get("weights")),
    )
    layout = parse_format(form, BY_LETTER)
    for letter in layout.unknown:
        session.complain(f"Invalid job format specification: {letter}")
    return layout._replace(cells=tuple(cell for cell in layout.cells if cell.column is not None))


def _uids(session: Session, values: Values) -> frozenset[int] | None:
    """Return the users meant; None for all."""
    if "users" not in values:
        return None
    found = set()
    for name in split_names(values["users"]):
        uid = user_id(name)
        if uid is None:
            session.complain(f"Invalid user: {name}\n")
        else:
            found.add(uid)
    return frozenset(found)


def _lines(
    session: Session,
    values: Values,
    weights: Weights,
    wanted: frozenset[int],
    uids: frozenset[int] | None,
) -> Iterator[PriorityLine]:
    queue = fetch_queue(session, JobFilter(states=(JobState.PENDING,)))
    if isinstance(queue, Rejection):
        raise SlurmError(f"slurm_load_priority_factors error: {sentence_of(queue)}")
    partitions = split_names(values.get("partitions", ""))
    chosen: list[JobLine] = []
    for line in lines_of(session, queue):
        job = line.job
        if wanted and wanted.isdisjoint((job.job_id, job.array_id)):
            continue
        if uids is not None and job.uid not in uids:
            continue
        if job.hold is not Hold.NONE or line.reason in _WAITING_FOR_OTHERS:
            continue
        chosen.append(line)
    factors = _factors(session, [line.job.job_id for line in chosen])
    for line in chosen:
        for name in line.job.spec.partitions:
            if not partitions or name in partitions:
                own = factors.get((line.job.job_id, name), ())
                yield PriorityLine(line, name, weights, own)


def _factors(
    session: Session, jobs: list[JobId]
) -> dict[tuple[JobId, str], tuple[FactorView, ...]]:
    """Return what the priorities of jobs are made of, by job and partition."""
    found: dict[tuple[JobId, str], tuple[FactorView, ...]] = {}
    for first in range(0, len(jobs), FACTOR_JOBS):
        page = session.ask(QueryFactors(tuple(jobs[first : first + FACTOR_JOBS])), FactorList)
        if isinstance(page, Rejection):
            raise SlurmError(f"slurm_load_priority_factors error: {sentence_of(page)}")
        found.update({(row.job_id, row.partition): row.factors for row in page.rows})
    return found


_KEYS: dict[str, Callable[[JobLine, PriorityLine], Any]] = {
    "i": lambda line, row: line.job.job_id,
    "N": lambda line, row: line.job.spec.nice,
    "r": lambda line, row: row.partition,
    "u": lambda line, row: line.user(line.job.uid),
    "Y": lambda line, row: row.points,
    "y": lambda line, row: row.points,
}
"""What a letter of --sort sorts by, but for those of single factors."""


class _Reversed:
    """A key in falling order."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.key == other.key)


def _key(values: Values) -> Callable[[PriorityLine], list[Any]]:
    """Return what lines are sorted by: by job, unless --sort says otherwise."""
    words = [word for word in values.get("sort", "i").split(",") if word]

    def key(line: PriorityLine) -> list[Any]:
        if line.job is None:
            return []
        found: list[Any] = []
        for word in words:
            of = _KEYS.get(word[-1])
            if of is not None:
                value = of(line.job, line)
                found.append(_Reversed(value) if word.startswith("-") else value)
        return [*found, line.job.job.job_id]

    return key
