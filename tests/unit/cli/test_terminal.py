"""What users wrote does not steer the terminal of those who look at it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spur_cli.output.terminal import visible

CODE = """
import sys
from spur_cli.slurm.session import guarded
def work(session):
    sys.stdout.write("a\\x1b[2Jb\\tc\\n")
    return 0
sys.exit(guarded(sys.argv[1], work))
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ümlaut, 日本\n", "plain, ümlaut, 日本\n"),
        ("a\tb", "a\tb"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("over\rwritten\b", "over\\x0dwritten\\x08"),
        ("\x07\x7f\x9b2J", "\\x07\\x7f\\x9b2J"),
    ],
)
def test_what_would_steer_is_shown(text: str, shown: str) -> None:
    """A comment tries to clear the screen."""
    assert visible(text) == shown


def told(program: str, *, terminal: bool) -> bytes:
    """Return what a command writes on a terminal, or into a pipe."""
    argv = [sys.executable, "-c", CODE, program]
    if not terminal:
        return subprocess.run(argv, capture_output=True, check=True).stdout
    ours, theirs = os.openpty()
    try:
        subprocess.run(argv, stdout=theirs, check=True)
        return os.read(ours, 1_000)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_pipe_gets_what_slurm_writes() -> None:
    """A script compares the comment with what it set."""
    assert told("squeue", terminal=False) == b"a\x1b[2Jb\tc\n"


def test_a_terminal_gets_what_can_be_seen() -> None:
    """An administrator looks at the queue; what srun's tasks write is theirs."""
    assert b"a\\x1b[2Jb" in told("squeue", terminal=True)
    assert b"a\x1b[2Jb" in told("srun", terminal=True)
