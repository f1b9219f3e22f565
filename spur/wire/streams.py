"""Streams: what flows between srun and the tasks of a step, one stream a node.

    srun --unix--> spurd of its host --TLS--> spurd of the node --unix--> supervisor of the step

    srun                     relay            agent of the node            supervisor
    Splice(address, Open) ->
                             Attach(Open)  ->  finds the supervisor of the step
                           <----------------------------------------------  Attached
    Begin                  ---------------------------------------------->
    Program                ---------------------------------------------->  runs the tasks
    Input, Signal, Resize  ---------------------------------------------->
                           <------------------------------  Output, TaskEnded, Finished
    Taken                  <--------------------------------------------->  Taken
                           <-  StreamRefused, from whoever cannot go on; then the stream ends

After `Splice` and `Attach` both hosts copy bytes and look at nothing, so srun and supervisor speak
as if they shared a socket. Everything is a message in frames (`frames.py`). The supervisor gets
what comes behind `Attach`. An opening is short, since its sender is not known yet: whoever opens
waits for `Attached` before it sends more.

A stream that breaks off is opened anew, and goes on where it was: `Attached` and `Begin` say how
many messages each side has taken, and what was not taken is kept (`resending.py`). The supervisor
waits for that, and its tasks with it once their output fills what it keeps.

Others who may speak with a step (`sattach`), or send files to the nodes of a run (`sbcast`), are
guests. They have keys of their own, which the nodes are told of, and name a run by `EXTERN_STEP`.
A guest's stream that breaks off goes on with what comes then.

A stream is opened with the key of its step: 32 random bytes that srun made and whose SHA-256 is in
`step.started`. Whoever has the key is the one who started the step, whatever host vouches for
them. What a step executes travels here and not through the log: it steers no decision, and without
its srun there is nothing to run.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from spur.wire.calls import ClusterId, Index, UserId, decode_message
from spur.wire.frames import MessageLimit, encode_frames
from spur.wire.steps import KEY_SIZE

__all__ = [
    "CHUNK_BYTES_MAX",
    "EVERY_TASK",
    "FROM_STEP_LIMIT",
    "STEP_ITSELF",
    "STREAM_VERSION",
    "TO_STEP_LIMIT",
    "Attach",
    "Attached",
    "Begin",
    "FilePiece",
    "FilePut",
    "Finished",
    "FromStep",
    "Input",
    "Open",
    "Opening",
    "Output",
    "Program",
    "PutFile",
    "Resize",
    "Signal",
    "Splice",
    "Stay",
    "StreamRefused",
    "Taken",
    "TaskEnded",
    "ToStep",
    "counts",
    "decode_from_step",
    "decode_opening",
    "decode_to_step",
    "encode_stream",
    "key_digest",
    "stream_frames",
]

STREAM_VERSION = 2
"""Of the messages in this file; both ends must speak the same."""

CHUNK_BYTES_MAX = 64 * 1024
"""Bytes of one piece of input or output."""

EVERY_TASK = -1
"""As the task of an `Input`: every task of the node."""

STEP_ITSELF = -1
"""As the task of an `Output`: no task wrote it; Slurm's own words about the step."""

TO_STEP_LIMIT = MessageLimit(name="message to a step", bytes_max=4 << 20)
"""A program with its environment is the longest."""

FROM_STEP_LIMIT = MessageLimit(name="message of a step", bytes_max=CHUNK_BYTES_MAX + 4096)

Task: TypeAlias = Annotated[int, Meta(ge=-1, le=(1 << 31) - 1)]


class Open(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which step on which node is meant, and the proof that the opener started it."""

    node: str
    job_id: Index
    run: Index
    step_id: Index
    key: Annotated[bytes, Meta(min_length=KEY_SIZE, max_length=KEY_SIZE)]


class Splice(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=64):
    """The first message of srun to the agent of its own host: connect me."""

    version: int
    address: str
    """host:port of the node's agent."""
    open: Open


class Attach(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=65):
    """The first message of that agent to the agent of the node, under TLS."""

    version: int
    cluster_id: ClusterId
    uid: UserId
    """Who opens it, as the kernel of the opener's host says."""
    gid: UserId
    open: Open


class Program(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=66):
    """What every task of the step executes; sent once on each node's stream."""

    argv: tuple[bytes, ...]
    environment: bytes
    """NAME=value, each ended by a zero byte; the supervisor adds what differs between tasks."""
    working_directory: bytes
    umask: Annotated[int, Meta(ge=0, le=0o777)]
    limits: tuple[tuple[int, int, int], ...]
    """Resource limits to set: number of the resource, soft, hard; -1 is none."""
    stdin_path: bytes
    """Pattern of a file for each task; empty: from the stream, b"/dev/null" for none."""
    stdout_path: bytes
    """Pattern of a file for each task; empty: to the stream."""
    stderr_path: bytes
    """As `stdout_path`; where stdout has a file and this is empty, both go there."""
    appends: bool
    """Whether those files are opened to append, not cut."""
    kill_on_bad_exit: bool
    """Whether the node's tasks are ended when one fails."""
    pty: tuple[int, int] | None
    """Rows and columns of a terminal for the first task; None for pipes."""
    gpu_binding: str = ""
    """How each task gets GPUs of its own; empty: all have all of the step."""
    several: tuple[tuple[bytes, ...], ...] = ()
    """The words of each task of this node in turn; empty: all have those of `argv`."""
    task_prolog: bytes = b""
    """What runs as part of each task before its program; empty for nothing."""
    task_epilog: bytes = b""
    """What runs after each task; empty for nothing."""
    is_unbuffered: bool = False
    """Whether what tasks write to the stream is told to them to be a terminal."""


class Input(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=67):
    """Bytes for the standard input of a task of this node, or of all of them."""

    task: Task
    """Its number in the whole step, or `EVERY_TASK`."""
    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES_MAX)]
    """Empty: the end of the input."""


class Signal(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=68):
    """A signal for every task of this node."""

    signal: Annotated[int, Meta(ge=1, le=64)]


class Attached(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=69):
    """The supervisor has the stream. What its opener has not taken follows `Begin`."""

    node: str
    taken: Index = 0
    """Messages of srun that it has taken, over all connections."""


class Output(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=70):
    """Bytes that a task wrote."""

    task: Task
    """Its number in the whole step, or `STEP_ITSELF`."""
    fd: Annotated[int, Meta(ge=1, le=2)]
    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES_MAX)]
    """Empty: the end of what it writes there."""


class TaskEnded(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=71):
    """A task ended."""

    task: Task
    exit_code: Annotated[int, Meta(ge=0, le=255)]
    signal: Annotated[int, Meta(ge=0, le=127)]
    """What ended it; 0 for an exit of its own."""
    core: bool
    """Whether it left a core file."""
    out_of_memory: bool


class Finished(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=72):
    """Every task of the node has ended and all that they wrote was sent; the last message."""

    why: str
    """Why no task was started; empty when they were."""


class StreamRefused(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=73):
    """There is no stream, or it cannot go on; the last message."""

    code: str
    """A key of `spur.values.errors.ERROR_CODES`."""
    text: str


class Begin(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=74):
    """The answer to `Attached`: go on from here."""

    taken: Index
    """Messages of the step that srun has taken, over all connections."""


class Taken(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=75):
    """So many messages were taken so far: they need not be kept."""

    count: Index


class Resize(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=76):
    """The terminal of the first task has another size."""

    rows: Annotated[int, Meta(ge=0, le=65535)]
    columns: Annotated[int, Meta(ge=0, le=65535)]


class Stay(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=77):
    """What a command whose allocation this is says to the agent of its own host.

    The connection lasts as long as the command: when it ends without another word, the allocation
    is cancelled in its user's name. Sent again with job 0, before the command leaves by itself.
    """

    version: int
    job_id: Index


class PutFile(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=78):
    """To the nodes of a run: write a file as the run's user; its content follows."""

    path: bytes
    """From the root on."""
    mode: Annotated[int, Meta(ge=0, le=0o7777)]
    atime_ns: int
    mtime_ns: int
    keeps_times: bool
    forces: bool
    """Whether a file that is there already is replaced."""
    is_compressed: bool
    """Whether the content is a stream of zlib."""


class FilePiece(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=79):
    """The next piece of the content."""

    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES_MAX)]
    """Empty: the end."""


class FilePut(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=80):
    """What became of the file; the last message."""

    number: Annotated[int, Meta(ge=0, le=255)]
    """0, or the error's number on Linux."""


Opening: TypeAlias = Splice | Attach | Stay
"""What a stream begins with."""

ToStep: TypeAlias = Begin | Taken | Program | Input | Signal | Resize | PutFile | FilePiece
"""What srun sends."""

FromStep: TypeAlias = Attached | Taken | Output | TaskEnded | Finished | StreamRefused | FilePut
"""What agents and supervisors send."""

_encoder = msgspec.msgpack.Encoder()
_opening: msgspec.msgpack.Decoder[Opening] = msgspec.msgpack.Decoder(Opening)
_to_step: msgspec.msgpack.Decoder[ToStep] = msgspec.msgpack.Decoder(ToStep)
_from_step: msgspec.msgpack.Decoder[FromStep] = msgspec.msgpack.Decoder(FromStep)


def key_digest(key: bytes) -> bytes:
    """Return what the log holds of a step's key."""
    import hashlib  # supervisors hold this module in memory, and never need that one

    return hashlib.sha256(key).digest()


def counts(message: ToStep | FromStep) -> bool:
    """Return whether a message is one of those that are kept until they are taken."""
    return not isinstance(message, Attached | Begin | Taken | StreamRefused)


def encode_stream(message: Opening | ToStep | FromStep) -> bytes:
    """Return the bytes of a message, not yet framed."""
    return _encoder.encode(message)


def stream_frames(message: Opening | ToStep | FromStep) -> bytes:
    """Return a message as the bytes that go over the stream."""
    return b"".join(encode_frames(_encoder.encode(message)))


def decode_opening(data: bytes) -> Opening:
    """Return the first message of a stream. Raises: PeerFault for anything else."""
    return decode_message(_opening, data, "the opening of a stream")


def decode_to_step(data: bytes) -> ToStep:
    """Return what srun sent. Raises: PeerFault for anything else."""
    return decode_message(_to_step, data, "a message to a step")


def decode_from_step(data: bytes) -> FromStep:
    """Return what an agent or a supervisor sent. Raises: PeerFault for anything else."""
    return decode_message(_from_step, data, "a message of a step")
