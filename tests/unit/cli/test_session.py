"""A command's session: what it does when nobody says what became of its request."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from spur.testing.rpc import EchoServer, ServerThread
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import Hold
from spur.wire.calls import Answered, Call, Refused
from spur.wire.declare import Done
from spur.wire.jobs import HoldJob
from spur.wire.registry import encode_answer
from spur_cli.main import main
from spur_cli.slurm import session as module
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals

REQUEST = HoldJob(job_id=JobId(7), tasks=None, hold=Hold.USER)
AGAIN = Refused("ask-again", "no outcome is known")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_S", 0.2)
    monkeypatch.setattr(module, "AGAIN_S", 0.01)


def session_at(echo: EchoServer) -> Session:
    return Session("srun", {"SPUR_SOCKET": echo.path})


def test_what_would_be_left_to_nobody_is_asked_for_until_it_is_known(
    tmp_path: Path, signals: Signals
) -> None:
    """The leader is cut off with srun's step in hand, and its successor knows what came of it."""
    echo = EchoServer(tmp_path)
    known_s = time.monotonic() + 0.7

    def judge(call: Call) -> Answered | Refused:
        return AGAIN if time.monotonic() < known_s else Answered(answer=encode_answer(Done()))

    echo.judge = judge
    with ServerThread(echo):
        session = session_at(echo)
        assert session.ask(REQUEST, Done, held_with=signals) == Done()
        session.close()
    calls = [call for call, _, _ in echo.calls]
    assert len({(call.request_id, call.since) for call in calls}) == 1
    assert len(calls) > 2


def test_other_requests_are_given_up_in_time(tmp_path: Path) -> None:
    """Somebody looks at the queue, and nobody answers for long: that is said, soon."""
    echo = EchoServer(tmp_path)
    echo.judge = lambda call: AGAIN
    began_s = time.monotonic()
    with ServerThread(echo):
        session = session_at(echo)
        refused = session.ask(REQUEST, Done)
        session.close()
    assert isinstance(refused, Rejection)
    assert refused.code == "outcome-unknown"
    assert time.monotonic() - began_s < 1.0


def test_held_request_that_nobody_took_is_given_up_in_time(
    tmp_path: Path, signals: Signals
) -> None:
    """No controller is there at all: nothing was done, and nothing can come of it later."""
    session = Session("srun", {"SPUR_SOCKET": str(tmp_path / "nowhere")})
    refused = session.ask(REQUEST, Done, held_with=signals)
    assert isinstance(refused, Rejection)
    assert refused.code == "unreachable"
    session.close()


def test_held_request_is_given_up_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: Signals
) -> None:
    """The outcome stays unknown: the command ends, and says so."""
    monkeypatch.setattr(module, "HELD_S", 0.5)
    echo = EchoServer(tmp_path)
    echo.judge = lambda call: AGAIN
    with ServerThread(echo):
        session = session_at(echo)
        refused = session.ask(REQUEST, Done, held_with=signals)
        session.close()
    assert isinstance(refused, Rejection)
    assert refused.code == "outcome-unknown"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("after_s", [0.1, 0.5], ids=["first", "later"])
def test_signal_ends_what_is_asked_on_for(
    tmp_path: Path, signals: Signals, number: signal.Signals, after_s: float
) -> None:
    """Nobody knows what became of a request, and its user loses patience."""
    echo = EchoServer(tmp_path)
    echo.judge = lambda call: AGAIN
    began_s = time.monotonic()
    with ServerThread(echo):
        session = session_at(echo)
        threading.Timer(after_s, os.kill, (os.getpid(), number)).start()
        refused = session.ask(REQUEST, Done, held_with=signals)
        session.close()
    assert isinstance(refused, Rejection)
    assert refused.code == "outcome-unknown"
    assert refused.text.startswith("interrupted by a signal: ")
    assert time.monotonic() - began_s < 1.5


@pytest.mark.parametrize(
    "words",
    [
        ("squeue",),
        ("squeue", "-s"),
        ("squeue", "-l"),
        ("squeue", "--start"),
        ("squeue", "-j", "5"),
        ("sinfo",),
        ("sinfo", "-N"),
        ("sinfo", "-R"),
        ("sacct",),
        ("scontrol", "show", "nodes"),
    ],
    ids=" ".join,
)
def test_nothing_is_shown_when_nobody_can_be_asked(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The controllers are down, and a script reads what is written: not even a header."""
    monkeypatch.setenv("SPUR_SOCKET", str(tmp_path / "nowhere"))
    assert main(list(words)) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "Unable to contact slurm controller (connect failure)\n" in told.err


@pytest.mark.parametrize(
    ("program", "said", "status"),
    [
        ("srun", "44", 44),
        ("salloc", "", 1),
        ("srun", "x", 1),
        ("srun", "300", 44),
        ("sinfo", "44", 1),
    ],
)
def test_failure_has_the_exit_status_that_its_user_wants(
    program: str, said: str, status: int
) -> None:
    """A script tells failures of the cluster from those of its program."""
    session = Session(program, {"SLURM_EXIT_ERROR": said})
    assert session.exit_status("SLURM_EXIT_ERROR") == status
