"""`salloc`: an allocation that lasts as long as a command or a shell."""

from __future__ import annotations

import os
import pwd
import sys
import time
from functools import partial
from typing import Any

from spur.slurm.allocenv import salloc_environment
from spur.slurm.layers import Layer
from spur.slurm.submission import Submission, merge, submission_of
from spur.slurm.wording import SlurmError, error_line
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist
from spur.wire.cluster import ConfigInfo, ShowConfig
from spur_cli.registry import Command
from spur_cli.slurm.allocation import Allocation, obtain, release
from spur_cli.slurm.dialling import dial_agent
from spur_cli.slurm.holding import Foreground, Holding
from spur_cli.slurm.people import LocalCalendar, user_name
from spur_cli.slurm.session import Session, guarded
from spur_cli.slurm.signals import Signals
from spur_cli.slurm.submitting import here, with_node_files

__all__ = ["run"]

SYNTAX_STATUS = 255

JOB_NAME = "interactive"
"""Of an allocation that nobody gave a name."""

BELL_AFTER_S = 10
"""An allocation that took longer is told by the terminal's bell. Source: salloc(1) --bell."""


def run(arguments: list[str], command: Command) -> int:
    """Obtain an allocation, run a command, give it back; return the command's exit status."""
    return guarded("salloc", lambda session: _salloc(session, arguments))


def _salloc(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments, status=SYNTAX_STATUS, stops_at_word=True)
    if session.shows_help(line):
        return 0
    environment = session.environment_options()
    values = environment.values | line.values
    if values.get("directory"):
        _enter(values["directory"])
    foreground = Foreground(is_wanted=not values.get("no_shell"))
    submission = _submission(environment, line)
    is_quiet = bool(values.get("quiet"))
    signals = Signals()
    asked_s = time.monotonic()
    allocation = obtain(
        session,
        submission,
        signals,
        immediate_s=values.get("immediate_s"),
        is_quiet=is_quiet,
        meanwhile=lambda: partial(dial_agent, session),
    )
    staying = allocation.staying
    config = session.ask(ShowConfig(), ConfigInfo)
    _announce(allocation, config, is_quiet=is_quiet)
    _ring(values, time.monotonic() - asked_s)
    if values.get("no_shell"):
        if staying is not None:
            staying.leave()
        return 0
    holding = Holding(session, allocation, signals, foreground, values)
    status = holding.run(words or [_shell()], _variables(allocation, submission, config))
    if not holding.is_revoked:
        if not is_quiet:
            _say(f"Relinquishing job allocation {allocation.job.job_id}")
        release(session, allocation.job.job_id, status.reported)
    if staying is not None:
        staying.leave()
    return status.own


def _submission(environment: Layer, line: Layer) -> Submission:
    settings = merge(Layer({}, {}), environment, line, "salloc")
    settings = settings._replace(values=with_node_files(settings.values, "salloc"))
    submission = submission_of(
        settings,
        program="salloc",
        default_name=JOB_NAME,
        argv=(),
        working_directory=os.fsencode(os.getcwd()),
        calendar=LocalCalendar(),
        place=here(),
        batch=False,
    )
    for warning in submission.warnings:
        sys.stderr.write(f"{warning}\n")
    return submission


def _enter(directory: str) -> None:
    """Go where --chdir says. Raises: SlurmError."""
    try:
        os.chdir(directory)
    except OSError as error:
        sentence = f"chdir({directory}): {error.strerror}"
        raise SlurmError(error_line("salloc", sentence)) from error


def _announce(allocation: Allocation, config: ConfigInfo | Rejection, *, is_quiet: bool) -> None:
    """Say that the allocation is there.

    Where a prolog goes before each allocation, Slurm says when its nodes are done with it; ours are
    ready as soon as they are given.
    """
    if is_quiet:
        return
    job = allocation.job
    _say(f"Granted job allocation {job.job_id}")
    flags = () if isinstance(config, Rejection) else _prolog_flags(config)
    if {"alloc", "contain"} & set(flags):
        nodes = format_hostlist([share.node for share in job.shares])
        _say("Waiting for resource configuration")
        _say(f"Nodes {nodes} are ready for job")


def _prolog_flags(config: ConfigInfo) -> list[str]:
    for parameter in config.parameters:
        if parameter.name.lower() == "prologflags":
            return parameter.value.lower().split(",")
    return []


def _ring(values: dict[str, Any], waited_s: float) -> None:
    is_wanted = values.get("bell") or (waited_s > BELL_AFTER_S and not values.get("no_bell"))
    if is_wanted and sys.stdout.isatty():
        sys.stdout.write("\a")
        sys.stdout.flush()


def _variables(
    allocation: Allocation, submission: Submission, config: ConfigInfo | Rejection
) -> dict[str, str]:
    """Return what the command finds beside what we found."""
    settings = None if isinstance(config, Rejection) else config.settings
    own = salloc_environment(
        allocation.job,
        submission.spec,
        dict(submission.text.options),
        cluster="" if settings is None else settings.name,
        user=user_name(allocation.job.uid),
    )
    own["SLURM_SUBMIT_DIR"] = os.getcwd()
    own["SLURM_SUBMIT_HOST"] = os.uname().nodename
    return own


def _shell() -> str:
    """Return the shell of the one who calls."""
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return os.environ.get("SHELL", "/bin/sh")


def _say(text: str) -> None:
    sys.stderr.write(f"salloc: {text}\n")
