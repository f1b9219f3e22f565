"""Holding an allocation while a command runs: the terminal, signals, and news of its end.

Source: salloc(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from spur.slurm.wording import SlurmError
from spur.values.states import JobState
from spur_cli.slurm.allocation import Allocation, look_up, release
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals

__all__ = ["Foreground", "Held", "Holding"]

LOOK_S = 2.0
"""Between two looks at whether the allocation is still there."""

NO_EXEC_STATUS = 127

_PASSED_ON = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What a command is sent that is sent to salloc."""

_END_IT = (signal.SIGINT, signal.SIGTERM)
"""What gives the allocation back; the command goes on. Ctrl-C reaches the command alone."""

_USUAL_ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
"""A command that one of these ended was ended by its user, which is no failure."""


class Held(NamedTuple):
    """What a command came to."""

    own: int
    """Exit status of salloc."""
    reported: int
    """The status that the job is recorded with; 128 and the number for a signal."""


class Foreground:
    """The terminal, which belongs to one group of processes at a time."""

    def __init__(self, *, is_wanted: bool) -> None:
        """Wait until we are in its foreground, if there is one and it is wanted."""
        self.is_there = is_wanted and os.isatty(0)
        if not self.is_there:
            return
        is_told = False
        while os.tcgetpgrp(0) != os.getpgrp():
            if not is_told:
                sys.stderr.write(
                    "salloc: error: Waiting for program to be placed in the foreground\n"
                )
                is_told = True
            os.killpg(0, signal.SIGTTIN)
        self._attributes = termios.tcgetattr(0)

    def give(self, group: int) -> None:
        """Let another group have the terminal."""
        if self.is_there:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with suppress(OSError):
                os.tcsetpgrp(0, group)

    def take_back(self) -> None:
        """Have it again, as it was."""
        self.give(os.getpgrp())
        if self.is_there:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSANOW, self._attributes)

    def hang_up(self, *groups: int) -> None:
        """Tell whoever else has the terminal that it is over."""
        if self.is_there:
            with suppress(OSError):
                group = os.tcgetpgrp(0)
                if group not in (*groups, os.getpgrp()):
                    os.killpg(group, signal.SIGHUP)


class Holding:
    """One command in one allocation."""

    def __init__(
        self,
        session: Session,
        allocation: Allocation,
        signals: Signals,
        foreground: Foreground,
        values: Mapping[str, Any],
    ) -> None:
        self.is_revoked = False
        self._session = session
        self._job = allocation.job
        self._staying = allocation.staying
        self._signals = signals
        self._foreground = foreground
        self._values = values
        self._look_s = time.monotonic() + LOOK_S
        self._hung_up = False

    def run(self, words: list[str], variables: Mapping[str, str]) -> Held:
        """Run the command to its end, or until the terminal is gone."""
        path = shutil.which(words[0])
        if path is None:
            self._session.complain(f'_fork_command: Unable to find command "{words[0]}"')
            return Held(1, 0)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            self._become(path, words, variables)
        with suppress(OSError):  # it has done so itself, and maybe gone on
            os.setpgid(pid, pid)
        self._foreground.give(pid)
        watched = os.pidfd_open(pid)
        try:
            while not self._turn(pid, watched) and not self._hung_up:
                pass
        finally:
            os.close(watched)
            self._foreground.take_back()
        if self._hung_up:
            return Held(1, 0)
        _, status = os.waitpid(pid, 0)
        return _held(status)

    def _become(self, path: str, words: list[str], variables: Mapping[str, str]) -> NoReturn:
        """Be the command, in a group of its own that has the terminal."""
        try:
            os.setpgid(0, 0)
            self._foreground.give(os.getpid())
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU):
                signal.signal(number, signal.SIG_DFL)
            os.execve(path, words, {**os.environ, **variables})
        except OSError as error:
            sys.stderr.write(
                f"salloc: error: _fork_command: Unable to execute command: {error.strerror}\n"
            )
            sys.stderr.flush()
        finally:
            os._exit(NO_EXEC_STATUS)

    def _turn(self, pid: int, watched: int) -> bool:
        """Wait for something and deal with it; whether the command has ended."""
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        poll.register(self._signals.fd, select.POLLIN)
        staying = self._staying
        if staying is not None and staying.fileno() >= 0:
            poll.register(staying.fileno(), select.POLLIN)
        found = {fd for fd, _ in poll.poll(self._pause_ms())}
        if watched in found:
            return True
        if self._signals.fd in found:
            for number in self._signals.taken():
                self._pass_on(pid, number)
        if staying is not None:
            staying.keep()
        if not self.is_revoked and time.monotonic() >= self._look_s:
            self._look(pid)
        return False

    def _pause_ms(self) -> int | None:
        due = [] if self.is_revoked else [self._look_s]
        if self._staying is not None and self._staying.due_s is not None:
            due.append(self._staying.due_s)
        if not due:
            return None
        return max(0, int((min(due) - time.monotonic()) * 1000) + 1)

    def _pass_on(self, pid: int, number: int) -> None:
        if number in _PASSED_ON:
            with suppress(OSError):
                os.killpg(pid, number)
        if number == signal.SIGHUP:
            self._hung_up = True
        if number in _END_IT and not self.is_revoked:
            release(self._session, self._job.job_id, 0)
            self._note_revoked(pid)

    def _look(self, pid: int) -> None:
        """Find out whether the allocation is still there, and say when it is not."""
        try:
            job = look_up(self._session, self._job.job_id)
            is_there = (
                job is not None
                and job.state in (JobState.RUNNING, JobState.SUSPENDED)
                and job.run == self._job.run
            )
        except SlurmError:  # nobody to ask: the next look may tell
            is_there = True
        self._look_s = time.monotonic() + LOOK_S
        if not is_there:
            self._note_revoked(pid)

    def _note_revoked(self, pid: int) -> None:
        """Say that the allocation is gone, and end the command where that is wanted."""
        self.is_revoked = True
        if self._staying is not None:
            self._staying.leave()
        if not self._values.get("quiet"):
            sys.stderr.write(f"salloc: Job allocation {self._job.job_id} has been revoked.\n")
        self._foreground.hang_up(pid)
        if "kill_command" in self._values:
            usual = signal.SIGHUP if self._foreground.is_there else signal.SIGTERM
            with suppress(OSError):
                os.killpg(pid, self._values["kill_command"] or usual)


def _held(status: int) -> Held:
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        return Held(code, code)
    number = os.WTERMSIG(status)
    return Held(0 if number in _USUAL_ENDS else 1, 128 + number)
