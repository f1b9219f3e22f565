"""Where the standard input and output of a step's tasks go: here, into files, or into files there.

As Slurm does it: a name without %t, %n and %N is one file for all tasks, which srun itself opens;
a name with one of them is a file for each task, which its node opens.

Source: srun(1), IO REDIRECTION.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from spur.slurm.filenames import FileFacts, expand_pattern
from spur.slurm.wording import SlurmError, error_line
from spur.wire.jobs import JobView
from spur.wire.steps import StepView

__all__ = ["StepFiles", "local_files"]

DEV_NULL = b"/dev/null"

_EACH = re.compile(rb"%\d*[tnN]")
_COMMON = re.compile(rb"%%|%\d*[aAjJsux]")


class StepFiles(NamedTuple):
    """What becomes of input and output."""

    stdin_fd: int | None
    """To read from; None when the tasks get nothing through srun."""
    stdin_task: int | None
    """The only task that gets it; None for all."""
    stdout_fd: int | None
    """To write to; None when it is thrown away, or written there."""
    stdout_task: int | None
    """The only task whose output is written; None for all."""
    stderr_fd: int | None
    stderr_task: int | None
    stdin_pattern: bytes
    """Of `wire.streams.Program`, as the next two."""
    stdout_pattern: bytes
    stderr_pattern: bytes
    appends: bool


class _Way(NamedTuple):
    """What becomes of one of the three."""

    fd: int | None
    task: int | None
    pattern: bytes


def local_files(values: Mapping[str, Any], *, job: JobView, step: StepView, user: str) -> StepFiles:
    """Open what is to be opened here. Raises: SlurmError for a file that cannot be."""
    facts = FileFacts(
        job_id=job.job_id,
        array_id=job.array_id or job.job_id,
        array_task=None if job.tasks is None else job.tasks.first,
        step=step.step_id,
        node="",
        node_place=0,
        task=0,
        user=user,
        job_name=job.spec.name,
    )
    appends = values.get("open_mode", "").lower().startswith("a")
    writing = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if appends else os.O_TRUNC)
    stdin = _way(values.get("stdin", ""), 0, os.O_RDONLY, "stdin", facts)
    stdout = _way(values.get("stdout", ""), 1, writing, "stdout", facts)
    if values.get("stderr") or not values.get("stdout"):
        stderr = _way(values.get("stderr", ""), 2, writing, "stderr", facts)
    else:
        # One file for both, unless stderr has its own.
        stderr = stdout
    return StepFiles(
        stdin.fd,
        stdin.task,
        stdout.fd,
        stdout.task,
        stderr.fd,
        stderr.task,
        stdin.pattern,
        stdout.pattern,
        stderr.pattern if stderr is not stdout else b"",
        appends,
    )


def _way(text: str, fd: int, flags: int, what: str, facts: FileFacts) -> _Way:
    """Return what becomes of one of the three. Raises: SlurmError."""
    if text in ("", "all", "-"):
        return _Way(fd, None, b"")
    if text == "none":
        return _Way(None, None, DEV_NULL)
    if text.isascii() and text.isdigit():
        return _Way(fd, int(text), b"")
    pattern = os.fsencode(text)
    if b"\\" not in pattern and _EACH.search(pattern.replace(b"%%", b"")):
        return _Way(None, None, _COMMON.sub(lambda found: _known(found[0], facts), pattern))
    path = expand_pattern(pattern, facts)
    try:
        return _Way(os.open(path, flags | os.O_CLOEXEC, 0o666), None, b"")
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise SlurmError(error_line("srun", f"Could not open {what} file: {why}")) from error


def _known(piece: bytes, facts: FileFacts) -> bytes:
    """Fill in what is the same for all tasks; two % stay for the one who fills in the rest."""
    return piece if piece == b"%%" else expand_pattern(piece, facts)
