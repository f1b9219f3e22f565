"""`srun`: run a command as parallel tasks, in an allocation of its own or as a step of a job."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from spur.slurm.gpubind import gpu_binding
from spur.slurm.layers import Layer
from spur.slurm.multiprog import BadPrograms, Programs, parse_programs
from spur.slurm.stepasks import options_inside, step_wish
from spur.slurm.submission import merge, submission_of
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import JobState
from spur.wire.cluster import ConfigInfo, ShowConfig
from spur.wire.jobs import JobView
from spur.wire.steps import (
    KEY_SIZE,
    QuerySteps,
    StartStep,
    StepAccepted,
    StepAsk,
    StepPage,
    StepView,
)
from spur_cli.registry import Command
from spur_cli.slurm.allocation import Allocation, Dial, look_up, obtain, release
from spur_cli.slurm.forecasting import tell_forecast
from spur_cli.slurm.people import LocalCalendar
from spur_cli.slurm.rawterminal import terminal_of
from spur_cli.slurm.session import Session, guarded
from spur_cli.slurm.signals import Signals
from spur_cli.slurm.steptasks import Tasks
from spur_cli.slurm.submitting import here, with_node_files

if TYPE_CHECKING:
    from spur_cli.slurm.launch import StepRun

__all__ = ["own_run", "run"]

SYNTAX_STATUS = 255

QUIET_BUSY_S = 0.5
"""How long srun waits for busy resources before it says so: a former step may be about to end."""

FIRST_RETRY_S = 0.02
LONGEST_RETRY_S = 2.0

PROGRAMS_BYTES_MAX = 1 << 20
"""Of a file that says what each task executes."""


class _Started(NamedTuple):
    """A step that was started, and the key of its streams."""

    step: StepView
    key: bytes


def run(arguments: list[str], command: Command) -> int:
    """Run tasks, and return what they come to."""
    return guarded("srun", lambda session: _srun(session, arguments))


def _srun(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments, status=SYNTAX_STATUS, stops_at_word=True)
    if session.shows_help(line):
        return 0
    environment = session.environment_options()
    mpi = line.values.get("mpi", environment.values.get("mpi", "none"))
    if mpi == "list":
        sys.stdout.write("MPI plugin types are...\n\tnone\n")
        return 0
    if not words:
        raise SlurmError("srun: fatal: No command given to execute.")
    if line.values.get("cpu_bind", environment.values.get("cpu_bind")):
        _warn_of_binding(session)
    if ":" in words:
        raise SlurmError(
            error_line("srun", "heterogeneous jobs are not honoured yet; nothing was done")
        )
    _refuse_no_allocation(line)
    tasks = Tasks(
        words,
        _programs(line, words[0]) if line.values.get("multi_prog") else None,
        terminal_of(environment.values | line.values),
        "nodes" in line.given,
    )
    if tasks.programs is not None and "tasks" not in environment.values | line.values:
        line.values["tasks"] = tasks.programs.tasks
    signals = Signals()
    job_id = line.values.get("job_id", environment.values.get("job_id"))
    if job_id is None or line.values.get("test_only"):
        return _alone(session, environment, line, tasks, signals)
    job = look_up(session, JobId(job_id))
    if job is None:
        raise SlurmError(
            error_line(
                "srun", f"Unable to confirm allocation for job {job_id}: Invalid job id specified"
            ),
            f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job_id}",
        )
    values = with_node_files(options_inside(environment, line), "srun")
    return _step(session, Allocation(job, False), values, tasks, signals)


def _refuse_no_allocation(line: Layer) -> None:
    """Raises: SlurmError for tasks that are to run without an allocation."""
    if "no-allocate" in line.given:
        sentence = "must specify a node list with -Z, --no-allocate."
        if "nodelist" in line.given:
            sentence = "--no-allocate is not honoured: nothing runs outside an allocation"
        raise SlurmError(error_line("srun", sentence))


def _programs(line: Layer, path: str) -> Programs:
    """Read the file of --multi-prog. Raises: SlurmError."""
    try:
        with open(path, "rb") as file:
            programs = parse_programs(path, file.read(PROGRAMS_BYTES_MAX))
        if "tasks" in line.values:
            programs.argv(line.values["tasks"], ())
    except OSError as error:
        sentence = f"Could not open multi_prog config file {path}"
        raise SlurmError(error_line("srun", sentence)) from error
    except BadPrograms as error:
        raise SlurmError(*(error_line("srun", text) for text in str(error).split("\n"))) from error
    return programs


def _warn_of_binding(session: Session) -> None:
    """Say that nothing will be bound, where the site has no plugin for it."""
    config = session.ask(ShowConfig(), ConfigInfo)
    if isinstance(config, ConfigInfo):
        written = {each.name.lower(): each.value for each in config.parameters}
        plugin = written.get("taskplugin", "")
        if "affinity" not in plugin and "cgroup" not in plugin:
            sys.stderr.write("srun: cluster configuration lacks support for cpu binding\n")


def _alone(
    session: Session, environment: Layer, line: Layer, tasks: Tasks, signals: Signals
) -> int:
    """Run in an allocation of its own."""
    words = tasks.words
    settings = merge(Layer({}, {}), environment, line, "srun")
    settings = settings._replace(values=with_node_files(settings.values, "srun"))
    values = settings.values
    submission = submission_of(
        settings,
        program="srun",
        default_name=os.path.basename(words[0]),
        argv=tuple(os.fsencode(word) for word in words),
        working_directory=os.fsencode(os.getcwd()),
        calendar=LocalCalendar(),
        place=here(),
        batch=False,
    )
    for warning in submission.warnings:
        sys.stderr.write(f"{warning}\n")
    if values.get("test_only"):
        return tell_forecast(session, submission.spec, is_quiet="quiet" in values)
    allocation = obtain(
        session,
        submission,
        signals,
        immediate_s=values.get("immediate_s"),
        is_quiet=bool(values.get("quiet")),
        meanwhile=partial(_dial, session),
    )
    status = 1
    try:
        status = _step(session, allocation, _in_own(values, allocation.job), tasks, signals)
    finally:
        release(session, allocation.job.job_id, status)
        if allocation.staying is not None:
            allocation.staying.leave()
    return status


_ASKED_BY_THE_JOB = (
    "exact",
    "gres",
    "gpus",
    "gpus_per_node",
    "gpus_per_socket",
    "gpus_per_task",
    "memory_per_node",
    "memory_per_cpu",
    "memory_per_gpu",
    "nodes",
    "nodes_excluded",
    "relative",
    "sharing",
    "time_limit_s",
)
"""Fields that the allocation has answered: its only step has all of it."""


def _in_own(values: dict[str, Any], job: JobView) -> dict[str, Any]:
    """Return the options of the only step of an allocation."""
    left = {name: value for name, value in values.items() if name not in _ASKED_BY_THE_JOB}
    held = len(job.shares)
    left["nodes"] = (held, held)
    left["gpu_bind"] = gpu_binding(values, {})
    ask = job.spec.ask
    if "tasks" not in left and ask.tasks >= held and "tasks_per_node" not in left:
        left["tasks"] = max(ask.tasks, held)
    if left.get("distribution", "").partition(":")[0] != "arbitrary":
        left.pop("nodes_required", None)
    return left


# -- one step


def _step_run() -> type[StepRun]:
    """Return what stays with a step; loaded while the cluster looks for a place."""
    from spur_cli.slurm.launch import StepRun

    return StepRun


def _dial(session: Session) -> Dial:
    """Return how the agent of this host is reached, having loaded what stays with a step."""
    from spur_cli.slurm.dialling import dial_agent

    return partial(dial_agent, session)


def _step(
    session: Session,
    allocation: Allocation,
    values: dict[str, Any],
    tasks: Tasks,
    signals: Signals,
) -> int:
    """Start a step and stay with it until it ends; return its exit status."""
    job, words = allocation.job, tasks.words
    if not allocation.is_ours and job.state is not JobState.RUNNING:
        sentence = "Job is pending execution" if job.state is JobState.PENDING else ""
        raise _no_step(job.job_id, sentence or "Job/step already completing or completed")
    plane_size = session.environment.get("SLURM_DIST_PLANESIZE", "")
    nodes_from = "--nodes" if tasks.names_nodes else "SLURM_JOB_NUM_NODES"
    wish = step_wish(values, len(job.shares), plane_size=plane_size, nodes_from=nodes_from)
    if not allocation.is_ours:
        for warning in wish.warnings:
            sys.stderr.write(f"{warning}\n")
    name = values["name"] if "name" in values else os.path.basename(words[0])
    if allocation.is_ours:
        name = os.path.basename(words[0])
    started = _start(session, job, wish.ask, values, name, signals)
    return _step_run()(
        session=session,
        job=job,
        step=started.step,
        key=started.key,
        values=values,
        tasks=tasks,
        signals=signals,
        is_ours=allocation.is_ours,
        staying=allocation.staying,
    ).stay()


def _start(
    session: Session,
    job: JobView,
    ask: StepAsk,
    values: dict[str, Any],
    name: str,
    signals: Signals,
) -> _Started:
    """Ask for the step until it is there. Raises: SlurmError when it will never be."""
    key = os.urandom(KEY_SIZE)
    plain = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:256]
    run = own_run(session.environment, job.job_id)
    request = StartStep(job.job_id, plain, ask, values.get("time_limit_s", 0), key, run)
    begun = time.monotonic()
    pause_s = FIRST_RETRY_S
    told = ""
    while True:
        answer = session.ask(request, StepAccepted, held_with=signals)
        if not isinstance(answer, Rejection):
            if told:
                sys.stderr.write(f"srun: Step created for job {job.job_id}\n")
            return _Started(_view(session, job.job_id, answer.step_id), key)
        waited_s = time.monotonic() - begun
        immediate_s = values.get("immediate_s")
        is_late = immediate_s is not None and waited_s >= immediate_s
        if answer.code != "step-busy" or is_late:
            raise _no_step(job.job_id, sentence_of(answer))
        if waited_s >= QUIET_BUSY_S and immediate_s is None:
            again = "still" if told else "temporarily"
            if told != "still" and not values.get("quiet"):
                sys.stderr.write(
                    f"srun: Job {job.job_id} step creation {again} disabled, retrying "
                    f"({sentence_of(answer)})\n"
                )
            told = again
        if signals.wait(pause_s):
            raise SlurmError(f"srun: Cancelled pending step for job {job.job_id}", status=1)
        pause_s = min(pause_s * 1.5, LONGEST_RETRY_S)


def own_run(environment: Mapping[str, str], job_id: int) -> int | None:
    """Return the run of this job that this command is a part of; None when it is of none."""
    is_inside = "SLURMD_NODENAME" in environment and environment.get("SLURM_JOB_ID") == str(job_id)
    restarts = environment.get("SLURM_RESTART_COUNT", "0")
    return int(restarts) if is_inside and restarts.isdigit() else None


def _view(session: Session, job_id: JobId, step_id: int) -> StepView:
    page = session.ask(QuerySteps((job_id,), JobId(0), 1000), StepPage)
    for row in () if isinstance(page, Rejection) else page.rows:
        if row.step_id == step_id:
            return row
    raise _no_step(job_id, "Job/step already completing or completed")


def _no_step(job_id: int, sentence: str) -> SlurmError:
    return SlurmError(error_line("srun", f"Unable to create step for job {job_id}: {sentence}"))
