"""Orders reach a supervisor through its directory, wherever that lies."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from spur.agent import control
from spur.wire.frames import FrameDecoder


def deep(tmp_path: Path) -> Path:
    """Return a directory whose name is longer than a socket's path may be."""
    directory = tmp_path / ("d" * 100) / ("e" * 100)
    directory.mkdir(parents=True)
    return directory


def test_an_order_is_answered_whatever_the_path(tmp_path: Path) -> None:
    """An agent's spool lies deeper than the 107 bytes that the path of a socket may have."""
    directory = str(deep(tmp_path))
    taken: list[control.Order] = []
    listener = control.listen(directory, control.CONTROL)
    listener.setblocking(True)

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            (message,) = FrameDecoder(control.CONTROL_LIMIT).feed(connection.recv(4096))
            taken.append(control.decode_order(message))
            connection.sendall(control.encode_heard(control.Heard(alive=True)))

    server = threading.Thread(target=serve)
    server.start()
    order = control.Signal(signal=10, mains_only=True, index=7)
    try:
        assert control.deliver(directory, order) == control.Heard(alive=True)
    finally:
        server.join()
        listener.close()
    assert taken == [order]


def test_a_supervisor_that_ended_is_told_apart(tmp_path: Path) -> None:
    """A job ends just before it would have been killed: the agent sees that nobody listens."""
    directory = str(deep(tmp_path))
    with pytest.raises(FileNotFoundError):
        control.deliver(directory, control.Kill(state="CANCELLED", kill_wait_s=1))
    control.listen(directory, control.CONTROL).close()
    with pytest.raises(ConnectionRefusedError):
        control.deliver(directory, control.Kill(state="CANCELLED", kill_wait_s=1))


def test_no_order_is_refused() -> None:
    """Something else speaks into the socket."""
    with pytest.raises(msgspec.MsgspecError):
        control.decode_order(b"\x93\xa4stop\x01\x02")
