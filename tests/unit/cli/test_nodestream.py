"""One node's stream over connections that break off: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from spur.wire.frames import FrameDecoder
from spur.wire.streams import (
    EVERY_TASK,
    TO_STEP_LIMIT,
    Attached,
    Begin,
    Finished,
    FromStep,
    Input,
    Output,
    StreamRefused,
    Taken,
    ToStep,
    decode_to_step,
    stream_frames,
)
from spur_cli.slurm.nodestream import Lost, NodeStream


class Agent:
    """This host's agent, as often as it is dialled."""

    def __init__(self) -> None:
        self.ends: list[socket.socket] = []
        self.is_there = True

    def dial(self) -> socket.socket:
        """Take a connection."""
        if not self.is_there:
            raise ConnectionRefusedError("nobody listens")
        mine, theirs = socket.socketpair()
        mine.setblocking(False)
        self.ends.append(theirs)
        return mine

    def say(self, *messages: FromStep) -> None:
        """Speak as the node, over the newest connection."""
        self.ends[-1].sendall(b"".join(map(stream_frames, messages)))

    def heard(self, opening: bytes = b"open") -> list[ToStep]:
        """Return all that came over the newest connection, behind its opening."""
        self.ends[-1].settimeout(5)
        data = self.ends[-1].recv(1 << 16)
        assert data.startswith(opening)
        decoder = FrameDecoder(TO_STEP_LIMIT)
        return [decode_to_step(each) for each in decoder.feed(data[len(opening) :])]


@pytest.fixture
def agent() -> Iterator[Agent]:
    """Yield an agent that is there."""
    made = Agent()
    yield made
    for end in made.ends:
        end.close()


def again(stream: NodeStream) -> None:
    """Wait until another connection may be tried, and try it."""
    assert stream.due_s is not None
    time.sleep(max(0.0, stream.due_s - time.monotonic()))
    stream.try_again()


def test_nothing_but_the_opening_is_sent_before_the_node_has_answered(agent: Agent) -> None:
    """The relay knows nobody yet and takes a short message alone; a program is a long one."""
    stream = NodeStream("n1", (0,), agent.dial, b"open")
    stream.send(Input(EVERY_TASK, b"a"))
    assert agent.heard() == []
    agent.say(Attached("n1"))
    assert stream.receive() == []
    assert agent.heard(b"") == [Begin(0), Input(EVERY_TASK, b"a")]
    stream.close()


def test_a_stream_goes_on_where_it_broke_off(agent: Agent) -> None:
    """The node had taken one message of two, and srun two of three, when the agent was killed."""
    stream = NodeStream("n1", (0,), agent.dial, b"open")
    agent.say(Attached("n1"))
    assert stream.receive() == []
    stream.send(Input(EVERY_TASK, b"one"))
    stream.send(Input(EVERY_TASK, b"two"))
    said = [Output(0, 1, b"a"), Output(0, 1, b"b")]
    agent.say(*said)
    assert stream.receive() == said
    agent.ends[-1].close()
    assert stream.receive() == []
    assert stream.fileno() == -1
    stream.send(Input(EVERY_TASK, b"three"))
    again(stream)
    agent.say(Attached("n1", 1))
    stream.receive()
    assert agent.heard() == [
        Begin(2),
        Input(EVERY_TASK, b"two"),
        Input(EVERY_TASK, b"three"),
    ]
    agent.say(Output(0, 1, b"c"), Finished(""))
    assert stream.receive() == [Output(0, 1, b"c"), Finished("")]
    stream.is_over = True
    stream.tell_taken()
    assert decode_to_step(FrameDecoder(TO_STEP_LIMIT).feed(agent.ends[-1].recv(100))[0]) == Taken(4)
    stream.close()


def test_an_agent_that_is_away_for_a_moment_is_dialled_until_it_is_back(agent: Agent) -> None:
    """The agent of this host is started again, and then that of the node."""
    stream = NodeStream("n1", (0,), agent.dial, b"open")
    agent.say(Attached("n1"))
    stream.receive()
    agent.is_there = False
    agent.ends[-1].close()
    stream.receive()
    again(stream)
    agent.is_there = True
    again(stream)
    agent.say(StreamRefused("unreachable", "the agent at n1:6818 cannot be reached"))
    assert stream.receive() == []
    again(stream)
    agent.say(Attached("n1"))
    assert stream.receive() == []
    assert stream.due_s is None
    stream.close()


def test_tries_are_bounded_and_the_first_reason_is_told(agent: Agent) -> None:
    """Nobody starts the agent again."""
    stream = NodeStream("n1", (0,), agent.dial, b"open", tried_s=0.1)
    agent.say(Attached("n1"))
    stream.receive()
    agent.is_there = False
    agent.ends[-1].close()
    stream.receive()
    until_s = time.monotonic() + 0.1
    while time.monotonic() < until_s - 0.06:
        again(stream)
    time.sleep(0.1)
    with pytest.raises(Lost, match="its stream ended"):
        again(stream)


@pytest.mark.parametrize("code", ["unknown-job", "not-permitted", "foreign-peer"])
def test_a_refusal_that_trying_again_does_not_mend_is_final(agent: Agent, code: str) -> None:
    """The step is not there, or somebody else's."""
    stream = NodeStream("n1", (0,), agent.dial, b"open")
    agent.say(StreamRefused(code, "the step is over on n1"))
    with pytest.raises(Lost, match="the step is over on n1"):
        stream.receive()
    stream.close()


def test_a_node_that_has_taken_what_was_never_said_is_none_of_ours(agent: Agent) -> None:
    """Whoever answers keeps another count."""
    stream = NodeStream("n1", (0,), agent.dial, b"open")
    agent.say(Attached("n1", 3))
    with pytest.raises(Lost, match="3 messages were taken of a stream, and 0 to 0 may have been"):
        stream.receive()
    stream.close()
