"""`sacct`: the records of jobs, long after the queue has forgotten them, as Slurm shows them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spur.slurm.columns.recordline import UNITS, RecordLine
from spur.slurm.columns.records import BRIEF_FORMAT, DEFAULT_FORMAT, LONG_FORMAT
from spur.slurm.jobids import JobName, parse_job_name
from spur.slurm.recordformat import Shape, Table, UnknownField, help_format, parse_fields
from spur.slurm.statewords import parse_state
from spur.slurm.timespec import MomentError, format_moment, parse_moment, parse_time_limit
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import JobState
from spur.wire.history import JobRecord, RecordFilter, RunRecord, SpecialStep
from spur_cli.registry import Command
from spur_cli.slurm.people import LocalCalendar, user_id
from spur_cli.slurm.records import Surroundings, fetch_records, line_maker
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]

Values = Mapping[str, Any]  # as `Layer.values`

_NS = 1_000_000_000

_SPECIAL = {
    "batch": SpecialStep.BATCH,
    "extern": SpecialStep.EXTERN,
    "interactive": SpecialStep.INTERACTIVE,
}


class Named(NamedTuple):
    """One word of --jobs."""

    job: JobName
    step: int | None
    """None for the job with all of its steps."""


def run(arguments: list[str], command: Command) -> int:
    """Show records."""
    return guarded("sacct", lambda session: _sacct(session, arguments))


def _sacct(session: Session, arguments: list[str]) -> int:
    try:
        line, words = session.options(arguments)
    except SlurmError as error:
        raise SlurmError(error.lines[0], status=error.status) from error
    if session.shows_help(line):
        return 0
    values = {**session.environment_options().values, **line.values}
    if values.get("help_format"):
        sys.stdout.write(help_format())
        return 0
    if words:
        lines = ("Unknown arguments:", *(f" {word}" for word in words))
        raise SlurmError(*(error_line("sacct", text) for text in lines))
    if values.get("completion"):
        raise SlurmError("Slurm job completion is disabled")
    unit = _unit(values)
    names = _names(values)
    table = _table(line.values, values)
    window = _window(values, has_names=bool(names))
    wanted = _filter(values, names, window)
    found = [] if wanted is None or _is_elsewhere(session, values) else _fetch(session, wanted)
    if not values.get("noheader"):
        sys.stdout.write(table.header())
    shown = line_maker(
        session,
        fields=frozenset(cell.field.name.lower() for cell in table.cells),
        window=_cut_to(values, window),
        unit=unit,
        converts=not values.get("noconvert"),
    )
    tests = _tests(values)
    for job, its_run in sorted(
        _runs(found, names), key=lambda pair: (pair[1].index, pair[0].job_id)
    ):
        lines = shown(job, its_run)
        first = next(lines)
        if not all(test(first) for test in tests):
            continue
        steps = () if values.get("allocations") else tuple(lines)
        for row in (first, *steps):
            if _is_shown(row, names):
                sys.stdout.write(table.line(row))
    return 0


# -- which


def _names(values: Values) -> list[Named]:
    found = []
    for text in values.get("jobs", "").split(","):
        if not text or text == "0":
            continue
        base, dot, step = text.partition(".")
        if "_[" in base:
            number = base.partition("_")[0]
            raise SlurmError(f"sacct: fatal: Bad job array element specified: {number}")
        try:
            found.append(Named(parse_job_name(base), _step(step) if dot else None))
        except ValueError as error:
            raise SlurmError(f"sacct: fatal: Bad job/step specified: {text}") from error
    return found


def _step(text: str) -> int:
    special = _SPECIAL.get(text.lower())
    if special is not None:
        return special
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no step")
    return int(text)


def _window(values: Values, *, has_names: bool) -> tuple[int, int]:
    """Return the seconds from and to which a job must have been alive; 0 for since ever.

    Source: sacct(1) DEFAULT TIME WINDOW.
    """
    now_s = int(time.time())
    end_s = _moment(values, "end") or now_s
    start_s = _moment(values, "start")
    if start_s is None:
        if has_names:
            start_s = 0
        elif "states" in values:
            start_s = end_s
        else:
            start_s = parse_moment("today", LocalCalendar(), is_past=True)
    if start_s > end_s:
        calendar = LocalCalendar()
        first, last = format_moment(start_s, calendar), format_moment(end_s, calendar)
        text = f"Start time ({first}) requested is after end time ({last})."
        raise SlurmError(error_line("sacct", text))
    return start_s, end_s


def _moment(values: Values, field: str) -> int | None:
    text = values.get(field)
    if text is None:
        return None
    try:
        return parse_moment(text, LocalCalendar(), is_past=True)
    except MomentError as error:
        raise SlurmError(str(error)) from error


def _cut_to(values: Values, window: tuple[int, int]) -> tuple[int, int] | None:
    return window if values.get("truncate") else None


def _filter(values: Values, names: list[Named], window: tuple[int, int]) -> RecordFilter | None:
    """Return what the read model is asked for; None when no record can be meant."""
    states = _states(values)
    if states == () or values.get("wckeys"):
        return None
    start_s, end_s = window
    has_window = not names or "start" in values or "end" in values
    return RecordFilter(
        job_ids=tuple(_asked_ids(names)),
        uids=_uids(values, has_names=bool(names)),
        gids=_gids(values),
        accounts=_list(values, "accounts"),
        partitions=tuple(PartitionName(name) for name in _list(values, "partitions")),
        qos=_list(values, "qos"),
        names=_list(values, "names"),
        nodes=_nodes(values),
        states=states or (),
        start_ns=start_s * _NS if has_window else 0,
        # Whatever happened in the last second counts: the log's time is finer than the window's.
        end_ns=(end_s + 1) * _NS - 1 if has_window else 0,
        all_runs=bool(values.get("duplicates")),
    )


def _asked_ids(names: list[Named]) -> dict[JobId, None]:
    return dict.fromkeys(named.job.job_id for named in names)


def _list(values: Values, field: str) -> tuple[str, ...]:
    return tuple(word for word in values.get(field, "").split(",") if word)


def _states(values: Values) -> tuple[JobState, ...] | None:
    """Return the states that are asked for; None for all, nothing when no job of ours has them."""
    if not values.get("states"):
        return None
    found = [parse_state(word) for word in _list(values, "states")]
    if None in found:
        raise SlurmError("sacct: fatal: unrecognized job state value")
    return tuple(state for state in found if isinstance(state, JobState))


def _uids(values: Values, *, has_names: bool) -> tuple[int, ...]:
    uids = []
    for name in _list(values, "users"):
        uid = user_id(name)
        if uid is None:
            raise SlurmError(error_line("sacct", f"Invalid user id: {name}"))
        uids.append(uid)
    if not uids and not has_names and os.getuid() and not values.get("all_users"):
        uids.append(os.getuid())
    return () if values.get("all_users") else tuple(uids)


def _gids(values: Values) -> tuple[int, ...]:
    import grp

    gids = []
    for name in _list(values, "groups"):
        try:
            gids.append(grp.getgrnam(name).gr_gid)
        except KeyError:
            if not (name.isascii() and name.isdigit()):
                text = f"Invalid group id: {name}"
                raise SlurmError(error_line("sacct", text)) from None
            gids.append(int(name))
    return tuple(gids)


def _nodes(values: Values) -> tuple[NodeName, ...]:
    if not values.get("nodes"):
        return ()
    from spur.values.hostlist import parse_hostlist

    try:
        return tuple(NodeName(name) for name in parse_hostlist(values["nodes"]))
    except ValueError as error:
        raise SlurmError(error_line("sacct", str(error))) from error


def _is_elsewhere(session: Session, values: Values) -> bool:
    """Whether other clusters than this one are meant."""
    clusters = _list(values, "clusters")
    if not clusters or values.get("all_clusters") or "all" in clusters or "-1" in clusters:
        return False
    try:
        return Surroundings(session).name() not in clusters
    except LookupError as error:
        raise SlurmError(error_line("sacct", str(error))) from error


def _fetch(session: Session, wanted: RecordFilter) -> list[JobRecord]:
    found = fetch_records(session, wanted)
    if isinstance(found, Rejection):
        lines = [error_line("sacct", sentence_of(found))]
        if found.code == "unreachable":
            lines.append(f"hint: {found.text}")
        raise SlurmError(*lines)
    return found


def _runs(jobs: list[JobRecord], names: list[Named]) -> list[tuple[JobRecord, RunRecord]]:
    """Return job and run of each record that is named."""
    return [
        (job, its_run)
        for job in jobs
        if not names or any(_is_named(job, named.job) for named in names)
        for its_run in job.runs
    ]


def _is_named(job: JobRecord, name: JobName) -> bool:
    if name.tasks is not None:
        wanted = name.tasks
        return job.array_id == name.job_id and any(task in wanted for task in job.tasks or ())
    return name.job_id in (job.job_id, job.array_id, job.het_id)


def _is_shown(line: RecordLine, names: list[Named]) -> bool:
    """Whether a line is one of those that are named, which may be single steps."""
    step = None if line.step is None else line.step.step
    return not names or any(
        named.step is None or named.step == step
        for named in names
        if _is_named(line.job, named.job)
    )


# -- conditions that the read model is not asked for


def _tests(values: Values) -> list[Callable[[RecordLine], bool]]:
    tests: list[Callable[[RecordLine], bool]] = []
    if words := set(_list(values, "constraints")):
        tests.append(lambda line: line.job.spec.ask.features in words)
    if "cpus" in values:
        fewest, most = _range(values["cpus"], "ncpus")
        tests.append(lambda line: fewest <= int(_cpus(line)) <= most)
    if "node_count" in values:
        first, last = _range(values["node_count"], "nnodes")
        tests.append(lambda line: first <= len(line.run.shares) <= last)
    if "limit_min" in values:
        tests.append(_limit_test(values))
    if reasons := set(_list(values, "reasons")):
        tests.append(lambda line: line.run.reason.value in reasons)
    if flags := {word.lower() for word in _list(values, "flags")}:
        tests.append(lambda line: bool(line.run.start_ns) and "schedmain" in flags)
    return tests


def _cpus(line: RecordLine) -> str:
    from spur.slurm.columns.recordline import alloc_cpus

    return alloc_cpus(line)


def _range(text: str, option: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (first, last or first)):
        raise SlurmError(error_line("sacct", f"Invalid --{option} specification: {text}"))
    return int(first), int(last) if dash else int(first)


def _limit_test(values: Values) -> Callable[[RecordLine], bool]:
    try:
        fewest = parse_time_limit(values["limit_min"])
        most = parse_time_limit(values.get("limit_max", values["limit_min"]))
    except ValueError as error:
        raise SlurmError(error_line("sacct", str(error))) from error
    return lambda line: (
        line.run.time_limit_s is not None and fewest <= line.run.time_limit_s <= most
    )


# -- how it is shown


def _unit(values: Values) -> str:
    unit: str = values.get("units", "")
    if unit and (len(unit) != 1 or unit.upper() not in UNITS):
        text = f"Invalid unit type '{unit}'. Possible options are '{UNITS}'"
        raise SlurmError(error_line("sacct", text), "sacct: fatal: Invalid unit type")
    return unit.upper()


def _table(typed: Values, values: Values) -> Table:
    if "format" in typed:
        text = typed["format"]
    elif values.get("brief"):
        text = BRIEF_FORMAT
    elif values.get("long"):
        text = LONG_FORMAT
    else:
        text = values.get("format") or DEFAULT_FORMAT
    try:
        cells = parse_fields(text)
    except UnknownField as error:
        text = f'Invalid field requested: "{error}"'
        raise SlurmError(error_line("sacct", text)) from error
    return Table(cells, _shape(values))


def _shape(values: Values) -> Shape:
    if not (values.get("parsable") or values.get("parsable2")):
        return Shape()
    return Shape(values.get("delimiter", "|"), not values.get("parsable2"))
