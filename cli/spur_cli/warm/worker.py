"""The worker: has imported what commands need, and forks a child for each that is handed over.

It runs no command itself and keeps nothing of one, so every child begins as the first did. It ends
after a while without work, and as soon as a file that it has imported is not what it was.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time

import msgspec

from spur.wire.declare import ANSWERS
from spur_cli.warm.child import Unlike, serve, tell
from spur_cli.warm.knock import DIED, ENDED, REFUSED, WORDS, Door
from spur_cli.warm.likeness import likeness_of

__all__ = ["work"]

IDLE_S = 120.0
"""How long a worker waits for the next command."""

CHILDREN_MAX = 64
"""Commands under way; a launcher beyond these runs its command itself."""

_BACKLOG = 64

_SERVED, _BROKEN, _REFUSED = 0, 1, 2
"""How a child itself exits; its launcher has heard how the command did."""

_ALSO = (
    "grp",
    "pwd",
    "spur.client.blocking",
    "spur.client.faults",
    "spur.client.locate",
    "spur_cli.slurm.clusters",
)
"""What commands import when they come to need it."""


def work(door: Door, *, lock: int | None = None, idle_s: float = IDLE_S) -> None:
    """Serve launchers until none came for a while.

    `lock` is a file that is closed when they can come, so that no other worker is begun till then.
    """
    for module in (*(f"spur_cli.commands.{word}" for word in WORDS), *_ALSO):
        importlib.import_module(module)
    for answer in ANSWERS.values():
        msgspec.msgpack.Decoder(answer)  # looks at the fields of a class, once for all children
    directory, name = door
    _sweep(directory)
    path = directory + b"/" + name
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(path)
        except OSError:  # another one was faster
            return
        inode = os.stat(path).st_ino
        listener.listen(_BACKLOG)
        if lock is not None:
            os.close(lock)
        gc.collect()
        gc.freeze()
        try:
            _Worker(listener, idle_s).run()
        finally:
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == inode:
                    os.unlink(path)


def _sweep(directory: bytes) -> None:
    """Remove the sockets of workers that were killed."""
    for name in os.listdir(directory):
        if not name.startswith(b"warm-"):
            continue
        path = directory + b"/" + name
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe,
            contextlib.suppress(OSError),
        ):
            probe.setblocking(False)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


class _Worker:
    """The loop: launchers come, children end."""

    def __init__(self, listener: socket.socket, idle_s: float) -> None:
        self._listener = listener
        self._idle_s = idle_s
        self._lines: dict[int, socket.socket] = {}
        """The line of each child, which tells how it ended when it can't itself."""
        self._end_s = time.monotonic() + idle_s
        """When we end. Launchers that are not served do not put it off."""
        self._files = _Files()
        self._likeness = likeness_of(os.getpid())

    def run(self) -> None:
        """Serve until nobody comes any more."""
        self._listener.setblocking(False)
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while True:
            left_s = max(0.0, self._end_s - time.monotonic())
            ready = poll.poll(None if self._lines else left_s * 1000)
            if not self._lines and time.monotonic() >= self._end_s:
                return
            for fd, _ in ready:
                if fd == wake:
                    os.read(wake, 4096)
                    self._reap()
                elif not self._accept(wake, waker):
                    return

    def _accept(self, *own: int) -> bool:
        """Take a launcher; False when we are not what was installed any more."""
        try:
            line, _ = self._listener.accept()
        except OSError:
            return True
        if self._files.have_changed():
            tell(line, REFUSED, 0)
            line.close()
            return False
        if len(self._lines) >= CHILDREN_MAX:
            tell(line, REFUSED, 0)
            line.close()
            return True
        pid = os.fork()
        if not pid:
            self._be_child(line, own)
        self._lines[pid] = line
        return True

    def _be_child(self, line: socket.socket, own: tuple[int, ...]) -> None:
        """Never returns."""
        status = _BROKEN
        try:
            signal.set_wakeup_fd(-1)
            self._listener.close()
            for fd in own:
                os.close(fd)
            for other in self._lines.values():
                other.close()
            serve(line, self._likeness)
            status = _SERVED
        except Unlike:
            tell(line, REFUSED, 0)
            status = _REFUSED
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while self._lines:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            line = self._lines.pop(pid)
            if os.WIFSIGNALED(status):
                tell(line, DIED, os.WTERMSIG(status))
            elif os.WEXITSTATUS(status) == _BROKEN:
                tell(line, ENDED, 1)
            if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != _REFUSED:
                self._end_s = time.monotonic() + self._idle_s
            line.close()


class _Files:
    """The files of ours that were imported, as they were then."""

    def __init__(self) -> None:
        ours = (
            module
            for name, module in sys.modules.items()
            if name.partition(".")[0] in ("spur", "spur_cli", "msgspec")
        )
        paths = (getattr(module, "__file__", None) for module in ours)
        self._paths = [path for path in paths if path is not None]
        self._were = self._are()

    def have_changed(self) -> bool:
        """Whether one of them is not what it was: an update, or an edit."""
        return self._are() != self._were

    def _are(self) -> list[tuple[int, int]]:
        found = []
        for path in self._paths:
            try:
                seen = os.stat(path)
            except OSError:
                return []
            found.append((seen.st_ino, seen.st_mtime_ns))
        return found
