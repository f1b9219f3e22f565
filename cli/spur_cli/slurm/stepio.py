"""What flows between srun and the tasks of its step, and what srun says about them.

One loop waits for everything: the streams of the nodes, standard input, signals, deadlines.

Source: srun(1); transcripts of Slurm 22.05 for the sentences.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import Any

from spur.slurm.wording import SlurmError, error_line
from spur.values.steps import spell_tasks
from spur.wire.declare import Done
from spur.wire.steps import CancelStep, StepView
from spur.wire.streams import (
    CHUNK_BYTES_MAX,
    EVERY_TASK,
    STEP_ITSELF,
    Finished,
    FromStep,
    Input,
    Output,
    Resize,
    Signal,
    TaskEnded,
)
from spur_cli.slurm.nodestream import Lost, NodeStream
from spur_cli.slurm.rawterminal import RawTerminal
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import FORWARDED, Signals
from spur_cli.slurm.staying import Staying
from spur_cli.slurm.stepfiles import StepFiles
from spur_cli.slurm.stepwords import Labels, ended_sentence, exit_status

__all__ = ["StepLoop"]

UNSENT_BYTES_MAX = 512 * 1024
"""Beyond, standard input is not read on until the nodes have taken what they were sent."""

GATHER_S = 0.02
"""How long the end of a task may wait to be told with that of its neighbours."""

WAKING_S = 0.01
"""How soon SIGCONT follows a signal that ends srun."""

TWICE_S = 1.0
"""Between two interrupts that mean the second of them."""

_CANCELLED = b" CANCELLED AT "
"""In the sentence of a node whose step somebody ended."""

_KILL_GRACE_S = 2
"""What Slurm adds to KillWait when it says how long a step may take to end."""

_LEFT_AFTER_S = 30
"""How long beyond that srun stays."""


class StepLoop:
    """Everything that a step's srun waits for, until the step is over."""

    def __init__(
        self,
        *,
        session: Session,
        step: StepView,
        streams: list[NodeStream],
        files: StepFiles,
        signals: Signals,
        values: dict[str, Any],
        staying: Staying | None = None,
        terminal: RawTerminal | None = None,
    ) -> None:
        self._session = session
        self._step = step
        self._streams = streams
        self._files = files
        self._signals = signals
        self._values = values
        self._staying = staying
        self._terminal = terminal
        self._name = f"StepId={step.job_id}.{step.step_id}"
        total = sum(step.tasks)
        self._labels = Labels(
            width=len(str(max(total - 1, 0))),
            is_labelled=bool(values.get("label")),
            is_buffered=total > 1 and not values.get("unbuffered") and terminal is None,
        )
        self._ended: dict[int, TaskEnded] = {}
        #: Ends that were not told yet, and until when they may wait.
        self._untold: list[tuple[str, TaskEnded]] = []
        self._tell_by_s = 0.0
        self._stdin = files.stdin_fd if self._may_read(files.stdin_fd) else None
        #: Signals that came and were not dealt with yet.
        self._came: list[int] = []
        self._interrupted_s = 0.0
        self._interrupts = 0
        #: We asked for the step's end, or know that somebody did.
        self._is_cancelled = False
        #: It was said that the step is aborted.
        self._is_aborted = False
        self._cut_off: list[str] = []
        self._deadline_s: float | None = None
        #: When the first task ended, for --wait.
        self._first_end_s: float | None = None

    def run(self) -> int:
        """Stay until every node is done; return the exit status. Raises: SlurmError."""
        if self._stdin is None and not self._files.stdin_pattern:
            self._feed(b"")
        while not all(stream.is_over for stream in self._streams):
            self._turn()
            if self._deadline_s is not None and time.monotonic() >= self._deadline_s:
                self._session.complain("the step did not end in time; its tasks are left behind")
                break
        self._tell()
        status = exit_status(self._ended.values(), self._step.tasks)
        kills = (signal.SIGKILL, signal.SIGTERM)
        if not self._is_aborted and any(e.signal in kills for e in self._ended.values()):
            self._say(f"Force Terminated {self._name}")
        if self._cut_off and not status:
            status = 1
        return status

    def close(self) -> None:
        """End the streams."""
        for stream in self._streams:
            stream.close()

    # -- waiting
    def _turn(self) -> None:
        """Wait for something, and deal with all that there is."""
        poll = select.poll()
        open_streams = [stream for stream in self._streams if not stream.is_over]
        by_fd = {stream.fileno(): stream for stream in open_streams if stream.due_s is None}
        for fd, stream in by_fd.items():
            poll.register(fd, select.POLLIN | (select.POLLOUT if stream.is_writing else 0))
        if self._stdin is not None and all(
            stream.waiting_bytes < UNSENT_BYTES_MAX for stream in open_streams
        ):
            poll.register(self._stdin, select.POLLIN)
        staying = self._staying
        if staying is not None and staying.fileno() >= 0:
            poll.register(staying.fileno(), select.POLLIN)
        # Last, since what tasks said before a signal came is to be known when it is dealt with.
        poll.register(self._signals.fd, select.POLLIN)
        for fd, events in poll.poll(self._pause_ms()):
            if fd in by_fd:
                if events & select.POLLOUT:
                    by_fd[fd].flush()
                if events & ~select.POLLOUT:
                    self._hear(by_fd[fd])
            elif fd == self._signals.fd:
                # By number: of two that came together, Slurm says SIGCONT last.
                self._came = sorted(self._signals.taken())
                while self._came:
                    self._take(self._came.pop(0))
            elif staying is not None and fd == staying.fileno():
                staying.keep()
            else:
                self._read_stdin(fd)
        for stream in open_streams:
            if stream.due_s is not None and not stream.is_over:
                self._try_again(stream)
        if staying is not None and staying.due_s is not None:
            staying.keep()
        now = time.monotonic()
        if self._untold and now >= self._tell_by_s:
            self._tell()
        self._watch_wait(now)

    def _pause_ms(self) -> int | None:
        """Return how long nothing may come before something else is due; None for ever."""
        due = [self._tell_by_s] if self._untold else []
        due += [
            stream.due_s
            for stream in self._streams
            if stream.due_s is not None and not stream.is_over
        ]
        if self._staying is not None and self._staying.due_s is not None:
            due.append(self._staying.due_s)
        if self._deadline_s is not None:
            due.append(self._deadline_s)
        wait_s = self._values.get("wait_s", 0)
        if wait_s and self._first_end_s is not None and not self._is_cancelled:
            due.append(self._first_end_s + wait_s)
        if not due:
            return None
        return max(0, int((min(due) - time.monotonic()) * 1000) + 1)

    # -- what nodes say
    def _hear(self, stream: NodeStream) -> None:
        try:
            for message in stream.receive():
                self._take_message(stream, message)
            stream.tell_taken()
        except Lost as lost:
            self._lose(stream, str(lost))

    def _try_again(self, stream: NodeStream) -> None:
        try:
            stream.try_again()
        except Lost as lost:
            self._lose(stream, str(lost))

    def _take_message(self, stream: NodeStream, message: FromStep) -> None:
        if isinstance(message, Output):
            self._write(message)
        elif isinstance(message, TaskEnded):
            self._note_end(stream.node, message)
        elif isinstance(message, Finished):
            stream.is_over = True
            if message.why:
                self._session.complain(f"{stream.node}: {message.why}")
                self._cut_off.append(stream.node)
            self._tell()

    def _lose(self, stream: NodeStream, why: str) -> None:
        """Give a node up: the step goes no further without it."""
        if stream.is_over:
            return
        stream.is_over = True
        stream.close()
        self._cut_off.append(stream.node)
        if stream.was_attached:
            self._session.complain(
                "step_launch_notify_io_failure: aborting, io error with slurmstepd on node "
                f"{self._streams.index(stream)}"
            )
        else:
            self._session.complain(f"{stream.node}: {why}")
        if not self._is_cancelled:
            self._cancel(is_told=stream.was_attached)

    def _write(self, message: Output) -> None:
        files = self._files
        if message.task == STEP_ITSELF:
            if not self._is_cancelled and _CANCELLED in message.data:
                self._is_cancelled = True
                self._say_aborted()
            _write_all(2, message.data)
            return
        fd, only = (
            (files.stdout_fd, files.stdout_task)
            if message.fd == 1
            else (files.stderr_fd, files.stderr_task)
        )
        if fd is None or (only is not None and only != message.task):
            return
        data = self._labels.put(message.task, message.fd, message.data)
        if data:
            _write_all(fd, data)

    def _note_end(self, node: str, ended: TaskEnded) -> None:
        self._ended[ended.task] = ended
        now = time.monotonic()
        if self._first_end_s is None:
            self._first_end_s = now
        if ended.exit_code or ended.signal or ended.out_of_memory:
            if not self._untold:
                self._tell_by_s = now + GATHER_S
            self._untold.append((node, ended))
            self._kill_on_bad_exit()

    def _kill_on_bad_exit(self) -> None:
        if self._values.get("kill_on_bad_exit") and len(self._ended) < sum(self._step.tasks):
            if not self._is_cancelled:
                self._tell()
                self._say(f"launch/slurm: _step_signal: Terminating {self._name}")
                self._cancel(is_told=False, is_gentle=True)

    def _tell(self) -> None:
        """Say how tasks ended, those of a node together that ended alike."""
        alike: dict[tuple[str, int, int, bool, bool], list[int]] = {}
        for node, ended in self._untold:
            kind = (node, ended.exit_code, ended.signal, ended.core, ended.out_of_memory)
            alike.setdefault(kind, []).append(ended.task)
        self._untold.clear()
        for (node, exit_code, number, core, out_of_memory), tasks in sorted(
            alike.items(), key=lambda item: min(item[1])
        ):
            sentence = ended_sentence(exit_code, number, core=core, out_of_memory=out_of_memory)
            self._session.complain(f"{node}: {_named(tasks)}: {sentence}")

    # -- standard input
    @staticmethod
    def _may_read(fd: int | None) -> bool:
        """Whether there is something to read: a terminal only in the foreground."""
        if fd is None:
            return False
        try:
            return not os.isatty(fd) or os.tcgetpgrp(fd) == os.getpgrp()
        except OSError:
            return False

    def _read_stdin(self, fd: int) -> None:
        try:
            data = os.read(fd, CHUNK_BYTES_MAX)
        except OSError:
            data = b""
        if not data:
            self._stdin = None
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Send input to the tasks that get it; empty is its end."""
        only = self._files.stdin_task
        for stream in self._streams:
            if stream.is_over:
                continue
            if only is None:
                stream.send(Input(EVERY_TASK, data))
                continue
            if only in stream.tasks:
                stream.send(Input(only, data))
            if not data:
                for task in stream.tasks:
                    if task != only:
                        stream.send(Input(task, b""))

    # -- signals
    def _take(self, number: int) -> None:
        if number == signal.SIGINT:
            self._interrupt()
        elif number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self._say("forcing job termination")
            if signal.SIGCONT in self._also_taken():
                self._take(signal.SIGCONT)
            self._cancel(is_told=True)
        elif number == signal.SIGCONT:
            self._say("got SIGCONT")
        elif number == signal.SIGWINCH:
            self._resize()
        elif number in FORWARDED:
            self._signal(number)

    def _resize(self) -> None:
        """Give the first task's terminal the size of ours."""
        if self._terminal is not None:
            for stream in self._streams:
                if 0 in stream.tasks and not stream.is_over:
                    stream.send(Resize(*self._terminal.size))

    def _also_taken(self) -> list[int]:
        """Return the signals that came with one that ends srun, and are dealt with by that.

        Whoever ends a process wakes it as well, so that it hears of it: timeout(1), shells.
        """
        if signal.SIGCONT not in self._came:
            time.sleep(WAKING_S)
        also = [*self._came, *self._signals.taken()]
        self._came = [number for number in also if number != signal.SIGCONT]
        return also

    def _interrupt(self) -> None:
        """Deal with Ctrl-C: once asks, twice ends the step, three times leaves it alone."""
        now = time.monotonic()
        is_again = now - self._interrupted_s <= TWICE_S or self._values.get("quit_on_interrupt")
        self._interrupted_s = now
        self._interrupts = self._interrupts + 1 if is_again else 1
        if self._is_cancelled or self._interrupts > 2:
            raise SlurmError(error_line("srun", "left; tasks may still run"), status=130)
        if is_again or self._values.get("disable_status"):
            self._say(f"sending Ctrl-C to {self._name}")
            self._signal(signal.SIGINT)
            if not is_again:
                return
            self._say("forcing job termination")
            self._cancel(is_told=True)
            return
        self._say("interrupt (one more within 1 sec to abort)")
        self._say_where_tasks_are()

    def _signal(self, number: int) -> None:
        for stream in self._streams:
            if not stream.is_over:
                stream.send(Signal(number))

    def _cancel(self, *, is_told: bool, is_gentle: bool = False) -> None:
        """End the step."""
        if self._is_cancelled:
            return
        self._is_cancelled = True
        self._deadline_s = time.monotonic() + self._step.kill_wait_s + _LEFT_AFTER_S
        if is_told:
            self._say_aborted()
        request = CancelStep(self._step.job_id, self._step.step_id, not is_gentle)
        self._session.ask(request, Done)

    def _say_aborted(self) -> None:
        self._is_aborted = True
        wait_s = self._step.kill_wait_s + _KILL_GRACE_S
        self._say(f"Job step aborted: Waiting up to {wait_s} seconds for job step to finish.")

    def _watch_wait(self, now: float) -> None:
        """End the step when its first task ended long enough ago. Source: srun(1) --wait."""
        wait_s = self._values.get("wait_s", 0)
        if not wait_s or self._first_end_s is None or self._is_cancelled:
            return
        if now < self._first_end_s + wait_s or len(self._ended) == sum(self._step.tasks):
            return
        self._say(f"First task exited {wait_s}s ago")
        self._say_where_tasks_are()
        self._say(f"launch/slurm: _step_signal: Terminating {self._name}")
        self._cancel(is_told=True)

    def _say_where_tasks_are(self) -> None:
        everyone = range(sum(self._step.tasks))
        running = [task for task in everyone if task not in self._ended]
        for tasks, word in ((running, "running"), (list(self._ended), "exited")):
            if tasks:
                self._say(f"{self._name} {_named(tasks)}: {word}")

    @staticmethod
    def _say(text: str) -> None:
        sys.stderr.write(f"srun: {text}\n")


def _named(tasks: list[int]) -> str:
    """Return tasks as sentences name them: task 0, tasks 1-2."""
    word = "task" if len(tasks) == 1 else "tasks"
    return f"{word} {spell_tasks(tuple(sorted(tasks)))}"


def _write_all(fd: int, data: bytes) -> None:
    """Write all of it. Raises: BrokenPipeError when nobody reads any more."""
    while data:
        data = data[os.write(fd, data) :]
