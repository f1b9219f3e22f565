"""What flows between the tasks of a step and the one who attached to them.

On each node the step's supervisor speaks these messages, framed, with at most one who is attached.
Whatever it could not deliver yet it holds, and stops reading the tasks when it holds too much.
"""

from __future__ import annotations

import msgspec

from spur.wire.frames import MessageLimit, encode_frames

__all__ = [
    "CHUNK_BYTES_MAX",
    "EVERY_TASK",
    "TASK_IO_LIMIT",
    "Finished",
    "Input",
    "Output",
    "TaskEnded",
    "TaskIo",
    "decode_task_io",
    "encode_task_io",
]

CHUNK_BYTES_MAX = 64 * 1024
"""Bytes of output or input in one message."""

TASK_IO_LIMIT = MessageLimit("message of a step's stream", CHUNK_BYTES_MAX + 64)

EVERY_TASK = -1


class TaskIo(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of what flows."""


class Output(TaskIo, frozen=True, tag="out"):
    """A task wrote something. From the supervisor."""

    task: int
    """Its rank in the whole step."""
    fd: int
    """1 or 2."""
    data: bytes
    """Empty: there is no more of it."""


class TaskEnded(TaskIo, frozen=True, tag="ended"):
    """A task is over. From the supervisor; its last output may still follow."""

    task: int
    exit_code: int
    signal: int
    """0 when no signal ended it."""
    core: bool
    """Whether it left a core file."""


class Finished(TaskIo, frozen=True, tag="finished"):
    """Every task of the step on this node has ended, and all was sent. From the supervisor."""

    why: str
    """Why no task was started; empty when they were."""


class Input(TaskIo, frozen=True, tag="in"):
    """Something for the standard input of a task. To the supervisor."""

    task: int
    """Its rank, or EVERY_TASK."""
    data: bytes
    """Empty: there is no more of it."""


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODER: msgspec.msgpack.Decoder[Output | TaskEnded | Finished | Input] = msgspec.msgpack.Decoder(
    Output | TaskEnded | Finished | Input
)


def encode_task_io(message: TaskIo) -> bytes:
    """Return the message in its frames."""
    return b"".join(encode_frames(_ENCODE(message)))


def decode_task_io(message: bytes) -> Output | TaskEnded | Finished | Input:
    """Read one message, its frames taken off. Raises: msgspec.MsgspecError when it is none."""
    return _DECODER.decode(message)
