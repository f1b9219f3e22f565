"""How an agent speaks to the supervisor of an attempt: two Unix sockets in the attempt's directory.

    control   `Signal`, `Steer`, `Notify` and `Kill`, framed; each is answered by
              `Heard`. A connection that stays open ends when the supervisor does.
    stream    the input and output of a step's tasks, as in `spur.wire.streams`

Both are found through the directory, so they outlive the agent that started the supervisor. Only
the agent's own user can connect.
"""

from __future__ import annotations

import os
import socket

import msgspec

from spur.wire.frames import FrameDecoder, MessageLimit, encode_frames

__all__ = [
    "CONTROL",
    "CONTROL_LIMIT",
    "STREAM",
    "Guest",
    "Heard",
    "Kill",
    "Notify",
    "Order",
    "Signal",
    "Steer",
    "connect",
    "decode_order",
    "deliver",
    "encode_heard",
    "encode_order",
    "listen",
]

CONTROL = "control"
STREAM = "stream"
"""Names of the sockets in the directory of an attempt."""

CONTROL_LIMIT = MessageLimit("order to a supervisor", 8192)


class Order(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of what a supervisor is told."""


class Signal(Order, frozen=True, tag="signal"):
    """Deliver a signal. Source: scancel(1) --signal, --batch, --full."""

    signal: int
    mains_only: bool
    """To the script or the tasks alone, not to what they started."""
    index: int
    """Of the event that asked for it: acted on once."""


class Steer(Order, frozen=True, tag="steer"):
    """Let everything stand still, or go on, and know when the run's limit is reached."""

    paused: bool
    limit_ns: int
    """0 is never."""
    index: int
    """Of the event that says so: the newest holds."""


class Notify(Order, frozen=True, tag="notify"):
    """Say something where a person may read it."""

    text: bytes
    index: int
    """Of the event that asked for it: said once."""


class Guest(Order, frozen=True, tag="guest"):
    """From here on a guest speaks over this connection, as in `spur.wire.streams`."""


class Kill(Order, frozen=True, tag="kill"):
    """End everything: SIGCONT and SIGTERM, after the wait SIGKILL."""

    state: str
    """What the run will be recorded as; the sentence in its output names the cause."""
    kill_wait_s: int
    """Source: slurm.conf(5) KillWait."""


class Heard(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The supervisor has taken the order."""

    alive: bool
    """Whether anything of the user's still ran."""


_ENCODE = msgspec.msgpack.Encoder().encode
_ORDERS: msgspec.msgpack.Decoder[Signal | Steer | Notify | Kill | Guest] = msgspec.msgpack.Decoder(
    Signal | Steer | Notify | Kill | Guest
)
_ANSWERS = msgspec.msgpack.Decoder(Heard)


def encode_order(order: Order) -> bytes:
    """Return an order in its frames."""
    return b"".join(encode_frames(_ENCODE(order)))


def decode_order(message: bytes) -> Signal | Steer | Notify | Kill | Guest:
    """Read an order, its frames taken off. Raises: msgspec.MsgspecError when it is none."""
    return _ORDERS.decode(message)


def encode_heard(heard: Heard) -> bytes:
    """Return an answer in its frames."""
    return b"".join(encode_frames(_ENCODE(heard)))


def listen(directory: str, name: str) -> socket.socket:
    """Return a listening socket in a directory, in the way of no path limit.

    Raises: OSError.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # The path of a Unix socket holds 107 bytes; this way round any directory will do.
            path = f"/proc/self/fd/{at}/{name}"
            listener.bind(path)
            os.chmod(path, 0o600)
        finally:
            os.close(at)
        listener.listen(16)
    except OSError:
        listener.close()
        raise
    return listener


def connect(directory: str, name: str, timeout_s: float = 5.0) -> socket.socket:
    """Return a connection to a supervisor.

    Raises: OSError when nobody listens there: the supervisor has ended, or not begun.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{at}/{name}")
        finally:
            os.close(at)
    except OSError:
        connection.close()
        raise
    return connection


def deliver(directory: str, order: Order, timeout_s: float = 5.0) -> Heard:
    """Tell a supervisor something and return its answer. It answers at once.

    Raises: OSError when it has ended, or does not answer in time.
    """
    with connect(directory, CONTROL, timeout_s) as connection:
        connection.sendall(encode_order(order))
        decoder = FrameDecoder(CONTROL_LIMIT)
        while data := connection.recv(4096):
            for message in decoder.feed(data):
                return _ANSWERS.decode(message)
    raise ConnectionResetError(f"the supervisor of {directory} ended before it answered")
