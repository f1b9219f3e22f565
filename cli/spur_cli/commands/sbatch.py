"""`sbatch`: hand in a batch script, from a file, standard input or --wrap."""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple

from spur.slurm.directives import (
    OpenQuote,
    directive_words,
    numbered_directives,
    refuse_script,
)
from spur.slurm.exports import encode_environment, exported
from spur.slurm.foreign import foreign_words
from spur.slurm.getopt import parse_arguments
from spur.slurm.hetoptions import (
    BETWEEN,
    OLD_NAME,
    inherited,
    shared_options,
    split_components,
)
from spur.slurm.layers import Layer, layer_of
from spur.slurm.options import OPTIONS
from spur.slurm.rlimits import submitted_limits
from spur.slurm.statewords import LIVE_STATES
from spur.slurm.submission import (
    Settings,
    Submission,
    merge,
    refuse_memories,
    submission_of,
)
from spur.slurm.wording import (
    TOO_LONG,
    SlurmError,
    detail_of,
    error_line,
    failure_of,
    sentence_of,
)
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.wire.declare import Attachment, Request
from spur.wire.jobs import JobAccepted, JobFilter, SubmitJob
from spur_cli.registry import Command
from spur_cli.slurm.forecasting import partitions_missing, tell_forecast
from spur_cli.slurm.people import LocalCalendar
from spur_cli.slurm.queue import fetch_queue
from spur_cli.slurm.session import Session, guarded
from spur_cli.slurm.submitting import here, het_request, soft_limits, texts_of, with_node_files

__all__ = ["run", "submit"]

SYNTAX_STATUS = 255
"""How sbatch exits for a command line or a directive that cannot be read."""

WAIT_POLL_S = 0.5
"""How often --wait looks at the job."""

SCRIPT_BYTES_MAX = 4 << 20
"""Bytes of a script. Source: LOG-CONTRACT 2.3."""

WRAPPED = b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n"


class _Script(NamedTuple):
    """What is handed in."""

    content: bytes
    name: str
    """Of the job, unless an option gives another."""
    path: bytes
    """Empty when it came from no file."""


def run(arguments: list[str], command: Command) -> int:
    """Submit a job and say its number."""
    return guarded("sbatch", lambda session: submit(session, arguments))


def submit(session: Session, arguments: list[str]) -> int:
    """Submit a job as the arguments say; return the exit status. Raises: SlurmError."""
    lines, words = _lines(session, arguments)
    line = lines[0]
    if session.shows_help(line):
        return 0
    if line.given.get("gres") == "help":
        sys.stdout.write("Valid gres options are:\ngpu[[:type]:count]\n")
        return 0
    environment = session.environment_options()
    script = _script(lines[-1], words)
    refused = refuse_script(script.content)
    if refused:
        raise SlurmError(*(error_line("sbatch", sentence) for sentence in refused))
    if len(script.content) > SCRIPT_BYTES_MAX:
        raise SlurmError(error_line("sbatch", f"{failure_of('sbatch')}: {TOO_LONG}"))
    is_foreign = not (environment.values | line.values).get("ignore_pbs")
    directives = _directives(script.content, script.name, with_foreign=is_foreign)
    components = _components(directives, environment, lines)
    settings = components[0]
    arguments_of_script = tuple(os.fsencode(word) for word in words[1:])
    submissions = [
        submission_of(
            each,
            program="sbatch",
            default_name=script.name,
            argv=(script.path, *arguments_of_script),
            working_directory=os.fsencode(os.getcwd()),
            calendar=LocalCalendar(),
            place=here(),
        )
        for each in components
    ]
    for submission in submissions:
        for warning in submission.warnings:
            sys.stderr.write(f"{warning}\n")
    if settings.values.get("test_only"):
        is_quiet = "quiet" in settings.values
        return max(tell_forecast(session, each.spec, is_quiet=is_quiet) for each in submissions)
    cluster = _cluster(session, settings)
    job_id = _submit(session, submissions, settings, script)
    if settings.values.get("parsable"):
        sys.stdout.write(f"{job_id};{cluster}\n" if cluster else f"{job_id}\n")
    elif not settings.values.get("quiet"):
        where = f" on cluster {cluster}" if cluster else ""
        sys.stdout.write(f"Submitted batch job {job_id}{where}\n")
    if settings.values.get("wait"):
        sys.stdout.flush()
        return _await_end(session, job_id)
    return 0


def _cluster(session: Session, settings: Settings) -> str:
    """Return the cluster that was named; empty when none was. Raises: SlurmError."""
    named = settings.values.get("clusters")
    if not named:
        return ""
    from spur_cli.slurm.clusters import cluster_meant

    return cluster_meant(session, named)


def _lines(session: Session, arguments: list[str]) -> tuple[list[Layer], list[str]]:
    """Return the options of each component on the command line, and the script's words."""
    lines: list[Layer] = []
    words = [BETWEEN, *arguments]
    while words[:1] == [BETWEEN]:
        line, words = session.options(words[1:], status=SYNTAX_STATUS, stops_at_word=True)
        lines.append(line)
    return lines, words


def _components(directives: list[Layer], environment: Layer, lines: list[Layer]) -> list[Settings]:
    """Return the options of each component, one for a job that is no het job."""
    nothing, options = Layer({}, {}), OPTIONS["sbatch"]
    former = shared_options(lines, options) if len(lines) > 1 else Settings({}, {})
    found: list[Settings] = []
    for place in range(max(len(directives), len(lines))):
        script = directives[place] if place < len(directives) else nothing
        # Components of the script alone have the options of the line's last one.
        own = merge(script, environment, lines[min(place, len(lines) - 1)], "sbatch")
        former = inherited(former, own, options)
        refuse_memories(former.values, "sbatch")
        found.append(former._replace(values=with_node_files(former.values, "sbatch")))
    return found


def _await_end(session: Session, job_id: int) -> int:
    """Wait until a job, or all tasks of an array, ended; return the highest exit code."""
    wanted = JobFilter(job_ids=(JobId(job_id),))
    while True:
        queue = fetch_queue(session, wanted)
        if isinstance(queue, Rejection):
            raise SlurmError(error_line("sbatch", sentence_of(queue)))
        if not any(job.state in LIVE_STATES or job.completing for job in queue.jobs):
            return max((job.exit_code or int(bool(job.signal)) for job in queue.jobs), default=0)
        time.sleep(WAIT_POLL_S)


# -- the script


def _script(line: Layer, words: list[str]) -> _Script:
    wrap = line.values.get("wrap")
    if wrap is not None:
        if words:
            raise SlurmError(
                error_line("sbatch", "Script arguments not permitted with --wrap option")
            )
        return _Script(WRAPPED % os.fsencode(wrap), "wrap", b"")
    if not words:
        return _Script(sys.stdin.buffer.read(SCRIPT_BYTES_MAX + 1), "sbatch", b"")
    path = _find(words[0])
    try:
        with open(path, "rb") as file:
            content = file.read(SCRIPT_BYTES_MAX + 1)
    except IsADirectoryError:
        content = b""
    except OSError as error:
        raise SlurmError(error_line("sbatch", f"Unable to open file {path}")) from error
    return _Script(content, os.path.basename(path), os.fsencode(path))


def _find(name: str) -> str:
    """Return the path of a script: from here, else from PATH; what is nowhere stays as it is."""
    if name.startswith(("/", ".")):
        return os.path.abspath(name) if os.path.exists(name) else name
    for folder in (os.getcwd(), *os.environ.get("PATH", "").split(":")):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return name


def _directives(content: bytes, name: str, *, with_foreign: bool) -> list[Layer]:
    """Return the options inside the script of each component, other batch systems' first.

    Raises: SlurmError.
    """
    script = content.decode("utf-8", "surrogateescape")
    at = "1"
    try:
        words = foreign_words(script) if with_foreign else []
        for number, line in numbered_directives(script):
            at = str(number)
            words += directive_words(line)
    except OpenQuote as error:
        raise SlurmError(f"sbatch: fatal: {name}: line {at}: {error}") from error
    parts, is_old = split_components(words)
    if is_old:
        sys.stderr.write(
            f'sbatch: Warning: the "{OLD_NAME}" component separator is being deprecated. '
            'Please, use "hetjob" instead.\n'
        )
    layers: list[Layer] = []
    for part in parts:
        given, others = parse_arguments(
            part, OPTIONS["sbatch"], program="sbatch", status=SYNTAX_STATUS
        )
        if others:
            sentence = f"Invalid directive found in batch script: {others[0]}"
            raise SlurmError(error_line("sbatch", sentence), status=SYNTAX_STATUS)
        layers.append(layer_of(given, "sbatch"))
    return layers


# -- the controller


def _submit(
    session: Session, submissions: list[Submission], settings: Settings, script: _Script
) -> int:
    """Return the number of the job, or of the first component. Raises: SlurmError."""
    attachments = (
        Attachment("script", script.content),
        Attachment("environment", _environment(settings)),
    )
    submission = submissions[0]
    request: Request
    if len(submissions) > 1:
        request = het_request(submissions, attachments, "sbatch")
    else:
        array = submission.array
        request = SubmitJob(
            spec=submission.spec,
            tasks=None if array is None else array.tasks,
            throttle=0 if array is None else array.throttle,
            hold=submission.hold,
            priority=submission.priority,
            attachments=(*attachments, *texts_of(submission.text)),
        )
    answer = session.ask(request, JobAccepted)
    if isinstance(answer, JobAccepted):
        return answer.job_id
    lines = [
        line for each in submissions for line in partitions_missing(session, answer, each.spec)
    ]
    if detail_of(answer):
        lines.append(error_line("sbatch", detail_of(answer)))
    lines.append(error_line("sbatch", f"{failure_of('sbatch')}: {sentence_of(answer)}"))
    if answer.code == "unreachable":
        lines.append(f"hint: {answer.text}")
    raise SlurmError(*lines)


def _environment(settings: Settings) -> bytes:
    """Return the variables that go with the job."""
    export: str | None = settings.values.get("export")
    variables = dict(os.environb)
    variables[b"SLURM_SUBMIT_DIR"] = os.fsencode(os.getcwd())
    variables[b"SLURM_SUBMIT_HOST"] = os.fsencode(os.uname().nodename)
    umask = os.umask(0o077)
    os.umask(umask)
    variables[b"SLURM_UMASK"] = b"%04o" % umask
    if export is not None:
        variables[b"SLURM_EXPORT_ENV"] = os.fsencode(export)
        if export.upper() != "ALL":
            # What a login would have is added on the node.
            variables[b"SLURM_GET_USER_ENV"] = b"1"
    kept = exported(variables, None if export is None else os.fsencode(export))
    kept |= submitted_limits(soft_limits(), settings.values.get("propagate"))
    return encode_environment(kept)
