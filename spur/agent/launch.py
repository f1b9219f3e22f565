"""What a batch script's process is made of: variables, files, limits, CPUs; and becoming it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import termios
from typing import NamedTuple, NoReturn

from spur.agent.cpus import bound_cpus
from spur.agent.identity import User, acting_as, become
from spur.agent.linux import die_with_parent, restore_signals
from spur.agent.manifest import Site
from spur.agent.outputs import Files, OpenFiles
from spur.slurm.filenames import FileFacts, default_output, expand_pattern
from spur.slurm.jobenv import KEPT, BatchFacts, batch_environment, decode_environment
from spur.values.jobspec import JobText, decode_text
from spur.wire.agents import LaunchOrder

__all__ = [
    "LIMITS",
    "Setup",
    "batch_files",
    "batch_setup",
    "cannot_enter",
    "enter",
    "execute",
    "text_of",
    "user_environment",
]

LIMITS: dict[bytes, int] = {
    b"SLURM_RLIMIT_AS": resource.RLIMIT_AS,
    b"SLURM_RLIMIT_CORE": resource.RLIMIT_CORE,
    b"SLURM_RLIMIT_CPU": resource.RLIMIT_CPU,
    b"SLURM_RLIMIT_DATA": resource.RLIMIT_DATA,
    b"SLURM_RLIMIT_FSIZE": resource.RLIMIT_FSIZE,
    b"SLURM_RLIMIT_MEMLOCK": resource.RLIMIT_MEMLOCK,
    b"SLURM_RLIMIT_NOFILE": resource.RLIMIT_NOFILE,
    b"SLURM_RLIMIT_NPROC": resource.RLIMIT_NPROC,
    b"SLURM_RLIMIT_RSS": resource.RLIMIT_RSS,
    b"SLURM_RLIMIT_STACK": resource.RLIMIT_STACK,
}
"""Variables that carry the submitter's soft limits to the job. Source: sbatch(1) --propagate."""

USER_ENVIRONMENT_S = 10
"""Seconds that a login shell may take to say which variables it sets."""

_NO_TEXT = JobText(b"/", (b"",), b"", b"", b"", b"")


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


def text_of(order: LaunchOrder) -> JobText:
    """Return the text of the submission; something harmless when it gave none."""
    return decode_text(order.text) if order.text else _NO_TEXT


def batch_files(order: LaunchOrder, text: JobText, user: User) -> Files:
    """Return the names of a batch job's files."""
    facts = FileFacts(
        job_id=order.job_id,
        array_id=order.array_id or order.job_id,
        array_task=order.task,
        step=None,
        node=order.node,
        node_place=0,
        task=0,
        user=user.name,
        job_name=order.spec.name,
    )
    output = text.stdout_path or default_output(order.task is not None)
    return Files(
        directory=text.working_directory,
        stdin=expand_pattern(text.stdin_path or b"/dev/null", facts),
        stdout=expand_pattern(output, facts),
        stderr=expand_pattern(text.stderr_path, facts),
        appends=_appends(dict(text.options).get("open-mode", b""), order.file_append),
        umask=_umask(decode_environment(order.environment)),
    )


def batch_setup(
    order: LaunchOrder, site: Site, text: JobText, user: User, script: bytes, words: str
) -> Setup:
    """Return the program of a batch script that lies at a path."""
    submitted = decode_environment(order.environment)
    umask, limits = _umask(submitted), _limits(submitted)
    environment = {}
    if submitted.get(b"SLURM_GET_USER_ENV"):
        environment = user_environment(user)
    environment |= {n: v for n, v in submitted.items() if n not in LIMITS}
    for name, value in KEPT.items():
        environment.setdefault(name, value)
    facts = BatchFacts(
        job_id=order.job_id,
        array_id=order.array_id,
        task=order.task,
        array_count=order.array_count,
        array_min=order.array_min,
        array_max=order.array_max,
        array_step=order.array_step,
        restarts=order.run,
        uid=order.uid,
        gid=order.gid,
        user=user.name,
        spec=order.spec,
        partition=order.partition,
        options=dict(text.options),
        nodes=tuple(share.node for share in order.shares),
        cpus=tuple(share.cpus for share in order.shares),
        gpus=order.shares[0].gpus,
        pools=order.block.gres,
        default_memory_per=order.default_memory_per,
        default_memory_mib=order.default_memory_mib,
        cluster=order.cluster_name,
        topology=order.topology,
        topology_pattern=order.topology_pattern,
        working_cluster=site.working_cluster,
    )
    for name, given in batch_environment(facts).items():
        if given is None:
            environment.pop(name, None)
        else:
            environment[name] = given
    if site.slurm_conf:
        environment[b"SLURM_CONF"] = os.fsencode(site.slurm_conf)
    else:
        environment[b"SPUR_SOCKET"] = os.fsencode(site.relay)
    return Setup(
        path=script,
        argv=(script, *text.argv[1:]),
        environment=environment,
        directory=text.working_directory,
        umask=umask,
        limits=limits,
        cpus=bound_cpus(order.shares[0].cpu_set, order.task_plugin),
        words=words,
    )


def _appends(open_mode: bytes, default: bool) -> bool:
    return open_mode[:1].lower() == b"a" if open_mode else default


def _umask(environment: dict[bytes, bytes]) -> int:
    text = environment.get(b"SLURM_UMASK", b"")
    try:
        return int(text, 8) & 0o777
    except ValueError:
        return 0o022


def _limits(environment: dict[bytes, bytes]) -> tuple[tuple[int, int, int], ...]:
    """Return the soft limits that the submission carries."""
    found = []
    for name, number in LIMITS.items():
        with contextlib.suppress(KeyError, ValueError):
            soft = int(environment[name])
            found.append((number, -1 if soft >= 1 << 63 else soft, -1))
    return tuple(found)


def user_environment(user: User) -> dict[bytes, bytes]:
    """Return the variables that a login of the user sets; empty when it takes too long.

    Source: sbatch(1) --get-user-env.
    """
    import subprocess  # few jobs need it, and it is large

    login = ["su", "-", user.name, "-c", "env -0"]
    if os.geteuid() != 0:
        login = [user.shell, "-l", "-c", "env -0"]
    try:
        run = subprocess.run(
            login,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=USER_ENVIRONMENT_S,
            env={"HOME": user.home, "USER": user.name, "SHELL": user.shell, "PATH": os.defpath},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return decode_environment(run.stdout)


# -- in the process that becomes the program


def execute(
    setup: Setup, files: OpenFiles, user: User, parent: int, *, terminal: bool = False
) -> NoReturn:
    """Turn this process, a fresh child of the supervisor, into a program.

    With `terminal`, its input is the terminal that controls it. What fails is said on the program's
    stderr, and the process exits with the error's number.
    """
    number = errno.EIO
    path = setup.path
    try:
        _set_up(setup, files, user, parent)
        if terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        path = _found(setup)
        os.execve(path, setup.argv, setup.environment)
    except OSError as error:
        number = error.errno or number
        _complain(f"{setup.words}execve(): {_unstartable(path, error)}")
    finally:
        os._exit(number)


def _found(setup: Setup) -> bytes:
    """Return where the program is; a bare name is looked for in its own PATH."""
    name = setup.path
    if b"/" not in name:
        for folder in setup.environment.get(b"PATH", b"").split(b":"):
            path = os.path.join(folder or b".", name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return name


def _set_up(setup: Setup, files: OpenFiles, user: User, parent: int) -> None:
    os.setsid()
    restore_signals()
    for place, number in enumerate(files):
        os.dup2(number, place)
    for number, soft, hard in setup.limits:
        _limit(number, soft, hard)
    become(user)
    die_with_parent(parent)
    if setup.cpus:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, setup.cpus)
    os.umask(setup.umask)
    setup.environment[b"SLURM_TASK_PID"] = b"%d" % os.getpid()
    enter(setup.directory, setup.words)
    _make_temporary(setup)


def _limit(number: int, soft: int, hard: int) -> None:
    """Set a limit as near to what is wanted as this process may."""
    now = resource.getrlimit(number)[1]
    soft = resource.RLIM_INFINITY if soft < 0 else soft
    hard = now if hard < 0 else hard
    with contextlib.suppress(OSError, ValueError):
        if os.geteuid() == 0 and _exceeds(soft, hard):
            hard = soft
        resource.setrlimit(number, (hard if _exceeds(soft, hard) else soft, hard))


def _exceeds(soft: int, hard: int) -> bool:
    if hard == resource.RLIM_INFINITY:
        return False
    return soft == resource.RLIM_INFINITY or soft > hard


def enter(directory: bytes, words: str) -> None:
    """Go to the working directory, or to /tmp and say so on stderr."""
    try:
        os.chdir(directory)
    except OSError as error:
        _complain(_homeless(directory, error, words))
        os.chdir("/tmp")


def cannot_enter(directory: bytes, words: str, user: User) -> str:
    """Return the sentence about a working directory that the user can't enter; else nothing.

    Slurm's step daemon says it too, before the task itself does.
    """
    try:
        with acting_as(user):
            before = os.open(".", os.O_PATH | os.O_DIRECTORY)
            try:
                os.chdir(directory)
                os.fchdir(before)
            finally:
                os.close(before)
    except OSError as error:
        return _homeless(directory, error, words)
    return ""


def _homeless(directory: bytes, error: OSError, words: str) -> str:
    name, reason = os.fsdecode(directory), os.strerror(error.errno or 0)
    return f"{words}couldn't chdir to `{name}': {reason}: going to /tmp instead"


def _make_temporary(setup: Setup) -> None:
    """Make the directory that TMPDIR names."""
    path = setup.environment.get(b"TMPDIR")
    if path is None:
        return
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        name = os.fsdecode(path)
        reason = os.strerror(error.errno or 0)
        _complain(f"{setup.words}Unable to create TMPDIR [{name}]: {reason}")
        _complain(f"{setup.words}Setting TMPDIR to /tmp")
        setup.environment[b"TMPDIR"] = b"/tmp"


def _unstartable(path: bytes, error: OSError) -> str:
    """Return why a program could not be started; a missing one may be its interpreter."""
    name, reason = os.fsdecode(path), os.strerror(error.errno or 0)
    if error.errno == errno.ENOENT:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            line = file.readline(256)
            if line.startswith(b"#!"):
                name = f"bad interpreter({os.fsdecode(line[2:].split()[0])})"
    return f"{name}: {reason}"


def _complain(sentence: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{sentence}\n".encode("utf-8", "surrogateescape"))
