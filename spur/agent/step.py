"""Running a node's tasks of a step.

What they execute comes over the stream, from the srun that started the step; only then is the
attempt claimed. Their input and output are files, or go over the stream.
"""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from spur.agent.attempt import Attempt
from spur.agent.control import Kill
from spur.agent.cpus import bound_cpus
from spur.agent.ending import (
    LAUNCH_FAILED_SIGNAL,
    cancelled_sentence,
    exit_of,
    spoken_by,
)
from spur.agent.guests import Audience
from spur.agent.identity import Unlaunchable, User, acting_as, find_user
from spur.agent.launch import limits_of, text_of
from spur.agent.manifest import MANIFEST, AttemptName, decode_manifest, directory_name
from spur.agent.outputs import OpenFiles, close_files, open_input, open_output, opening
from spur.agent.program import Setup, execute, prepare
from spur.agent.stream import Stream, Told
from spur.agent.taskpipes import InputPipe, OutputPipe
from spur.agent.tending import Tending
from spur.agent.warning import EarlyWarning
from spur.slurm.filenames import FileFacts, expand_pattern
from spur.slurm.gpubind import bound_gpus
from spur.slurm.gpuenv import gpu_variables
from spur.slurm.jobenv import decode_environment
from spur.slurm.rlimits import is_limit
from spur.slurm.stepenv import task_environment
from spur.values.errors import OperatorFault
from spur.values.states import JobState
from spur.values.steps import tasks_on
from spur.values.tres import gpu_indexes
from spur.wire.agents import LaunchOrder, LaunchStepOrder
from spur.wire.streams import (
    EVERY_TASK,
    STEP_ITSELF,
    Finished,
    Input,
    Output,
    Program,
    Resize,
    Signal,
    TaskEnded,
    ToStep,
)

__all__ = ["run_step"]

PROGRAM_WAIT_S = 60
"""How long the one who started a step may take to say what it executes."""

LINGER_S = 600
"""How long one who is attached may leave the rest of the output unread."""

EPILOG_S = 5.0
"""How long what follows a task may take."""

ENDED_LINGER_S = 10.0
"""How long one whose connection broke off may take to come back to a step that was ended."""

NO_FILES = "Slurmd could not connect IO"
"""Why tasks were not launched whose files could not be opened, in Slurm's words."""


def run_step(attempt: Attempt, order: LaunchStepOrder) -> None:
    """Run the tasks of a step on this node. Raises: NotOurs, OSError."""
    step = _Step(attempt, order)
    step.tending.run()


class _Ends(NamedTuple):
    """Descriptors of one task: what it gets, and what the supervisor keeps (-1: nothing)."""

    files: OpenFiles
    stdin: int
    stdout: int
    stderr: int
    terminal: bool


class _Step:
    def __init__(self, attempt: Attempt, order: LaunchStepOrder) -> None:
        self.attempt, self.order = attempt, order
        place = next(i for i, share in enumerate(order.shares) if share.node == order.node)
        self.place, self.share = place, order.shares[place]
        self.ranks = tasks_on(order.tasks, place, dealing=order.dealing, plane=order.plane)
        self.words = spoken_by(bool(attempt.manifest.site.host_name), order.node)
        self.tasks: dict[int, int] = {}
        """Rank of each process."""
        self.epilogs: dict[int, Setup] = {}
        """What runs after a task, by its rank."""
        self.ends: dict[int, Callable[[], None]] = {}
        """By process of what runs after a task: how it is ended when it takes too long."""
        self.user: User | None = None
        self.statuses: list[int] = []
        self.inputs: dict[int, InputPipe] = {}
        self.outputs: list[OutputPipe] = []
        self.terminal = -1
        """Our end of the first task's terminal; it lives as long as we do."""
        self.program: Program | None = None
        self.why_not = "nobody said what the step executes"
        self.settled = False
        self.finished = False
        self.tending = tending = Tending(attempt.directory, terms_all=True)
        tending.holds = True
        tending.on_exit = self._exited
        tending.on_kill = self._killed
        tending.on_notice = lambda text: self._say(f"{self.words}{text}")
        tending.lingers = self._lingers
        tending.alarm(PROGRAM_WAIT_S, self._give_up)
        self.stream = Stream(tending, attempt.directory, order.node)
        self.stream.hear = self._hear
        self.stream.drained = self._resume
        self.audience = Audience(tending, order.node, self._hear_guest)
        self.stream.overheard = self.audience.say
        tending.on_guest = self.audience.take

    # -- what is heard

    def _hear(self, message: Told) -> None:
        if isinstance(message, Program):
            if self.program is None and self.tending.killed is None:
                self.program = message
                self._begin(message)
        elif isinstance(message, Signal):
            self._signal(message.signal)
        elif isinstance(message, Resize):
            if self.terminal >= 0:
                termios.tcsetwinsize(self.terminal, (message.rows, message.columns))
        elif isinstance(message, Input):
            for rank, pipe in self.inputs.items():
                if message.task in (EVERY_TASK, rank):
                    pipe.put(message.data)

    def _hear_guest(self, message: ToStep) -> None:
        """Take what one who listens may say: input."""
        if isinstance(message, Input):
            self._hear(message)

    def _give_up(self) -> None:
        self.tending.holds = False

    def _killed(self, kill: Kill) -> None:
        if self.settled:
            self.stream.let_go()
            return
        self.stream.hurry(ENDED_LINGER_S)
        what = f"STEP {self.order.job_id}.{self.order.step_id}"
        sentence = cancelled_sentence(what, self.order.node, kill.state)
        if sentence and self.place == 0 and self.tasks:
            self._say(f"{self.words}{sentence}")

    def _say(self, sentence: str) -> None:
        data = f"{sentence}\n".encode("utf-8", "surrogateescape")
        self.stream.say(Output(STEP_ITSELF, 2, data))

    # -- the beginning

    def _begin(self, program: Program) -> None:
        """Claim the attempt and start its tasks."""
        self.tending.alarm(None, self._give_up)
        self.tending.holds = False
        try:
            user = find_user(self.order.uid, self.order.gid)
        except Unlaunchable as error:
            self.why_not = str(error)
            return
        self.attempt.claim()
        try:
            ends = self._open(program, user)
        except OSError as error:
            self.attempt.settle(signal=LAUNCH_FAILED_SIGNAL, why=f"a file of the step: {error}")
            self.settled, self.why_not = True, NO_FILES
            return
        self.why_not = ""
        job = self._job()
        setup, said = prepare(self._setup(program, job), user, tasks=len(self.ranks))
        for sentence in said:
            self._say(sentence)
        self.user = user
        try:
            for place, (rank, end) in enumerate(zip(self.ranks, ends, strict=True)):
                own = setup.environment | task_environment(self.order, rank, user=user.name)
                if program.gpu_binding:
                    mask = bound_gpus(program.gpu_binding, self.share.gpus, place)
                    _change(own, _gpu_environment(mask, job))
                words = program.several[place] if program.several else program.argv
                path = words[0] if program.several else setup.path
                self._start(rank, end, setup._replace(environment=own, argv=words, path=path), user)
        except OSError as error:
            self._say(f"{self.words}fork: {os.strerror(error.errno or 0)}")
            self.statuses.append(LAUNCH_FAILED_SIGNAL)
            self.tending.kill(Kill(JobState.FAILED, 0))
        self.attempt.say_claimed()
        if job is not None:
            self._wait_for_warning(job)

    def _wait_for_warning(self, job: LaunchOrder) -> None:
        """Send the tasks the signal that the job wants before its limit."""
        options = dict(text_of(job).options)
        warning = EarlyWarning(self.tending, options, to_script=False, send=self._signal)
        steered_ns = self.tending.limit_ns
        warning.expect(job.limit_ns if steered_ns is None else steered_ns)

    def _signal(self, number: int) -> None:
        if not self.settled:
            self.tending.signal_mains(number)

    def _open(self, program: Program, user: User) -> list[_Ends]:
        """Open files and pipes of all tasks. Raises: OSError; nothing is left open then."""
        ends: list[_Ends] = []
        with opening(user, program.umask) as opened:
            for rank in self.ranks:
                if program.pty is not None and rank == 0:
                    ends.append(_open_terminal(program.pty, opened))
                    self.terminal = os.dup(ends[-1].stdin)
                    continue
                if program.pty is not None:
                    # The terminal is the first task's alone.
                    program = replace(program, **_NOWHERE)
                names = FileFacts(
                    job_id=self.order.job_id,
                    array_id=self.order.job_id,
                    array_task=None,
                    step=self.order.step_id,
                    node=self.order.node,
                    node_place=self.place,
                    task=rank,
                    user=user.name,
                    job_name=self.order.name,
                )
                ends.append(_open_task(program, names, opened))
        return ends

    def _start(self, rank: int, end: _Ends, setup: Setup, user: User) -> None:
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            execute(setup, end.files, user, parent, terminal=end.terminal)
        close_files(end.files)
        self.tasks[pid] = rank
        if self.program is not None and self.program.task_epilog:
            path = self.program.task_epilog
            self.epilogs[rank] = setup._replace(path=path, argv=(path,), prolog=b"")
        self.tending.mains.add(pid)
        if end.stdin >= 0:
            last = b"\x04" if end.terminal else b""
            self.inputs[rank] = InputPipe(self.tending, end.stdin, self._balance, end=last)
        for fd, number in ((1, end.stdout), (2, end.stderr)):
            if number >= 0:
                self.outputs.append(OutputPipe(self.tending, self.stream, rank, fd, number))

    def _balance(self) -> None:
        """Take no more input than the tasks can."""
        self.stream.pause(any(pipe.is_full for pipe in self.inputs.values()))

    def _resume(self) -> None:
        for pipe in self.outputs:
            pipe.resume()

    # -- what a task gets

    def _common_environment(self, program: Program, job: LaunchOrder | None) -> dict[bytes, bytes]:
        """Return what every task of this node finds."""
        submitted = decode_environment(program.environment)
        environment = {name: value for name, value in submitted.items() if not is_limit(name)}
        site = self.attempt.manifest.site
        environment[b"SPUR_SOCKET"] = os.fsencode(site.relay)
        if site.slurm_conf:
            environment[b"SLURM_CONF"] = os.fsencode(site.slurm_conf)
        count = self.share.gpus.bit_count()
        found: dict[bytes, bytes | None] = {
            b"SLURM_WORKING_CLUSTER": site.working_cluster.encode() or None,
            b"SLURM_GPUS_ON_NODE": (b"%d" % count) if count else None,
        }
        found |= _gpu_environment(self.share.gpus, job)
        if job is not None:
            found[b"SLURM_TOPOLOGY_ADDR"] = job.topology.encode()
            found[b"SLURM_TOPOLOGY_ADDR_PATTERN"] = job.topology_pattern.encode()
        _change(environment, found)
        return environment

    def _job(self) -> LaunchOrder | None:
        """Return the order of the job that the step runs in, which lies beside this attempt's."""
        order = self.order
        name = AttemptName(order.node, order.job_id, order.run, None, order.attempt)
        spool = os.path.dirname(self.attempt.directory)
        with contextlib.suppress(OSError, OperatorFault):
            with open(os.path.join(spool, directory_name(name), MANIFEST), "rb") as file:
                job = decode_manifest(file.read()).order
            return job if isinstance(job, LaunchOrder) else None
        return None

    def _setup(self, program: Program, job: LaunchOrder | None) -> Setup:
        """Return what all tasks have in common."""
        return Setup(
            path=program.argv[0],
            argv=program.argv,
            environment=self._common_environment(program, job),
            directory=program.working_directory,
            umask=program.umask,
            limits=(*program.limits, *self._limits(program, job)),
            cpus=bound_cpus(self.share.cpu_set, "" if job is None else job.task_plugin),
            words=self.words,
            prolog=program.task_prolog,
        )

    def _limits(
        self, program: Program, job: LaunchOrder | None
    ) -> tuple[tuple[int, int, int], ...]:
        """Return the limits of the shell that called srun, as far as they go along."""
        site = "ALL" if job is None else job.propagated
        return limits_of(decode_environment(program.environment), site)

    # -- the end

    def _exited(self, pid: int, status: int) -> None:
        rank = self.tasks.pop(pid, None)
        if rank is None:
            self.tending.alarm(None, self.ends.pop(pid))
            if status:
                self._say(f"{self.words}TaskEpilog failed status={status}")
            return
        self.statuses.append(status)
        exit_code, number, core = exit_of(status)
        self.stream.say(TaskEnded(rank, exit_code, number, core, False))
        pipe = self.inputs.pop(rank, None)
        if pipe is not None:
            pipe.close()
            self._balance()
        if status and self.program is not None and self.program.kill_on_bad_exit:
            self.tending.kill(Kill(JobState.CANCELLED, self.order.kill_wait_s))
        self._run_epilog(rank)

    def _run_epilog(self, rank: int) -> None:
        """Run what follows a task; what it writes nobody sees."""
        setup, user = self.epilogs.pop(rank, None), self.user
        if setup is None or user is None or self.tending.killed is not None:
            return
        with acting_as(user):
            is_there = os.access(setup.path, os.R_OK | os.X_OK, effective_ids=True)
        if not is_there:
            name = os.fsdecode(setup.path)
            self._say(f"{self.words}Could not run user task_epilog [{name}]: access denied")
            self._say(f"{self.words}TaskEpilog failed status=-1")
            return
        nothing = os.open(os.devnull, os.O_RDWR)
        parent = os.getpid()
        with contextlib.suppress(OSError):
            pid = os.fork()
            if not pid:
                execute(setup, OpenFiles(nothing, nothing, nothing), user, parent)
            self.tending.mains.add(pid)
            self.ends[pid] = partial(_end, pid)
            self.tending.alarm(EPILOG_S, self.ends[pid])
        os.close(nothing)

    def _lingers(self) -> bool:
        """Once nothing lives: settle at once, then hand over what is left of the output."""
        if not self.settled:
            self._settle()
        if any(pipe.is_open for pipe in self.outputs):
            return True
        if not self.finished:
            self.finished = True
            self.stream.say(Finished(self.why_not))
        return self.stream.is_owed or self.audience.is_owed

    def _waited_enough(self) -> None:
        self.stream.let_go()
        self.audience.close()

    def _settle(self) -> None:
        self.settled = True
        self.tending.alarm(LINGER_S, self._waited_enough)
        if self.why_not:
            self.attempt.claim()
            self.attempt.settle(void=True, why=self.why_not)
            return
        worst = next((status for status in self.statuses if os.WIFSIGNALED(status)), None)
        exit_code, number, _ = exit_of(max(self.statuses) if worst is None else worst)
        self.attempt.settle(
            exit_code=exit_code, signal=number, ended_boot_ns=self.tending.ended_boot_ns
        )


def _end(pid: int) -> None:
    """End a process, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _gpu_environment(gpus: int, job: LaunchOrder | None) -> dict[bytes, bytes | None]:
    """Return what tells a task of its GPUs; None for what must not be found."""
    indexes = ",".join(map(str, gpu_indexes(gpus))).encode()
    return {
        b"SLURM_STEP_GPUS": indexes or None,
        **gpu_variables(gpus, () if job is None else job.block.gres),
    }


def _change(environment: dict[bytes, bytes], changes: Mapping[bytes, bytes | None]) -> None:
    """Set variables, and take away those without a value."""
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


_NOWHERE = {
    "stdin_path": b"/dev/null",
    "stdout_path": b"/dev/null",
    "stderr_path": b"/dev/null",
}


def _open_terminal(size: tuple[int, int], opened: list[int]) -> _Ends:
    """Return a terminal for a task, which is all three of its files."""
    ours, theirs = os.openpty()
    opened += [ours, theirs]
    termios.tcsetwinsize(theirs, size)
    copy = os.dup(ours)  # one is read, the other written to, and each is closed by itself
    opened.append(copy)
    return _Ends(OpenFiles(theirs, theirs, theirs), copy, ours, -1, terminal=True)


def _unbuffered() -> tuple[int, int]:
    """Return the ends of a terminal that changes nothing: C libraries keep nothing back for it."""
    ours, theirs = os.openpty()
    modes = termios.tcgetattr(theirs)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    return ours, theirs


def _open_task(program: Program, names: FileFacts, opened: list[int]) -> _Ends:
    """Return the files and pipes of one task. Raises: OSError."""
    directory = program.working_directory
    stdin = stdout = stderr = -1
    if program.stdin_path:
        their_in = open_input(directory, expand_pattern(program.stdin_path, names))
        opened.append(their_in)
    else:
        their_in, stdin = os.pipe()
        opened += [their_in, stdin]
    if program.stdout_path:
        name = expand_pattern(program.stdout_path, names)
        their_out = open_output(directory, name, program.appends)
        opened.append(their_out)
    else:
        stdout, their_out = _unbuffered() if program.is_unbuffered else os.pipe()
        opened += [stdout, their_out]
    if program.stderr_path:
        name = expand_pattern(program.stderr_path, names)
        their_err = open_output(directory, name, program.appends)
        opened.append(their_err)
    elif program.stdout_path:
        their_err = their_out
    else:
        stderr, their_err = os.pipe()
        opened += [stderr, their_err]
    return _Ends(OpenFiles(their_in, their_out, their_err), stdin, stdout, stderr, terminal=False)
