"""The warm process: it has imported what a supervisor needs, and forks one for each attempt.

    python -m spur.agent.forker FD

FD is its end of a socket pair of packets (`notices.py`). It ends when the agent's end is closed;
the supervisors live on. A supervisor shares the pages of this process and writes to few of them,
which keeps its own memory small: so this process imports little and does nothing else.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys

from spur.agent import supervisor
from spur.agent.identity import warm_up
from spur.agent.linux import prepare_signals
from spur.agent.notices import (
    NOTICE_BYTES_MAX,
    Forked,
    Gone,
    NotForked,
    decode_fork,
    encode_notice,
)

__all__ = ["main"]


def main() -> None:
    """Fork supervisors until the agent is gone."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)  # a job that had it could speak to the agent as we do
    channel.setblocking(True)
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    prepare_signals()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    waiting = select.poll()
    waiting.register(channel, select.POLLIN)
    waiting.register(reader, select.POLLIN)
    children: dict[int, str] = {}
    warm_up()
    gc.collect()
    gc.freeze()
    gc.disable()
    while True:
        ready = dict(waiting.poll())
        if reader in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(reader, 4096)
            _reap(channel, children)
        if channel.fileno() in ready:
            packet = _receive(channel)
            if not packet:
                return
            _fork(channel, packet, children, (reader, writer))


def _receive(channel: socket.socket) -> bytes:
    """Return a packet; empty when the agent is gone."""
    try:
        return channel.recv(NOTICE_BYTES_MAX)
    except ConnectionError:
        return b""


def _reap(channel: socket.socket, children: dict[int, str]) -> None:
    """Collect the supervisors that ended, and say so."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        _say(channel, encode_notice(Gone(children.pop(pid), pid, status)))


def _fork(
    channel: socket.socket, packet: bytes, children: dict[int, str], own: tuple[int, int]
) -> None:
    """Make a supervisor, and answer with its process id."""
    fork = decode_fork(packet)
    try:
        pid = os.fork()
    except OSError as error:
        _say(channel, encode_notice(NotForked(fork.number, os.strerror(error.errno or 0))))
        return
    if pid:
        children[pid] = fork.directory
        _say(channel, encode_notice(Forked(fork.number, pid)))
        return
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in own:
            os.close(number)
        status = supervisor.supervise(fork.directory, channel)
    finally:
        os._exit(status)


def _say(channel: socket.socket, packet: bytes) -> None:
    """Tell the agent; when it is gone, the next read sees it too."""
    with contextlib.suppress(ConnectionError):
        channel.send(packet)


if __name__ == "__main__":
    main()
