"""`sacct`: the records of jobs, long after the queue has forgotten them, as Slurm shows them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spur.slurm.columns.recordline import UNITS, RecordLine, alloc_cpus, record_name
from spur.slurm.columns.records import BRIEF_FORMAT, DEFAULT_FORMAT, LONG_FORMAT
from spur.slurm.jobids import JobName, parse_job_name
from spur.slurm.recordformat import Shape, Table, UnknownField, help_format, parse_fields
from spur.slurm.statewords import parse_state
from spur.slurm.timespec import MomentError, format_moment, parse_moment, parse_time_limit
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import NodeName, PartitionName
from spur.values.states import JobState, Reason
from spur.values.steps import BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP
from spur.wire.history import JobRecord, RecordFilter, RunRecord
from spur_cli.registry import Command
from spur_cli.slurm.people import LocalCalendar, Viewpoint, here
from spur_cli.slurm.records import Surroundings, fetch_records, line_maker
from spur_cli.slurm.session import Session, guarded

__all__ = ["run", "show"]

Values = Mapping[str, Any]  # as `Layer.values`

_BAD_LIMIT = "sacct: fatal: Invalid time limit specification"

_FLAGS = frozenset(("schedsubmit", "schedmain", "schedbackfill", "startreceived"))
"""How a job came to run. Source: sacct(1) --flags."""

_NS = 1_000_000_000

RULE_LETTERS = 80

_SPECIAL = {
    "batch": BATCH_STEP,
    "extern": EXTERN_STEP,
    "interactive": INTERACTIVE_STEP,
}


class _Named(NamedTuple):
    """One word of --jobs."""

    job: JobName
    step: int | None
    """None for the job with all of its steps."""


def run(arguments: list[str], command: Command) -> int:
    """Show records."""
    return guarded("sacct", lambda session: show(session, arguments, here()))


def show(session: Session, arguments: list[str], viewpoint: Viewpoint) -> int:
    """Write the records that a command line names; return the exit status. Raises: SlurmError."""
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
        texts = ("Unknown arguments:", *(f" {word}" for word in words))
        raise SlurmError(*(error_line("sacct", text) for text in texts))
    if values.get("completion"):
        raise SlurmError("Slurm job completion is disabled")
    for option, what in (("batch_script", "scripts"), ("env_vars", "environment")):
        if values.get(option) and not values.get("jobs"):
            raise SlurmError(
                f"sacct: fatal: When requesting job {what} you must also request specific jobs "
                "with the '-j' option."
            )
    asked = _Asked(values, viewpoint)
    tests = _tests(values)
    unit = _unit(values)
    table = _table(line.values, values)
    wanted = asked.filter()
    found = [] if wanted is None or _is_elsewhere(session, values) else _fetch(session, wanted)
    if asked.takes_whole and asked.widen(found):
        found = _fetch(session, asked.filter() or RecordFilter())
    if values.get("batch_script"):
        _write_scripts(session, asked.runs(found))
        return 0
    form = _document_form(values)
    if not (values.get("noheader") or form):
        sys.stdout.write(table.header())
    fields = frozenset(cell.field.name.lower() for cell in table.cells)
    lines_of = line_maker(
        session,
        viewpoint,
        found,
        fields=_DOCUMENT_FIELDS if form else fields,
        window=asked.window if values.get("truncate") else None,
        unit=unit,
        converts=not values.get("noconvert"),
    )
    if form:
        return _write_document(session, form, asked.runs(found), lines_of, tests)
    with_steps = not values.get("allocations")
    for job, its_run in asked.runs(found):
        lines = lines_of(job, its_run)
        if all(test(lines[0]) for test in tests):
            for row in lines if with_steps else lines[:1]:
                if asked.names_line(row):
                    sys.stdout.write(table.line(row))
    return 0


_DOCUMENT_FIELDS = frozenset(("timelimit", "reqmem", "cluster", "workdir", "comment", "submitline"))
"""Fields whose values a document has, and that are asked for apart."""


def _document_form(values: Values) -> str:
    if not {"json", "yaml"} & set(values):
        return ""
    from spur_cli.slurm.documents import document_form

    return document_form("sacct", values)


def _write_document(
    session: Session,
    form: str,
    runs: Iterable[tuple[JobRecord, RunRecord]],
    lines_of: Callable[[JobRecord, RunRecord], list[RecordLine]],
    tests: Sequence[Callable[[RecordLine], bool]],
) -> int:
    """Write records as a document."""
    from spur.slurm.dataparser.records import record_document
    from spur_cli.slurm.documents import write_document

    first = (lines_of(job, its_run)[0] for job, its_run in runs)
    rows = [record_document(line) for line in first if all(test(line) for test in tests)]
    return write_document(session, form, {"jobs": rows}, ["show", "jobs"])


# -- which


class _Asked:
    """Which records a command line names. Raises: SlurmError where it makes no sense."""

    def __init__(self, values: Values, viewpoint: Viewpoint) -> None:
        self._values = values
        self._viewpoint = viewpoint
        self._names = _names(values)
        whole = values.get("whole_hetjob")
        self.takes_whole = whole is not None and whole.lower() in ("", "yes")
        """Whether a component of a het job names all others too."""
        self._is_split = whole is not None and not self.takes_whole
        self.window = self._window()
        """Seconds from and to which a job must have been alive."""

    def _window(self) -> tuple[int, int]:
        """Source: sacct(1) DEFAULT TIME WINDOW."""
        calendar, values = self._viewpoint.calendar, self._values
        end_s = _moment(values, "end", calendar)
        end_s = calendar.now() if end_s is None else end_s
        start_s = _moment(values, "start", calendar)
        if start_s is None:
            if self._names:
                start_s = 0
            elif "states" in values:
                start_s = end_s
            else:
                start_s = parse_moment("today", calendar, is_past=True)
        if start_s > end_s:
            first, last = format_moment(start_s, calendar), format_moment(end_s, calendar)
            text = f"Start time ({first}) requested is after end time ({last})."
            raise SlurmError(error_line("sacct", text))
        return start_s, end_s

    def widen(self, jobs: list[JobRecord]) -> bool:
        """Name the whole of each het job of which a component is named; whether there is one."""
        named = {job.het_id for job, _ in self.runs(jobs) if job.het_id}
        self._names += [_Named(JobName(het_id, None), None) for het_id in sorted(named)]
        return bool(named)

    def _is_meant(self, job: JobRecord, name: JobName) -> bool:
        if not _is_named(job, name):
            return False
        is_alone = self._is_split or name.offset is not None
        return not (is_alone and job.het_id and job.job_id != name.job_id)

    def filter(self) -> RecordFilter | None:
        """Return what the read model is asked for; None when no record can be meant."""
        values = self._values
        states = _states(values)
        if states == () or values.get("wckeys"):
            return None
        start_s, end_s = self.window
        has_window = not self._names or "start" in values or "end" in values
        return RecordFilter(
            job_ids=tuple(dict.fromkeys(named.job.job_id for named in self._names)),
            uids=self._uids(),
            gids=self._gids(),
            accounts=_list(values, "accounts"),
            partitions=tuple(PartitionName(name) for name in _list(values, "partitions")),
            qos=_list(values, "qos"),
            names=_list(values, "names"),
            nodes=_nodes(values),
            states=states or (),
            start_ns=start_s * _NS if has_window else 0,
            # All of the last second counts: the log's time is finer than the window's.
            end_ns=(end_s + 1) * _NS - 1 if has_window else 0,
            all_runs=bool(values.get("duplicates")),
        )

    def _uids(self) -> tuple[int, ...]:
        values, uids = self._values, []
        for name in _list(values, "users"):
            uid = self._viewpoint.user_id(name)
            if uid is None:
                raise SlurmError(error_line("sacct", f"Invalid user id: {name}"))
            uids.append(uid)
        if values.get("all_users"):
            return ()
        if not uids and not self._names and self._viewpoint.uid:
            uids.append(self._viewpoint.uid)
        return tuple(uids)

    def _gids(self) -> tuple[int, ...]:
        gids = []
        for name in _list(self._values, "groups"):
            gid = self._viewpoint.group_id(name)
            if gid is None:
                raise SlurmError(error_line("sacct", f"Invalid group id: {name}"))
            gids.append(gid)
        return tuple(gids)

    def runs(self, jobs: list[JobRecord]) -> list[tuple[JobRecord, RunRecord]]:
        """Return job and run of each record that is named, in the order that they began."""
        names = self._names
        found = [
            (job, its_run)
            for job in jobs
            if not names or any(self._is_meant(job, named.job) for named in names)
            for its_run in job.runs
        ]
        return sorted(found, key=lambda pair: (pair[1].index, pair[0].job_id))

    def names_line(self, line: RecordLine) -> bool:
        """Whether a line is one of those that are named, which may be single steps."""
        step = None if line.step is None else line.step.step
        return not self._names or any(
            named.step is None or named.step == step
            for named in self._names
            if self._is_meant(line.job, named.job)
        )


def _names(values: Values) -> list[_Named]:
    found = []
    for text in values.get("jobs", "").split(","):
        if not text or text == "0":
            continue
        base, dot, step = text.partition(".")
        number, mark, task = base.partition("_")
        if mark and not task.isdigit():
            raise SlurmError(f"sacct: fatal: Bad job array element specified: {number}")
        if dot and step.lower() not in _SPECIAL and not step.isdigit():
            raise SlurmError(f"sacct: fatal: Bad step specified: {base}")
        try:
            found.append(_Named(parse_job_name(base), _step(step) if dot else None))
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


def _moment(values: Values, field: str, calendar: LocalCalendar) -> int | None:
    text = values.get(field)
    if not text:
        return None
    try:
        return parse_moment(text, calendar, is_past=True)
    except MomentError as error:
        raise SlurmError(str(error)) from error


def _list(values: Values, field: str) -> tuple[str, ...]:
    return tuple(word for word in values.get(field, "").split(",") if word)


def _states(values: Values) -> tuple[JobState, ...] | None:
    """Return the states that are asked for; None for all, nothing when no job of ours has them."""
    if not values.get("states"):
        return None
    found = []
    for word in _list(values, "states"):
        found.append(parse_state(word))
        if found[-1] is None:
            raise SlurmError(f"sacct: fatal: unrecognized job state value '{word}'")
    return tuple(state for state in found if isinstance(state, JobState))


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


def _is_named(job: JobRecord, name: JobName) -> bool:
    if name.tasks is not None:
        wanted = name.tasks
        return job.array_id == name.job_id and any(task in wanted for task in job.tasks or ())
    return name.job_id in (job.job_id, job.array_id, job.het_id)


def _write_scripts(session: Session, records: list[tuple[JobRecord, RunRecord]]) -> None:
    """Write the script of each job. Raises: SlurmError when one can't be had."""
    from spur.wire.texts import JobScript, ReadScript

    for job, its_run in records:
        script = session.ask(ReadScript(job.job_id), JobScript)
        if isinstance(script, Rejection):
            raise SlurmError(error_line("sacct", sentence_of(script)))
        text = "(erased)" if script.is_erased else script.content.decode("utf-8", "surrogateescape")
        name = record_name(job, its_run)
        sys.stdout.write(f"Batch Script for {name}\n{'-' * RULE_LETTERS}\n{text or 'NONE'}\n")


# -- conditions that the read model is not asked for


def _tests(values: Values) -> list[Callable[[RecordLine], bool]]:
    tests: list[Callable[[RecordLine], bool]] = []
    if words := set(_list(values, "constraints")):
        tests.append(lambda line: line.job.spec.ask.features in words)
    if values.get("cpus"):
        fewest, most = _range(values["cpus"], "cpu")
        tests.append(lambda line: fewest <= int(alloc_cpus(line)) <= most)
    if values.get("node_count"):
        first, last = _range(values["node_count"], "node")
        tests.append(lambda line: first <= len(line.run.shares) <= last)
    if "limit_min" in values:
        tests.append(_limit_test(values))
    elif "limit_max" in values:
        raise SlurmError(_BAD_LIMIT)
    if reasons := set(_list(values, "reasons")):
        for unknown in sorted(reasons - set(Reason)):
            raise SlurmError(f"sacct: fatal: unrecognized job reason value '{unknown}'")
        tests.append(lambda line: line.run.reason.value in reasons)
    if flags := {word.lower() for word in _list(values, "flags")}:
        for unknown in sorted(flags - _FLAGS):
            told = f"str_2_job_flags: Invalid job flag {unknown}"
            raise SlurmError(error_line("sacct", told))
        tests.append(lambda line: bool(line.run.start_ns) and "schedmain" in flags)
    return tests


def _range(text: str, what: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (first, last or first)):
        sentence = f'Invalid numeric value "{text}" for requested {what} range.'
        raise SlurmError(error_line("sacct", sentence))
    return int(first), int(last) if dash else int(first)


def _limit_test(values: Values) -> Callable[[RecordLine], bool]:
    try:
        fewest = parse_time_limit(values["limit_min"])
        most = parse_time_limit(values.get("limit_max", values["limit_min"]))
    except ValueError as error:
        raise SlurmError(_BAD_LIMIT) from error
    return lambda line: (
        line.run.time_limit_s is not None and fewest <= line.run.time_limit_s <= most
    )


# -- how it is shown


def _unit(values: Values) -> str:
    unit: str = values.get("units", "")
    if "units" in values and not unit:
        # Slurm's own sentence, which ends there.
        raise SlurmError(
            error_line("sacct", "Invalid unit type '"), "sacct: fatal: Invalid unit type"
        )
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
