"""Streams of steps from one host to another: joined for who has the key, refused for all others."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from spur.agent.manifest import LOCK
from spur.controller.authority import Authority
from spur.server.agentsettings import TLS_DIRECTORY
from spur.server.credentials import write_credentials
from spur.testing.agentprocess import AgentProcess
from spur.testing.attempts import SPEC
from spur.testing.leader import CLUSTER_ID, Leader
from spur.testing.orders import kill_order, order_for, step_order
from spur.values.states import NodeShareState
from spur.wire.frames import FrameDecoder
from spur.wire.hello import HostName
from spur.wire.streams import (
    FROM_STEP_LIMIT,
    STREAM_VERSION,
    Attached,
    Begin,
    Finished,
    FromStep,
    Open,
    Output,
    Program,
    Splice,
    StreamRefused,
    Taken,
    TaskEnded,
    counts,
    decode_from_step,
    key_digest,
    stream_frames,
)

ADDRESS = "127.0.0.1:23230"
KEY = b"k" * 32
OPEN = Open(node="n1", job_id=5, run=0, step_id=0, key=KEY)
PATIENCE_S = 20.0


class Srun:
    """What srun is to its own host's agent."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))

    def open(self, opened: Open = OPEN, *, address: str = ADDRESS, script: str = "") -> None:
        """Ask for a stream, and say in the same breath what is to be executed."""
        program = Program(
            argv=(b"/bin/sh", b"-c", script.encode()),
            environment=b"PATH=/usr/bin:/bin\0FILLER=" + b"x" * 4000 + b"\0",
            working_directory=b"/",
            umask=0o022,
            limits=(),
            stdin_path=b"",
            stdout_path=b"",
            stderr_path=b"",
            appends=False,
            kill_on_bad_exit=False,
            pty=None,
        )
        splice = Splice(version=STREAM_VERSION, address=address, open=opened)
        for message in (splice, Begin(0), program):
            self.socket.sendall(stream_frames(message))

    def hear(self) -> list[FromStep]:
        """Return all that comes until the stream ends."""
        decoder = FrameDecoder(FROM_STEP_LIMIT)
        heard: list[FromStep] = []
        while data := self.socket.recv(1 << 16):
            found = [decode_from_step(each) for each in decoder.feed(data)]
            heard += [each for each in found if not isinstance(each, Taken)]
            self.socket.sendall(stream_frames(Taken(sum(map(counts, heard)))))
            if heard and isinstance(heard[-1], Finished):
                break
        self.socket.close()
        return heard


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leader]:
    """Yield a leader that listens."""
    with Leader(tmp_path) as made:
        yield made


@pytest.fixture
def login(tmp_path: Path, leader: Leader) -> Iterator[Path]:
    """Yield the socket of a login host's agent, beside that of node n1 which runs too."""
    now = datetime.fromtimestamp(time.time(), UTC)
    authority = Authority.create(tmp_path / "authority", CLUSTER_ID, now)
    agents = []
    for number, role, more in (
        (1, "compute", f'nodes = ["n1"]\naddress = "{ADDRESS}"\n'),
        (2, "login", ""),
    ):
        agent = AgentProcess(tmp_path / role)
        agent.configure(
            f'cluster_id = "{CLUSTER_ID.hex()}"\ncontrollers = ["{leader.address}"]\n'
            f"attend_ms = 500\n{more}"
        )
        name = HostName(cluster_id=CLUSTER_ID, role=role, id=number)
        issued = authority.issue(name, now)
        write_credentials(agent.directory / TLS_DIRECTORY, authority.certificate, issued)
        agent.start()
        agents.append(agent)
    path = agents[1].directory / "spurd.sock"
    until_s = time.monotonic() + PATIENCE_S
    while not path.exists() or not leader.registered:
        assert time.monotonic() < until_s, agents[1].words() + agents[0].words()
        time.sleep(0.02)
    yield path
    leader.tell(kill_order("n1", 5), owed=False)
    for agent in agents:
        agent.kill()
    for lock in agents[0].spool.glob(f"*/{LOCK}"):
        words = lock.read_text().strip()
        if words and Path(f"/proc/{words}/cmdline").exists():
            os.kill(int(words), signal.SIGKILL)


def hold(leader: Leader) -> None:
    """Have an allocation without a script on the node."""
    leader.tell(order_for("n1", 5, spec=replace(SPEC, batch=False)))
    leader.wait_for(5, NodeShareState.LAUNCHED)


def test_step_is_streamed_from_its_node(leader: Leader, login: Path) -> None:
    """Srun on a login host runs a command on a node, and gets what it writes; the end is told."""
    hold(leader)
    srun = Srun(login)
    srun.open(script="echo out; echo err >&2; exit 3")
    time.sleep(0.2)
    leader.tell(step_order("n1", 5, 0, uid=os.geteuid(), key_digest=key_digest(KEY)))
    heard = srun.hear()
    assert heard[0] == Attached("n1")
    written = dict.fromkeys((1, 2), b"")
    for message in heard:
        if isinstance(message, Output):
            written[message.fd] += message.data
    assert written == {1: b"out\n", 2: b"err\n"}
    assert [one.exit_code for one in heard if isinstance(one, TaskEnded)] == [3]
    leader.wait_until(lambda: "ENDED" in leader.states_of(5))
    [report] = [one for one in leader.reports if one.state is NodeShareState.ENDED]
    assert report.exit_code == 3


@pytest.mark.parametrize("size", [600_000, 8 << 20], ids=["ends-unread", "waits-for-reader"])
def test_much_is_streamed_as_fast_as_it_is_read(leader: Leader, login: Path, size: int) -> None:
    """A command writes much to somebody who reads seconds later: all of it comes.

    It may have ended long before, with all it wrote on its way and nobody taking it.
    """
    hold(leader)
    srun = Srun(login)
    srun.open(script=f"head -c {size} /dev/zero")
    leader.tell(step_order("n1", 5, 0, uid=os.geteuid(), key_digest=key_digest(KEY)))
    time.sleep(3.0)
    heard = srun.hear()
    assert sum(len(one.data) for one in heard if isinstance(one, Output)) == size
    assert heard[-1] == Finished("")


def test_agent_that_does_not_answer_is_said_so(leader: Leader, login: Path) -> None:
    """A node's agent hangs: its host takes the connection, and then nothing comes."""
    hold(leader)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        srun = Srun(login)
        srun.open(address=f"127.0.0.1:{mute.getsockname()[1]}")
        [refused] = srun.hear()
    assert isinstance(refused, StreamRefused)
    assert refused.text.endswith("cannot be reached: it did not answer within 5 seconds")


@pytest.mark.parametrize(
    ("opened", "address", "code"),
    [
        (replace(OPEN, key=b"g" * 32), ADDRESS, "not-permitted"),
        (OPEN, "127.0.0.1:1", "unreachable"),
        (OPEN, "nowhere", "unreachable"),
    ],
    ids=["guessed-key", "dead-host", "no-address"],
)
def test_stream_is_refused_with_its_reason(
    leader: Leader, login: Path, opened: Open, address: str, code: str
) -> None:
    """Somebody else's step, a host that does not answer, an address that is none."""
    hold(leader)
    leader.tell(step_order("n1", 5, 0, uid=os.geteuid(), key_digest=key_digest(KEY)))
    srun = Srun(login)
    srun.open(opened, address=address)
    [refused] = srun.hear()
    assert isinstance(refused, StreamRefused)
    assert refused.code == code


def test_step_of_a_run_that_is_over_is_refused(leader: Leader, login: Path) -> None:
    """The job ended between srun's start of a step and its stream: the step is void."""
    hold(leader)
    leader.tell(kill_order("n1", 5))
    leader.wait_for(5, NodeShareState.ENDED)
    leader.tell(step_order("n1", 5, 0, uid=os.geteuid(), key_digest=key_digest(KEY)))
    leader.wait_for(5, NodeShareState.VOID)
    srun = Srun(login)
    srun.open()
    [refused] = srun.hear()
    assert isinstance(refused, StreamRefused)
    assert refused.code == "unknown-job"
