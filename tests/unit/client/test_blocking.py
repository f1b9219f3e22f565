"""The blocking client of the command line, against real servers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import spur
from spur.client.blocking import BlockingClient
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.controller.authority import Authority
from spur.server.credentials import write_credentials
from spur.testing.rpc import CLUSTER, EchoServer, ServerThread
from spur.values.errors import PeerFault, Rejection
from spur.values.ids import JobId
from spur.values.states import Hold
from spur.wire.calls import Answered, Call, Refused
from spur.wire.declare import Done
from spur.wire.hello import HostName
from spur.wire.jobs import HoldJob, JobAccepted
from spur.wire.registry import decode_request, encode_answer

DONE = Answered(answer=encode_answer(Done()))
HOLD = HoldJob(job_id=JobId(7), tasks=None, hold=next(iter(Hold)))
NOW = datetime.fromtimestamp(time.time(), UTC)


def replica(path: Path, number: int = 1) -> EchoServer:
    """Return a server that says that it has done what is asked."""
    echo = EchoServer(path, replica=number)
    echo.judge = lambda call: DONE
    return echo


def test_request_is_carried_out(tmp_path: Path) -> None:
    """Someone types a command on the controller."""
    echo = replica(tmp_path)
    with ServerThread(echo), BlockingClient([f"unix:{echo.path}"]) as client:
        assert client.do(HOLD) == Done()
        assert client.do(HOLD) == Done()
        assert client.position == (1, 8)
    (first, actor, _), (second, _, _) = echo.calls
    assert actor.uid == os.getuid()
    assert decode_request(first.request) == HOLD
    assert first.request_id != second.request_id
    assert (first.since, second.since) == (7, 8)


def test_rejection_and_wrong_answer_are_told_apart(tmp_path: Path) -> None:
    """A judged no is a value; an answer of another kind is a fault."""
    echo = replica(tmp_path)
    with ServerThread(echo), BlockingClient([f"unix:{echo.path}"]) as client:
        with pytest.raises(PeerFault, match="no JobAccepted that can be read"):
            client.ask(HOLD, JobAccepted)
        echo.judge = lambda call: Refused(code="unknown-job", text="no job 7")
        assert client.do(HOLD) == Rejection("unknown-job", "no job 7")


def test_leader_is_found_and_large_requests_pass(tmp_path: Path) -> None:
    """The second replica leads; request and answer are larger than a frame."""
    one, two = replica(tmp_path, 1), replica(tmp_path, 2)
    one.judge = lambda call: Refused(code="not-leader", text="this replica does not lead")

    def check(call: Call) -> Answered:
        request = decode_request(call.request)
        return Answered(answer=encode_answer(Done() if request == HOLD else JobAccepted(JobId(1))))

    two.judge = check
    addresses = [f"unix:{echo.path}" for echo in (one, two)]
    with ServerThread(one, two), BlockingClient(addresses) as client:
        assert client.do(HOLD) == Done()
        assert client.do(HOLD) == Done()
    assert (len(one.calls), len(two.calls)) == (1, 2)
    assert one.calls[0][0].request_id == two.calls[0][0].request_id


def test_failover_keeps_the_id(tmp_path: Path) -> None:
    """The leader stops with the request in hand; the other replica carries it out."""
    one, two = replica(tmp_path, 1), replica(tmp_path, 2)
    one.keeps = True
    addresses = [f"unix:{echo.path}" for echo in (one, two)]
    with ServerThread(one, two) as servers, BlockingClient(addresses) as client:
        stopper = threading.Timer(0.1, lambda: servers.run(one.server.close()))
        stopper.start()
        assert client.do(HOLD) == Done()
        stopper.join()
    assert one.calls[0][0].request_id == two.calls[0][0].request_id


def test_silent_leader_is_left(tmp_path: Path) -> None:
    """The leader hangs: another one is asked after the attempt's time."""
    one, two = replica(tmp_path, 1), replica(tmp_path, 2)
    one.keeps = True
    addresses = [f"unix:{echo.path}" for echo in (one, two)]
    with ServerThread(one, two), BlockingClient(addresses, attempt_s=0.1) as client:
        assert client.do(HOLD) == Done()


def test_slow_refusal_at_the_deadline_is_no_unknown_outcome(tmp_path: Path) -> None:
    """No quorum is there, and the agent that passes commands on takes a while to say so each time.

    Whenever the time is over, it is known that nothing was done.
    """
    echo = replica(tmp_path)

    def judge(call: Call) -> Refused:
        time.sleep(0.12)
        return Refused("not-leader", "no controller leads")

    echo.judge = judge
    with ServerThread(echo):
        for hundredths in range(30, 60, 5):
            with (
                BlockingClient([f"unix:{echo.path}"], deadline_s=hundredths / 100) as client,
                pytest.raises(Unreachable, match="nothing was done"),
            ):
                client.do(HOLD)


def test_deadline_is_kept(tmp_path: Path) -> None:
    """No controller at all, and one that never replies: each has its own fault, in time."""
    started_s = time.monotonic()
    with (
        BlockingClient([f"unix:{tmp_path}/none"], deadline_s=0.2) as client,
        pytest.raises(Unreachable, match=r"No such file or directory\); nothing was done"),
    ):
        client.do(HOLD)
    echo = replica(tmp_path)
    echo.keeps = True
    with ServerThread(echo), BlockingClient([f"unix:{echo.path}"], deadline_s=0.3) as client:
        with pytest.raises(OutcomeUnknown, match="no reply in time") as caught:
            client.do(HOLD)
        echo.keeps = False
        unknown = caught.value
        assert client.ask(HOLD, Done, request_id=unknown.request_id, since=unknown.since) == Done()
    assert time.monotonic() - started_s < 5


def test_goodbye_is_told(tmp_path: Path) -> None:
    """The controller is of another cluster: its own sentence is shown, without waiting."""
    echo = replica(tmp_path)
    with (
        ServerThread(echo),
        BlockingClient([f"unix:{echo.path}"], cluster_id=b"x" * 16) as client,
        pytest.raises(Unreachable, match=f"it means cluster {(b'x' * 16).hex()}; this is"),
    ):
        client.do(HOLD)


def test_garbage_is_not_believed(tmp_path: Path) -> None:
    """Something else listens on the socket."""
    path = str(tmp_path / "other")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def speak() -> None:
            connected, _ = listener.accept()
            with connected:
                connected.sendall(b"220 mail.example.org ESMTP\r\n")
                connected.recv(1000)

        thread = threading.Thread(target=speak)
        thread.start()
        with (
            BlockingClient([f"unix:{path}"], deadline_s=5) as client,
            pytest.raises(Unreachable, match="garbage where a frame should begin"),
        ):
            client.do(HOLD)
        thread.join()


def test_tls_is_spoken_where_there_is_a_certificate(tmp_path: Path) -> None:
    """A command on an administrator's host; then one with a foreign certificate."""
    authority = Authority.create(tmp_path / "authority", CLUSTER, NOW)
    other = Authority.create(tmp_path / "other", CLUSTER, NOW)
    files = {
        name: write_credentials(
            tmp_path / name,
            authority.certificate,
            by.issue(HostName(cluster_id=CLUSTER, role=role, id=3), NOW),
        )
        for name, role, by in (
            ("server", "controller", authority),
            ("admin", "admin", authority),
            ("compute", "compute", authority),
            ("foreign", "admin", other),
        )
    }
    echo = replica(tmp_path)
    with ServerThread(echo, files=files["server"]):
        address = f"127.0.0.1:{echo.server.port}"
        with BlockingClient([address], tls=files["admin"]) as client:
            assert client.do(HOLD) == Done()
        with (
            BlockingClient([address], tls=files["foreign"], deadline_s=2) as client,
            pytest.raises(Unreachable, match="it refused our certificate or our TLS"),
        ):
            client.do(HOLD)
    assert [actor.host_role for _, actor, _ in echo.calls] == ["admin"]
    poser = replica(tmp_path)
    with ServerThread(poser, files=files["compute"]):
        address = f"127.0.0.1:{poser.server.port}"
        with (
            BlockingClient([address], tls=files["admin"]) as client,
            pytest.raises(Unreachable, match="which is no controller"),
        ):
            client.do(HOLD)
    assert poser.calls == []


def test_command_line_client_imports_no_event_loop() -> None:
    """The import of the blocking client decides how fast every command starts."""
    heavy = ("asyncio", "ssl", "dataclasses", "logging", "subprocess")
    code = f"""
import sys
import spur.client.blocking
print([name for name in {heavy!r} if name in sys.modules])
"""
    root = str(Path(spur.__file__).parent.parent)
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": root},
    )
    assert found.stdout == "[]\n"
