"""What srun passes on and says: a test plays the nodes, over real sockets."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from spur.values.ids import JobId, NodeName
from spur.values.steps import Dealing
from spur.values.tres import NodeShare, cpu_set
from spur.wire.calls import Goodbye, encode
from spur.wire.declare import Done
from spur.wire.frames import FrameDecoder, encode_frames
from spur.wire.steps import CancelStep, StepView
from spur.wire.streams import (
    EVERY_TASK,
    STEP_ITSELF,
    TO_STEP_LIMIT,
    Attached,
    Finished,
    FromStep,
    Input,
    Output,
    Signal,
    StreamRefused,
    TaskEnded,
    ToStep,
    counts,
    decode_to_step,
    stream_frames,
)
from spur_cli.slurm.nodestream import NodeStream
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals
from spur_cli.slurm.stepfiles import StepFiles
from spur_cli.slurm.stepio import StepLoop


class Nodes:
    """The other ends of a step's streams."""

    def __init__(self, *tasks: tuple[int, ...], answer: bool = True) -> None:
        pairs = [socket.socketpair() for _ in tasks]
        self.ends = [pair[1] for pair in pairs]
        self.streams = []
        for number, (mine, pair) in enumerate(zip(tasks, pairs, strict=True), 1):
            pair[0].setblocking(False)
            # Nothing can be dialled but what is there: what breaks off is lost.
            dial = iter(pair[:1]).__next__
            stream = NodeStream(f"n{number}", mine, dial, b"", tried_s=0)
            if answer:
                pair[1].sendall(stream_frames(Attached(stream.node)))
            self.streams.append(stream)
        self.heard: list[list[ToStep]] = [[] for _ in tasks]
        self._decoders = [FrameDecoder(TO_STEP_LIMIT) for _ in tasks]

    def say(self, place: int, *messages: FromStep) -> None:
        """Let a node send."""
        self.ends[place].sendall(b"".join(map(stream_frames, messages)))

    def hear(self, place: int = 0) -> list[ToStep]:
        """Return what has come to a node, waiting for something if nothing has."""
        for data in self._decoders[place].feed(self.ends[place].recv(1 << 20)):
            message = decode_to_step(data)
            if counts(message):
                self.heard[place].append(message)
        return self.heard[place]

    def close(self) -> None:
        """End every stream."""
        for end in self.ends:
            end.close()


class Desk(Session):
    """A session whose controller takes every request and remembers it."""

    def __init__(self) -> None:
        super().__init__("srun", {})
        self.asked: list[Any] = []

    def ask(self, request: Any, expected: Any, *, held_with: Signals | None = None) -> Any:
        self.asked.append(request)
        return Done()


def view(*counts: int) -> StepView:
    """Return a step with so many tasks on each of its nodes."""
    shares = tuple(
        NodeShare(NodeName(f"n{number}"), 1, 0, 0, cpu_set(1), False)
        for number, _ in enumerate(counts, 1)
    )
    return StepView(
        JobId(5), 0, 1, 0, "sleep", 1001, False, shares, counts, Dealing.BLOCK, 1, 1,
        ("",) * len(counts), 0, 0, 30,
    )  # fmt: skip


def loop_of(
    nodes: Nodes,
    signals: Signals,
    *,
    values: dict[str, Any] | None = None,
    files: dict[str, Any] | None = None,
) -> tuple[StepLoop, Desk]:
    """Return the loop of a step on these nodes."""
    usual: dict[str, Any] = {
        "stdin_fd": None,
        "stdin_task": None,
        "stdout_fd": 1,
        "stdout_task": None,
        "stderr_fd": 2,
        "stderr_task": None,
        "stdin_pattern": b"/dev/null",
        "stdout_pattern": b"",
        "stderr_pattern": b"",
        "appends": False,
    }
    desk = Desk()
    loop = StepLoop(
        session=desk,
        step=view(*(len(stream.tasks) for stream in nodes.streams)),
        streams=nodes.streams,
        files=StepFiles(**{**usual, **(files or {})}),
        signals=signals,
        values=values or {},
    )
    return loop, desk


def run(loop: StepLoop, nodes: Nodes, *, meanwhile: Callable[[], None] = lambda: None) -> int:
    """Run a loop to its end, with a thread playing the nodes meanwhile."""
    player = threading.Thread(target=meanwhile)
    player.start()
    try:
        return loop.run()
    finally:
        player.join()
        loop.close()
        nodes.close()


def ended(task: int, exit_code: int = 0, number: int = 0, *, core: bool = False) -> TaskEnded:
    """Return how a task ended."""
    return TaskEnded(task, exit_code, number, core, False)


OVER = Finished("")


def test_output_of_one_task_comes_as_it_is(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Srun hostname: every byte goes where the task wrote it, half lines too."""
    nodes = Nodes((0,))
    nodes.say(0, Attached("n1"), Output(0, 1, b"n1\nhalf"), Output(0, 2, b"oh"), ended(0), OVER)
    assert run(loop_of(nodes, signals)[0], nodes) == 0
    assert capfd.readouterr() == ("n1\nhalf", "oh")


def test_lines_of_several_tasks_stay_whole(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two tasks write half a line each, in turn; the last line has no end."""
    nodes = Nodes((0, 1))
    halves = [
        Output(0, 1, b"aa"),
        Output(1, 1, b"bb"),
        Output(0, 1, b"AA\n"),
        Output(1, 1, b"BB\n"),
    ]
    last = [Output(0, 1, b"end"), Output(0, 1, b""), Output(1, 1, b"")]
    nodes.say(0, *halves, *last, ended(0), ended(1), OVER)
    assert run(loop_of(nodes, signals)[0], nodes) == 0
    assert capfd.readouterr().out == "aaAA\nbbBB\nend"


def test_labels_are_as_wide_as_the_highest_number(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Srun -l -n12: numbers stand below each other; what has no end of line gets one."""
    nodes = Nodes(tuple(range(12)))
    says = [Output(3, 1, b"a\nb"), Output(11, 1, b"c\n"), Output(3, 1, b"")]
    nodes.say(0, *says, *(ended(task) for task in range(12)), OVER)
    assert run(loop_of(nodes, signals, values={"label": True})[0], nodes) == 0
    assert capfd.readouterr().out == " 3: a\n11: c\n 3: b\n"


@pytest.mark.parametrize(
    ("ends", "status", "told"),
    [
        ([ended(0, 7)], 7, "srun: error: n1: task 0: Exited with exit code 7\n"),
        (
            [ended(0, 2), ended(1, 3)],
            3,
            "srun: error: n1: task 0: Exited with exit code 2\n"
            "srun: error: n1: task 1: Exited with exit code 3\n",
        ),
        ([ended(0), ended(1, 1), ended(2, 1)], 1, "n1: tasks 1-2: Exited with exit code 1\n"),
        ([ended(0, 0, 11)], 139, "srun: error: n1: task 0: Segmentation fault\n"),
        ([ended(0, 0, 6, core=True)], 134, "n1: task 0: Aborted (core dumped)\n"),
        (
            [ended(0, 0, 9), ended(1, 4)],
            137,
            "srun: error: n1: task 0: Killed\n"
            "srun: error: n1: task 1: Exited with exit code 4\n"
            "srun: Force Terminated StepId=5.0\n",
        ),
        ([TaskEnded(0, 0, 9, False, True)], 137, "n1: task 0: Out Of Memory\n"),
    ],
)
def test_failures_are_told_and_the_worst_is_the_exit_status(
    signals: Signals,
    capfd: pytest.CaptureFixture[str],
    ends: list[TaskEnded],
    status: int,
    told: str,
) -> None:
    """Tasks fail in all ways; those of a node that end alike are told together."""
    nodes = Nodes(tuple(range(len(ends))))
    nodes.say(0, *ends, OVER)
    assert run(loop_of(nodes, signals)[0], nodes) == status
    assert told in capfd.readouterr().err


def test_input_goes_to_every_task_and_ends(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Echo hello | srun -N2 cat: both nodes get the line, then its end."""
    nodes = Nodes((0,), (1,))
    source, sink = os.pipe()
    os.write(sink, b"hello\n")
    os.close(sink)

    def play() -> None:
        for place in (0, 1):
            while len(nodes.heard[place]) < 2:
                nodes.hear(place)
            nodes.say(place, ended(place), OVER)

    loop, _ = loop_of(nodes, signals, files={"stdin_fd": source, "stdin_pattern": b""})
    assert run(loop, nodes, meanwhile=play) == 0
    os.close(source)
    assert nodes.heard[0] == [Input(EVERY_TASK, b"hello\n"), Input(EVERY_TASK, b"")]
    assert nodes.heard[1] == nodes.heard[0]


def test_input_for_one_task_leaves_the_others_at_its_end(signals: Signals) -> None:
    """Srun -i 1 -n2 cat: task 1 reads, task 0 finds nothing."""
    nodes = Nodes((0, 1))
    source, sink = os.pipe()
    os.write(sink, b"x")
    os.close(sink)

    def play() -> None:
        while len(nodes.heard[0]) < 3:
            nodes.hear()
        nodes.say(0, ended(0), ended(1), OVER)

    files = {"stdin_fd": source, "stdin_task": 1, "stdin_pattern": b""}
    assert run(loop_of(nodes, signals, files=files)[0], nodes, meanwhile=play) == 0
    os.close(source)
    assert nodes.heard[0] == [Input(1, b"x"), Input(1, b""), Input(0, b"")]


def test_output_of_one_task_alone_is_written(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Srun -o 0 -e none: task 1 is not seen, and errors of none."""
    nodes = Nodes((0, 1))
    says = [Output(0, 1, b"x\n"), Output(1, 1, b"y\n"), Output(0, 2, b"e\n")]
    nodes.say(0, *says, ended(0), ended(1), OVER)
    files = {"stdout_task": 0, "stderr_fd": None}
    assert run(loop_of(nodes, signals, files=files)[0], nodes) == 0
    assert capfd.readouterr() == ("x\n", "")


def test_a_node_that_refuses_ends_the_step(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """One of two nodes is not reached: the step is cancelled, and the other's end awaited."""
    nodes = Nodes((0,), (1,), answer=False)
    nodes.say(0, StreamRefused("unreachable", "no agent listens at n1:6818"))
    nodes.say(1, Attached("n2"), ended(1, 0, 15), OVER)
    loop, desk = loop_of(nodes, signals)
    assert run(loop, nodes) == 143
    assert desk.asked == [CancelStep(JobId(5), 0)]
    assert "srun: error: n1: no agent listens at n1:6818\n" in capfd.readouterr().err


def test_a_stream_that_breaks_off_is_a_failure(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """The agent of the only node dies."""
    nodes = Nodes((0,))
    nodes.say(0, Output(0, 1, b"x"))
    nodes.close()
    loop, _ = loop_of(nodes, signals)
    assert run(loop, nodes) == 1
    told = capfd.readouterr()
    assert told.out == "x"
    assert told.err == (
        "srun: error: step_launch_notify_io_failure: aborting, io error with slurmstepd on node 0\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    )


def test_what_is_no_message_ends_the_stream(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Something else listens where the agent should."""
    nodes = Nodes((0,))
    nodes.ends[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert run(loop_of(nodes, signals)[0], nodes) == 1
    assert "garbage where a frame should begin" in capfd.readouterr().err


def test_one_interrupt_asks_and_two_end_the_step(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C, and again at once: the tasks get SIGINT and the step is cancelled."""
    nodes = Nodes((0, 1))
    loop, desk = loop_of(nodes, signals)

    def play() -> None:
        nodes.say(0, ended(1))
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        while not nodes.hear():
            pass
        assert nodes.heard[0] == [Signal(signal.SIGINT)]
        nodes.say(0, ended(0, 0, 2), OVER)

    assert run(loop, nodes, meanwhile=play) == 130
    assert desk.asked == [CancelStep(JobId(5), 0)]
    told = capfd.readouterr().err
    assert "srun: interrupt (one more within 1 sec to abort)\n" in told
    assert "srun: StepId=5.0 task 0: running\nsrun: StepId=5.0 task 1: exited\n" in told
    assert "srun: sending Ctrl-C to StepId=5.0\n" in told
    assert "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n" in told


def test_interrupt_is_passed_on_at_once_where_that_is_wanted(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """--disable-status: the tasks hear the first Ctrl-C, and may go on."""
    nodes = Nodes((0,))
    loop, desk = loop_of(nodes, signals, values={"disable_status": True})

    def play() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while not nodes.hear():
            pass
        assert nodes.heard[0] == [Signal(signal.SIGINT)]
        nodes.say(0, ended(0, 0, 2), OVER)

    assert run(loop, nodes, meanwhile=play) == 130
    assert desk.asked == []
    told = capfd.readouterr().err
    assert told == "srun: sending Ctrl-C to StepId=5.0\nsrun: error: n1: task 0: Interrupt\n"


def test_other_signals_are_passed_on(signals: Signals) -> None:
    """Kill -USR1 of srun reaches the tasks."""
    nodes = Nodes((0,))

    def play() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        while not nodes.hear():
            pass
        assert nodes.heard[0] == [Signal(signal.SIGUSR1)]
        nodes.say(0, ended(0), OVER)

    assert run(loop_of(nodes, signals)[0], nodes, meanwhile=play) == 0


def test_a_step_that_somebody_ends_is_told(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Scancel 5.0 from elsewhere: the node says so before its tasks end."""
    nodes = Nodes((0,))
    words = b"slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-30T12:00:00 ***\n"
    nodes.say(0, Output(STEP_ITSELF, 2, words), ended(0, 0, 15), OVER)
    loop, desk = loop_of(nodes, signals)
    assert run(loop, nodes) == 143
    assert desk.asked == []
    told = capfd.readouterr().err
    assert told.startswith("srun: Job step aborted: Waiting up to 32 seconds")
    assert told.endswith("***\nsrun: error: n1: task 0: Terminated\n")


def test_a_bad_exit_ends_the_others_where_it_was_asked(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Srun -K -n2: the first task fails, the second is ended with the step."""
    nodes = Nodes((0, 1))
    loop, desk = loop_of(nodes, signals, values={"kill_on_bad_exit": True})

    def play() -> None:
        nodes.say(0, ended(0, 3))
        while not desk.asked:
            threading.Event().wait(0.01)
        nodes.say(0, ended(1, 0, 15), OVER)

    assert run(loop, nodes, meanwhile=play) == 143
    told = capfd.readouterr().err
    assert "srun: launch/slurm: _step_signal: Terminating StepId=5.0\n" in told
    assert told.endswith("srun: Force Terminated StepId=5.0\n")


def test_a_step_is_not_waited_for_longer_than_asked(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Srun -W 1 -n2: one task ends, the other would run on."""
    nodes = Nodes((0, 1))
    loop, desk = loop_of(nodes, signals, values={"wait_s": 1})

    def play() -> None:
        nodes.say(0, ended(1))
        while not desk.asked:
            threading.Event().wait(0.01)
        nodes.say(0, ended(0, 0, 9), OVER)

    assert run(loop, nodes, meanwhile=play) == 137
    told = capfd.readouterr().err
    assert told.startswith("srun: First task exited 1s ago\nsrun: StepId=5.0 task 0: running\n")
    assert "Force Terminated" not in told


def test_a_controllers_socket_is_told_apart(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """SPUR_SOCKET names a controller, which hangs up as on any client that makes no sense."""
    nodes = Nodes((0,), answer=False)
    said = encode(Goodbye(code="protocol", text="this is no greeting"))
    nodes.ends[0].sendall(b"".join(encode_frames(said)))
    assert run(loop_of(nodes, signals)[0], nodes) == 1
    told = capfd.readouterr().err
    assert "the socket is no agent's: this is no greeting; name an agent's in SPUR_AGENT" in told


def test_who_ends_srun_wakes_it_and_slurm_says_so_in_its_order(
    signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Timeout(1) sends SIGTERM and right behind it SIGCONT."""
    nodes = Nodes((0,))
    loop, desk = loop_of(nodes, signals)

    def play() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGCONT)
        while not desk.asked:
            threading.Event().wait(0.01)
        nodes.say(0, ended(0, 0, 15), OVER)

    run(loop, nodes, meanwhile=play)
    assert capfd.readouterr().err.startswith(
        "srun: forcing job termination\nsrun: got SIGCONT\nsrun: Job step aborted: Waiting up to"
    )
