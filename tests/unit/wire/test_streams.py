"""Streams of steps: messages arrive as they were sent, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.values.errors import PeerFault
from spur.wire.frames import FrameDecoder
from spur.wire.steps import KEY_SIZE
from spur.wire.streams import (
    CHUNK_BYTES_MAX,
    EVERY_TASK,
    FROM_STEP_LIMIT,
    STEP_ITSELF,
    STREAM_VERSION,
    TO_STEP_LIMIT,
    Attach,
    Attached,
    Finished,
    FromStep,
    Input,
    Open,
    Opening,
    Output,
    Program,
    Signal,
    Splice,
    StreamRefused,
    TaskEnded,
    ToStep,
    decode_from_step,
    decode_opening,
    decode_to_step,
    key_digest,
    stream_frames,
)

OPEN = Open(node="n1", job_id=5, run=0, step_id=0, key=bytes(KEY_SIZE))
PROGRAM = Program(
    argv=(b"hostname", b"-s"),
    environment=b"PATH=/bin\0",
    working_directory=b"/home/ada",
    umask=0o022,
    limits=((7, 1024, -1),),
    stdin_path=b"",
    stdout_path=b"out-%t",
    stderr_path=b"",
    appends=False,
    kill_on_bad_exit=True,
    pty=None,
)


def test_openings_arrive_as_they_were_sent() -> None:
    """The step and node go to the agent of srun's own host, which adds the user."""
    splice = Splice(version=STREAM_VERSION, address="10.0.0.1:6818", open=OPEN)
    attach = Attach(version=STREAM_VERSION, cluster_id=bytes(16), uid=1001, gid=100, open=OPEN)
    decoder = FrameDecoder(TO_STEP_LIMIT)
    arrived = decoder.feed(stream_frames(splice) + stream_frames(attach))
    assert [decode_opening(data) for data in arrived] == [splice, attach]


def test_messages_to_a_step_arrive_as_they_were_sent() -> None:
    """A program with an environment of a megabyte, input to all tasks, its end, and a signal."""
    large = replace(PROGRAM, environment=b"x" * (1 << 20))
    sent: list[ToStep] = [PROGRAM, large, Input(EVERY_TASK, b"line\n"), Input(3, b""), Signal(2)]
    arrived = FrameDecoder(TO_STEP_LIMIT).feed(b"".join(map(stream_frames, sent)))
    assert [decode_to_step(data) for data in arrived] == sent


def test_messages_of_a_step_arrive_as_they_were_sent() -> None:
    """The longest piece of output fits its limit, as does all that a supervisor says."""
    sent: list[FromStep] = [
        Attached("n1"),
        Output(0, 1, b"x" * CHUNK_BYTES_MAX),
        Output(STEP_ITSELF, 2, b"slurmstepd: error: ...\n"),
        Output(0, 1, b""),
        TaskEnded(0, 3, 0, False, False),
        Finished(""),
        StreamRefused("unknown-job", "there is no step 5.0 here"),
    ]
    arrived = FrameDecoder(FROM_STEP_LIMIT).feed(b"".join(map(stream_frames, sent)))
    assert [decode_from_step(data) for data in arrived] == sent


@pytest.mark.parametrize(
    "message",
    [
        Output(0, 3, b"x"),
        Output(-2, 1, b"x"),
        Output(0, 1, b"x" * (CHUNK_BYTES_MAX + 1)),
        TaskEnded(0, 256, 0, False, False),
        TaskEnded(0, 0, 128, False, False),
        Signal(0),
        Input(0, b"x" * (CHUNK_BYTES_MAX + 1)),
        Splice(STREAM_VERSION, "a:1", Open("n1", 5, 0, 0, b"short")),
    ],
)
def test_messages_out_of_bounds_are_refused(message: Opening | FromStep | ToStep) -> None:
    """A task -2, a third output, a key that is none: refused whole, by everybody."""
    data = stream_frames(message)[5:]
    with pytest.raises(PeerFault, match="that cannot be read"):
        decode_opening(data)
    with pytest.raises(PeerFault, match="that cannot be read"):
        decode_to_step(data)
    with pytest.raises(PeerFault, match="that cannot be read"):
        decode_from_step(data)


def test_messages_of_one_side_are_not_taken_from_the_other() -> None:
    """A step that sends a program, or an srun that sends output, is refused."""
    with pytest.raises(PeerFault, match="a message of a step that cannot be read"):
        decode_from_step(stream_frames(PROGRAM)[5:])
    with pytest.raises(PeerFault, match="a message to a step that cannot be read"):
        decode_to_step(stream_frames(Finished(""))[5:])


def test_key_digest_tells_keys_apart() -> None:
    """What the log holds says nothing of the key and changes with each bit of it."""
    first, second = bytes(KEY_SIZE), bytes(KEY_SIZE - 1) + b"\1"
    assert key_digest(first) != key_digest(second)
    assert len(key_digest(first)) == 32
    assert first not in key_digest(first)
