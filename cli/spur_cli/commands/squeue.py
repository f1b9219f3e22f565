"""`squeue`: the jobs that wait, run or ended a moment ago, as Slurm shows them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from spur.slurm.bunches import Bunch, Typesetter
from spur.slurm.columns.jobline import JobLine
from spur.slurm.columns.jobs import (
    BY_LETTER,
    BY_NAME,
    DEFAULT_FORMAT,
    LONG_FORMAT,
    START_FORMAT,
    STATE_FORMAT,
)
from spur.slurm.formats import Layout, parse_format, parse_long_format
from spur.slurm.jobids import JobName, parse_job_name, split_names
from spur.slurm.joborder import DEFAULT_SORT, START_SORT, SortKey, parse_sort, sorted_bunches
from spur.slurm.layers import Layer
from spur.slurm.statewords import COMPLETING, LIVE_STATES, parse_state
from spur.slurm.timespec import parse_time_limit
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import NodeName, PartitionName
from spur.values.states import JobState
from spur.wire.jobs import JobFilter
from spur_cli.registry import Command
from spur_cli.slurm.people import user_id
from spur_cli.slurm.queue import Queue, bunches_of, fetch_queue
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]

Values = Mapping[str, Any]  # as `Layer.values`


UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified"

STATE_WORDS = (
    "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,"
    "DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
)
"""What Slurm takes for a state. Source: a transcript of Slurm 22.05."""


def run(arguments: list[str], command: Command) -> int:
    """Show the queue."""
    return guarded("squeue", lambda session: _squeue(session, arguments))


def _squeue(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    if words:
        raise SlurmError(error_line("squeue", f"Unrecognized option: {words[0]}"))
    values = {**session.environment_options().values, **line.values}
    seconds = 0
    if "iterate" in values:
        from spur_cli.slurm.repeating import repeat, seconds_between

        seconds = seconds_between(values["iterate"], "squeue")
    if "clusters" in values:
        from spur_cli.slurm.clusters import cluster_meant

        cluster = cluster_meant(session, values["clusters"])
        if not values.get("noheader"):
            sys.stdout.write(f"CLUSTER: {cluster}\n")
    if not seconds:
        return _show(session, line, values)
    return repeat(seconds, lambda: _show(session, line, values))


def _show(session: Session, line: Layer, values: Values) -> int:
    names = _job_names(values)
    wanted = _filter(session, values, names)
    if form := _document_form(values):
        return _document(session, values, wanted, names, form)
    if "steps" in values:
        return _steps(session, line, values, wanted)
    layout = _layout(session, line, values)
    with_texts = any(cell.column is not None and cell.column.is_text for cell in layout.cells)
    shown: list[Bunch] = []
    if wanted is not None:
        cluster = _cluster(session, layout)
        shown = _bunches(session, values, wanted, names, with_texts=with_texts, cluster=cluster)
    _write_header(values, layout.header())
    keys = _sort_keys(values)
    sys.stdout.write(Typesetter(layout).text(sorted_bunches(shown, keys)))
    return 0


def _document_form(values: Values) -> str:
    if not {"json", "yaml"} & set(values):
        return ""
    from spur_cli.slurm.documents import document_form

    return document_form("squeue", values)


def _document(
    session: Session, values: Values, wanted: JobFilter | None, names: list[JobName], form: str
) -> int:
    """Write the jobs as a document."""
    from spur.slurm.dataparser.jobs import job_document, state_document
    from spur.slurm.dataparser.parts import seconds, unset
    from spur_cli.slurm.clusters import own_cluster
    from spur_cli.slurm.documents import write_document

    cluster = own_cluster(session)
    with_texts = not values.get("only_job_state")
    shown: list[Bunch] = []
    if wanted is not None:
        shown = _bunches(session, values, wanted, names, with_texts=with_texts, cluster=cluster)
    lines = [
        bunch.at(place)
        for bunch, places in sorted_bunches(shown, _sort_keys(values))
        for place in places
    ]
    make = job_document if with_texts else state_document
    body = {
        "jobs": [make(line) for line in lines],
        "last_backfill": unset(),
        "last_update": seconds(time.time_ns()),
    }
    return write_document(session, form, body, ["show", "jobs"], cluster)


def _cluster(session: Session, layout: Layout[JobLine]) -> str:
    """Return the cluster's name where it is shown."""
    if all(cell.column is None or cell.column.name != "Cluster" for cell in layout.cells):
        return ""
    from spur_cli.slurm.clusters import own_cluster

    return own_cluster(session)


def _write_header(values: Values, header: str) -> None:
    if not values.get("noheader"):
        if values.get("long") or "iterate" in values:
            sys.stdout.write(time.strftime("%a %b %d %H:%M:%S %Y\n"))
        sys.stdout.write(header + "\n")
        sys.stdout.flush()


def _steps(session: Session, line: Layer, values: Values, wanted: JobFilter | None) -> int:
    """Show the steps of the jobs instead."""
    from spur.slurm.columns.steps import STEP_FORMAT, STEPS_BY_LETTER, STEPS_BY_NAME, StepLine
    from spur_cli.slurm.steplist import by_partition, fetch_steps, is_meant, parse_step_word

    words = []
    for text in split_names(values["steps"]):
        if not text.partition(".")[2]:
            told = f"Invalid job_step id: {text.rstrip('.')}.??"
            raise SlurmError(error_line("squeue", told))
        try:
            words.append(parse_step_word(text))
        except ValueError as error:
            raise SlurmError(error_line("squeue", f"Invalid job_step_id: {text}")) from error
    fields = line.values if {"format", "long_format"} & set(line.values) else values
    layout: Layout[StepLine]
    if "long_format" in fields:
        layout = parse_long_format(fields["long_format"], STEPS_BY_NAME)
    else:
        layout = parse_format(fields.get("format", STEP_FORMAT), STEPS_BY_LETTER)
    for name in layout.unknown:
        session.complain(f"Invalid job step format specification: {name}")
    found = [] if wanted is None else fetch_steps(session, wanted)
    if isinstance(found, Rejection):
        raise SlurmError(f"slurm_load_jobs error: {sentence_of(found)}", *_hint(found))
    _write_header(values, layout.header())
    lines = sorted((row for row in found if is_meant(row, words)), key=by_partition)
    sys.stdout.write("".join(f"{text}\n" for text in layout.lines(lines)))
    return 0


# -- what to show


def _job_names(values: Values) -> list[JobName]:
    names = []
    for text in split_names(values.get("jobs", "")):
        try:
            name = parse_job_name(text)
            # A component of a het job names the whole.
            names.append(name._replace(job_id=name.whole))
        except ValueError as error:
            # Slurm reads a number as far as it goes, and no job of ours is called so.
            is_number = text[0].isdigit() and text != "0"
            told = UNKNOWN_JOB if is_number else error_line("squeue", f"Invalid job id: {text}")
            raise SlurmError(told) from error
    return names


def _filter(session: Session, values: Values, names: list[JobName]) -> JobFilter | None:
    """Return what the controller is asked for; None when no job can be meant."""
    states = _states(values)
    uids = _uids(session, values)
    if states == () or (not uids and _list(values, "users")):
        return None
    nodes = values.get("nodes", "")
    if nodes:
        _check_nodes(session, nodes)
    return JobFilter(
        job_ids=tuple(dict.fromkeys(name.job_id for name in names)),
        uids=uids,
        partitions=tuple(PartitionName(name) for name in _list(values, "partitions")),
        accounts=_list(values, "accounts"),
        qos=_list(values, "qos"),
        names=_list(values, "names"),
        # A job that is named is fetched whatever its state, to tell a finished one from none.
        states=() if states is None or names else _known(states),
        nodes=_nodes(nodes),
        completing=states is not None and not names and COMPLETING in states,
    )


def _list(values: Values, field: str) -> tuple[str, ...]:
    return tuple(word for word in values.get(field, "").split(",") if word)


def _known(states: tuple[JobState | str, ...]) -> tuple[JobState, ...]:
    return tuple(state for state in states if isinstance(state, JobState))


def _states(values: Values) -> tuple[JobState | str, ...] | None:
    """Return the states that are shown; None for all."""
    text = values.get("states")
    if text is None:
        return (JobState.PENDING,) if values.get("start") else (*LIVE_STATES, COMPLETING)
    if text.lower() == "all":
        return None
    found: list[JobState | str] = []
    for word in text.split(","):
        state = parse_state(word) if word else None
        if word and state is None:
            raise SlurmError(
                error_line("squeue", f"Invalid job state specified: {word}"),
                error_line("squeue", f"Valid job states include: {STATE_WORDS}\n"),
            )
        if state is not None:
            found.append(state)
    return tuple(found)


def _uids(session: Session, values: Values) -> tuple[int, ...]:
    uids = []
    for name in _list(values, "users"):
        uid = user_id(name)
        if uid is None:
            session.complain(f"Invalid user: {name}\n")
        else:
            uids.append(uid)
    if values.get("me"):
        uids.append(os.getuid())
    return tuple(uids)


def _nodes(text: str) -> tuple[NodeName, ...]:
    if not text:
        return ()
    from spur.values.hostlist import parse_hostlist

    return tuple(NodeName(name) for name in parse_hostlist(text))


def _check_nodes(session: Session, nodes: str) -> None:
    """Raises: SlurmError when one of the nodes is none."""
    from spur.wire.nodes import ListNodes, NodeList

    answer = session.ask(ListNodes(nodes, "", 1), NodeList)
    if isinstance(answer, Rejection):
        if answer.code in ("unknown-node", "invalid-value"):
            name = _missing_node(session, nodes)
            raise SlurmError(error_line("squeue", f"Invalid node name {name}"))
        raise SlurmError(f"slurm_load_node error: {sentence_of(answer)}")


def _missing_node(session: Session, nodes: str) -> str:
    """Return the first of the nodes that is none; what was typed when it can't be told."""
    from spur.values.hostlist import parse_hostlist
    from spur.wire.nodes import ListNodes, NodeList

    try:
        names = parse_hostlist(nodes)
    except ValueError:
        return nodes
    for name in names:
        if isinstance(session.ask(ListNodes(name, "", 1), NodeList), Rejection):
            return name
    return nodes


def _bunches(
    session: Session,
    values: Values,
    wanted: JobFilter,
    names: list[JobName],
    *,
    with_texts: bool,
    cluster: str,
) -> list[Bunch]:
    queue = fetch_queue(session, wanted)
    if isinstance(queue, Rejection):
        raise SlurmError(f"slurm_load_jobs error: {sentence_of(queue)}", *_hint(queue))
    if len(names) == 1 and not queue.kinds and wanted == JobFilter(job_ids=wanted.job_ids):
        raise SlurmError(UNKNOWN_JOB)
    _keep_asked(queue, values, names)
    bunches = bunches_of(session, queue, cluster, with_texts=with_texts)
    if values.get("noconvert"):
        bunches = [bunch._replace(line=bunch.line._replace(converts=False)) for bunch in bunches]
    if values.get("array"):
        bunches = [bunch.split() for bunch in bunches]
    if any(name.tasks is not None for name in names):
        bunches = [single for bunch in bunches for single in bunch.apart()]
    for test in _tests(values, names):
        bunches = [bunch for bunch in bunches if test(bunch.line)]
    return bunches


def _hint(rejection: Rejection) -> tuple[str, ...]:
    """Return our own words about what cannot be reached, for the person at the terminal."""
    return (f"hint: {rejection.text}",) if rejection.code == "unreachable" else ()


def _keep_asked(queue: Queue, values: Values, names: list[JobName]) -> None:
    """Drop the states that are not shown from jobs that were fetched by their names."""
    states = _states(values)
    if names and states is not None:
        completes = COMPLETING in states
        queue.keep(lambda job: job.state in states or (completes and job.completing))


def _tests(values: Values, names: list[JobName]) -> list[Callable[[JobLine], bool]]:
    """Return the conditions that no controller is asked for, the same for all lines of a bunch."""
    tests: list[Callable[[JobLine], bool]] = []
    if any(name.tasks is not None for name in names):
        tests.append(lambda line: any(_is_named(line, name) for name in names))
    if values.get("licenses"):
        licenses = set(_list(values, "licenses"))
        tests.append(lambda line: bool(licenses & _words(line.job.spec.ask.licenses)))
    if values.get("reservation"):
        reservations = set(_list(values, "reservation"))
        tests.append(lambda line: line.job.spec.ask.reservation in reservations)
    if values.get("notme"):
        uid = os.getuid()
        tests.append(lambda line: line.job.uid != uid)
    tests += [_ran(values, field) for field in ("running_over", "running_under") if field in values]
    return tests


def _is_named(line: JobLine, name: JobName) -> bool:
    job = line.job
    if name.job_id not in (job.job_id, job.array_id, job.het_id):
        return False
    return name.tasks is None or (
        line.tasks is not None and any(task in name.tasks for task in line.tasks)
    )


def _words(licenses: str) -> set[str]:
    return {word.partition(":")[0].partition("@")[0] for word in licenses.split(",")}


def _ran(values: Values, field: str) -> Callable[[JobLine], bool]:
    from spur.slurm.columns.jobline import used_s

    try:
        limit_s = parse_time_limit(values[field])
    except ValueError as error:
        option = field.replace("_", "-")
        raise SlurmError(error_line("squeue", f"Invalid --{option} specification")) from error
    is_over = field == "running_over"

    def test(line: JobLine) -> bool:
        ran_s = used_s(line)
        return line.job.start_ns > 0 and (ran_s > limit_s if is_over else ran_s < limit_s)

    return test


# -- how to show it


def _layout(session: Session, line: Layer, values: Values) -> Layout[JobLine]:
    """Return the layout: of the command line, else of the environment, else the usual one."""
    fields = line.values if {"format", "long_format"} & set(line.values) else values
    if {"format", "long_format"} <= set(line.values):
        sentence = "-O (--Format) is incompatible with -o (--format)"
        raise SlurmError(error_line("squeue", sentence))
    layout: Layout[JobLine]
    if "format" in fields:
        layout = parse_format(fields["format"], BY_LETTER)
    elif "long_format" in fields:
        layout = parse_long_format(fields["long_format"], BY_NAME)
    elif values.get("start"):
        layout = parse_format(START_FORMAT, BY_LETTER)
    elif values.get("only_job_state"):
        layout = parse_format(STATE_FORMAT, BY_LETTER)
    else:
        layout = parse_format(LONG_FORMAT if values.get("long") else DEFAULT_FORMAT, BY_LETTER)
    for name in layout.unknown:
        session.complain(f"Invalid job format specification: {name}")
    return layout


def _sort_keys(values: Values) -> list[SortKey]:
    text = values.get("sort") or (START_SORT if values.get("start") else DEFAULT_SORT)
    try:
        return parse_sort(text)
    except ValueError as error:
        raise SlurmError(error_line("squeue", f"Invalid sort specification: {error}")) from error
