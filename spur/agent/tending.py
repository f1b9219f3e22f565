"""The loop of a supervisor: it collects processes, takes orders, and ends what must end.

It returns once nothing of the attempt lives any more. What it knows of tasks is their process ids;
batch, step and holder of a place differ in what they hand in.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable

import msgspec

from spur.agent.control import (
    CONTROL,
    CONTROL_LIMIT,
    Guest,
    Heard,
    Kill,
    Notify,
    Signal,
    Steer,
    decode_order,
    encode_heard,
    listen,
)
from spur.agent.processes import signal_all, stop_all
from spur.values.errors import PeerFault
from spur.wire.frames import FrameDecoder

__all__ = ["Tending"]

_SWEEP_S = (0.005, 0.5)
"""Shortest and longest wait between two looks at processes that are being killed."""


class Tending:
    """The processes of one attempt on one node."""

    def __init__(self, directory: str, *, terms_all: bool) -> None:
        """Listen for orders. Raises: OSError.

        `terms_all` says whom SIGTERM reaches when the attempt is killed: every process, or only the
        main ones, as with a batch script.
        """
        self.mains: set[int] = set()
        """Processes that the attempt lasts for."""
        self.holds = False
        """Whether it goes on without any, until it is killed."""
        self.killed: Kill | None = None
        """How it was ended from outside, if it was."""
        self.on_exit: Callable[[int, int], None] = lambda pid, status: None
        """Called with each main process that ended, and its status."""
        self.on_kill: Callable[[Kill], None] = lambda kill: None
        """Called once, before the first signal of a kill is sent."""
        self.on_notice: Callable[[str], None] = lambda text: None
        """Called with what somebody says to the job."""
        self.on_steer: Callable[[int], None] = lambda limit_ns: None
        """Called with the run's new limit; 0 is never, as while it stands still."""
        self.limit_ns: int | None = None
        """The limit that it was told last, if it was."""
        self.on_guest: Callable[[socket.socket], None] = lambda connection: connection.close()
        """Called with the connection over which a guest speaks from then on."""
        self.aside: dict[int, Callable[[int], None]] = {}
        """Processes that the attempt does not last for; what hears with which status each ended."""
        self.lingers: Callable[[], bool] = lambda: False
        """Whether something remains to be done though nothing lives; asked after each event."""
        self.ended_boot_ns = 0
        """When the last process ended."""
        self._alarms: dict[Callable[[], None], float] = {}
        self._terms_all = terms_all
        self._kill_due: float | None = None
        self._signalled: set[int] = set()
        self._steered = 0
        self._is_paused = False
        self._sweep_s = _SWEEP_S[0]
        self._calls: dict[int, Callable[[int], None]] = {}
        self._poll = select.poll()
        self._wake_up()
        self._control = listen(directory, CONTROL)
        self.watch(self._control.fileno(), select.POLLIN, self._accept)

    def _wake_up(self) -> None:
        """Let a child's end wake the loop."""
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

        def drain(events: int) -> None:
            with contextlib.suppress(BlockingIOError):
                os.read(reader, 4096)

        self.watch(reader, select.POLLIN, drain)

    def watch(self, number: int, events: int, call: Callable[[int], None]) -> None:
        """Call with the events of a descriptor; again for other events."""
        self._poll.register(number, events)
        self._calls[number] = call

    def forget(self, number: int) -> None:
        """Watch a descriptor no more."""
        if self._calls.pop(number, None) is not None:
            self._poll.unregister(number)

    def run(self) -> None:
        """Tend until nothing lives and nothing lingers."""
        while True:
            lives = self._collect()
            over = not self.mains and not self.holds
            if over and lives:
                signal_all(os.getpid(), signal.SIGKILL)
            elif over and not self.lingers():
                return
            for number, events in self._poll.poll(self._wait_ms(over and lives)):
                call = self._calls.get(number)
                if call is not None:
                    call(events)
            self._do_what_is_due()

    def alarm(self, after_s: float | None, call: Callable[[], None]) -> None:
        """Call once, after a time; None takes back that it was to be called."""
        if after_s is None:
            self._alarms.pop(call, None)
        else:
            self._alarms[call] = time.monotonic() + after_s

    def _wait_ms(self, sweeps: bool) -> float | None:
        if sweeps:
            wait_s, self._sweep_s = self._sweep_s, min(self._sweep_s * 2, _SWEEP_S[1])
            return wait_s * 1000
        due = list(self._alarms.values())
        if self._kill_due is not None:
            due.append(self._kill_due)
        return max(min(due) - time.monotonic(), 0) * 1000 + 1 if due else None

    def _collect(self) -> bool:
        """Collect what ended, and return whether anything lives."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            self.ended_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            if pid in self.mains:
                self.mains.discard(pid)
                self.on_exit(pid, status)
            elif pid in self.aside:
                self.aside.pop(pid)(status)

    # -- orders

    def _accept(self, events: int) -> None:
        try:
            connection, _ = self._control.accept()
        except OSError:
            return
        connection.setblocking(False)
        decoder = FrameDecoder(CONTROL_LIMIT)
        number = connection.fileno()
        self.watch(number, select.POLLIN, lambda events: self._read(connection, decoder))

    def _read(self, connection: socket.socket, decoder: FrameDecoder) -> None:
        """Take what came over a connection; one that makes no sense is closed."""
        try:
            data = connection.recv(4096)
            if not data:
                raise ConnectionResetError
            for message in decoder.feed(data):
                order = decode_order(message)
                if isinstance(order, Guest):
                    self.forget(connection.fileno())
                    self.on_guest(connection)
                    return
                self._obey(order)
                connection.send(encode_heard(Heard(alive=bool(self.mains))))
        except BlockingIOError:
            return
        except (OSError, PeerFault, msgspec.MsgspecError):
            self.forget(connection.fileno())
            connection.close()

    def _obey(self, order: Signal | Steer | Notify | Kill) -> None:
        if isinstance(order, Kill):
            self.kill(order)
        elif isinstance(order, Steer):
            self._steer(order)
        elif order.index not in self._signalled:
            self._signalled.add(order.index)
            if isinstance(order, Notify):
                self.on_notice(order.text.decode("utf-8", "surrogateescape"))
            elif order.mains_only:
                self.signal_mains(order.signal)
            else:
                signal_all(os.getpid(), order.signal)

    def _steer(self, order: Steer) -> None:
        """Stop or continue everything; the newest order holds, and the end goes before all."""
        if order.index <= self._steered or self.killed is not None:
            return
        self._steered = order.index
        if order.paused:
            stop_all(os.getpid())
        elif self._is_paused:
            signal_all(os.getpid(), signal.SIGCONT)
        self._is_paused = order.paused
        self.limit_ns = 0 if order.paused else order.limit_ns
        self.on_steer(self.limit_ns)

    def signal_mains(self, number: int) -> None:
        """Send a signal to the main processes alone."""
        for pid in self.mains:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self, order: Kill) -> None:
        """End the attempt: with a warning first, and by force after the wait; at once for none."""
        due = time.monotonic() + order.kill_wait_s
        if self.killed is None:
            self.killed = order
            self.holds = False
            self.on_kill(order)
            if self._is_paused:
                signal_all(os.getpid(), signal.SIGCONT)
            for number in (signal.SIGCONT, signal.SIGTERM) if order.kill_wait_s else ():
                if self._terms_all:
                    signal_all(os.getpid(), number)
                else:
                    self.signal_mains(number)
        self._kill_due = due if self._kill_due is None else min(due, self._kill_due)

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        if self._kill_due is not None and now >= self._kill_due:
            signal_all(os.getpid(), signal.SIGKILL)
            self._kill_due = now + _SWEEP_S[1]  # what was made meanwhile
        for call, moment in tuple(self._alarms.items()):
            if now >= moment:
                self._alarms.pop(call, None)
                call()
