"""Turning a process into a user's program.

What can be done before the process is forked is done in the supervisor (`prepare`). The fresh child
then does little more than give up its rights (`execute`): each page that it touches is copied, and
there is one such child for every job.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import termios
from typing import NamedTuple, NoReturn

from spur.agent.identity import User, acting_as
from spur.agent.linux import die_with_parent
from spur.agent.outputs import OpenFiles

__all__ = ["Setup", "execute", "prepare"]


class Setup(NamedTuple):
    """What to execute, and how the process is set up for it."""

    path: bytes
    argv: tuple[bytes, ...]
    environment: dict[bytes, bytes]
    directory: bytes
    umask: int
    limits: tuple[tuple[int, int, int], ...]
    """Number of a resource limit, soft, hard; a negative soft limit is none, a negative hard one
    is left as it is."""
    cpus: frozenset[int]
    """To run on; empty for any."""
    words: str
    """What sentences about the process begin with."""
    prolog: bytes = b""
    """What runs in the process before the program; empty for nothing."""


def prepare(setup: Setup, user: User, *, tasks: int = 1) -> tuple[Setup, list[str]]:
    """Do in this process what the program is to inherit: directory, mask and CPUs.

    Return the setup with what was found out, and the sentences that belong on the program's stderr.
    That the directory is not there Slurm says itself, and then by each of the tasks.
    """
    said: list[str] = []
    with acting_as(user):
        try:
            os.chdir(setup.directory)
        except OSError as error:
            name, reason = os.fsdecode(setup.directory), os.strerror(error.errno or 0)
            sentence = f"couldn't chdir to `{name}': {reason}: going to /tmp instead"
            said += [sentence] * (1 + tasks)
            os.chdir("/tmp")
        said += _make_temporary(setup.environment)
        path = _found(setup)
    os.umask(setup.umask)
    if setup.cpus:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, setup.cpus)
    limits = tuple(_within(*limit) for limit in setup.limits)
    return setup._replace(path=path, limits=limits), [setup.words + text for text in said]


def _make_temporary(environment: dict[bytes, bytes]) -> list[str]:
    """Make the directory that TMPDIR names, and return what is said when it can't be."""
    path = environment.get(b"TMPDIR")
    if path is None:
        return []
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return []
    except OSError as error:
        environment[b"TMPDIR"] = b"/tmp"
        name, reason = os.fsdecode(path), os.strerror(error.errno or 0)
        return [f"Unable to create TMPDIR [{name}]: {reason}", "Setting TMPDIR to /tmp"]
    return []


def _found(setup: Setup) -> bytes:
    """Return where the program is; a bare name is looked for in its own PATH."""
    name = setup.path
    if b"/" not in name:
        for folder in setup.environment.get(b"PATH", b"").split(b":"):
            path = os.path.join(folder or b".", name)
            if os.path.isfile(path) and os.access(path, os.X_OK, effective_ids=True):
                return path
    return name


def _within(number: int, soft: int, hard: int) -> tuple[int, int, int]:
    """Return a limit that this process may set, as near as can be to what is wanted."""
    now = resource.getrlimit(number)[1]
    soft = resource.RLIM_INFINITY if soft < 0 else soft
    hard = now if hard < 0 else hard
    if os.geteuid() != 0 and _exceeds(hard, now):
        hard = now
    if _exceeds(soft, hard):
        if os.geteuid() == 0:
            return number, soft, soft
        return number, hard, hard
    return number, soft, hard


def _exceeds(one: int, other: int) -> bool:
    if other == resource.RLIM_INFINITY:
        return False
    return one == resource.RLIM_INFINITY or one > other


# -- in the child


def execute(
    setup: Setup, files: OpenFiles, user: User, parent: int, *, terminal: bool = False
) -> NoReturn:
    """Turn this process, a fresh child of one that has prepared, into the program.

    With `terminal`, its input is the terminal that controls it. What fails is said on the program's
    stderr, and the process exits with the error's number.
    """
    number = errno.EIO
    try:
        os.setsid()
        os.dup2(files.stdin, 0)
        os.dup2(files.stdout, 1)
        os.dup2(files.stderr, 2)
        for limit, soft, hard in setup.limits:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(limit, (soft, hard))
        if os.geteuid() == 0:
            os.setgroups(user.groups)
            os.setresgid(user.gid, user.gid, user.gid)
            os.setresuid(user.uid, user.uid, user.uid)
        die_with_parent(parent)
        if terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        setup.environment[b"SLURM_TASK_PID"] = b"%d" % os.getpid()
        if setup.prolog:
            from spur.agent.taskprolog import run_prolog  # for the few that have one

            status = run_prolog(setup.prolog, setup.environment, setup.words)
            if status:
                os._exit(status)
        os.execve(_found(setup), setup.argv, setup.environment)
    except OSError as error:
        number = error.errno or number
        sentence = f"{setup.words}execve(): {_unstartable(setup.path, error)}\n"
        with contextlib.suppress(OSError):
            os.write(2, sentence.encode("utf-8", "surrogateescape"))
    finally:
        os._exit(number)


def _unstartable(path: bytes, error: OSError) -> str:
    """Return why a program could not be started; a missing one may be its interpreter."""
    name, reason = os.fsdecode(path), os.strerror(error.errno or 0)
    if error.errno == errno.ENOENT:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            line = file.readline(256)
            if line.startswith(b"#!"):
                name = f"bad interpreter({os.fsdecode(line[2:].split()[0])})"
    return f"{name}: {reason}"
