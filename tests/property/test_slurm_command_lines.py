"""Whatever stands on a command line or in a script, it is answered in Slurm's way: never a fault.

No controller is there. A command line that makes sense ends in the sentence that says so; any other
in the sentence of what is wrong with it. Cases that were found stay as examples.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

from spur.slurm.optionrows import Option, Takes
from spur.slurm.options import OPTIONS
from spur.values.errors import Rejection
from spur_cli.main import main
from spur_cli.slurm.session import Session

PROGRAMS = tuple(sorted(OPTIONS))

COMMAND_LINES = 250
"""For each program: enough for a few seconds in all."""

SCRIPTS = 400

WAITS = frozenset({"iterate", "wait", "interactive"})
"""Options that wait for time or a person."""

VALUES = (
    "", " ", "0", "1", "4-2", "2-",
    "-3", "+5", "1e9", "99999999999999999999999", "0x10", "1k", "4G",
    "10:00", "1-0:0:0", "::", "now+1hour",
    "16:00", "2030-01-20T12:34", "tomorrow", "now+", "uts-1",
    "n[1-4]", "n[1-", "n]1", "n[3-1]", ",", "a,,b", "gpu:2", "gpu:a:b:c", "gpu=", "nosuch:1",
    "0-15%4", "1-5:0", "5-1", "0-1000000",
    "afterok:1", "afterok", "after:1+x", "singleton", "1?2",
    "TERM@60", "B:", "@", "SIGNONE", "a&b|c",
    "[a|b", "(((((", "a*2", "!", "matlab:1", "matlab:-1",
    "all", "none", "user", "block:cyclic", "%i %j",
    "%", "%999999999999i", "%.q", "name:x", "-O",
    "RUNNING,PD", "nosuchstate", "1.batch", "1.", "1_2",
    "1_[1-3]", "1_[", "1+2", "\udcff", "é",
    "-", "--", "=", "'", '"', "\\", "\n", "NodeName=n1", "job=1", "x" * 300,
)  # fmt: skip
"""Good and bad values of all grammars, for whichever option."""

WORDS = (
    "", "job.sh", "/nonexistent", ".", "show",
    "job", "jobs", "node", "hostnames", "update", "JobId=1",
    "NodeName=n1", "State=", "=", "add", "account",
    "where", "set", "delete", "hold", "release", "1",
    "1_2", "abc", "ping", "create", "reservation",
    "requeue", "1,2", "-1", "list", "qos", "user",
)  # fmt: skip


class Chance(random.Random):
    """Draws from a seed: the same command lines each time."""

    def words(self, program: str) -> list[str]:
        """Return a command line that a tired person might type."""
        words: list[str] = []
        for _ in range(self.randrange(5)):
            words += self._option(self.choice(OPTIONS[program]))
        for _ in range(self.randrange(4)):
            words.insert(self.randrange(len(words) + 1), self.choice(WORDS))
        return words

    def _option(self, option: Option) -> list[str]:
        if option.long in WAITS or option.field in WAITS:
            return []
        value = self.choice(VALUES)
        if option.short and (not option.long or self.random() < 0.4):
            glued = option.takes is not Takes.NOTHING and self.random() < 0.5
            return [f"-{option.short}{value}"] if glued else [f"-{option.short}", value]
        name = option.long[: self.randrange(2, len(option.long) + 1)]
        name = option.long if self.random() < 0.8 else name
        if option.takes is Takes.NOTHING and self.random() < 0.8:
            return [f"--{name}"]
        return [f"--{name}={value}"] if self.random() < 0.7 else [f"--{name}", value]

    def script(self) -> str:
        """Return a batch script with directives, good and bad."""
        lines = [self.choice(("#!/bin/sh", "#!/bin/bash", "", "#SBATCH", "echo"))]
        for _ in range(self.randrange(6)):
            mark = self.choice(("#SBATCH", "#SBATCH", "#PBS", "#BSUB", "# SBATCH", "#SBATCH\t"))
            words = self._option(self.choice(OPTIONS["sbatch"]))
            quote = self.choice(("", "", "", "'", '"', "\\"))
            lines.append(f"{mark} {' '.join(words)}{quote}{self.choice(('', ' # why', ' hetjob'))}")
        lines.append(self.choice(("true", "", "\r", "exit 1")))
        return self.choice(("\n", "\n", "\n", "\r\n", "")).join(lines)


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no controller be there, and nothing of the shell's in the environment."""

    def refuse(*_: Any, **__: Any) -> Rejection:
        return Rejection("unreachable", "no controller answers")

    monkeypatch.setattr(Session, "ask", refuse)
    for name in ("SLURM_CONF", "SPUR_SOCKET"):
        monkeypatch.delenv(name, raising=False)


def answered(arguments: list[str], typed: str = "") -> tuple[int, str]:
    """Run a command; return its exit status and what it said of what is wrong."""
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = (
        sys.stdin,
        io.TextIOWrapper(io.BytesIO(typed.encode("utf-8", "surrogateescape"))),
    )
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = main(["spur", *arguments])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdin = stdin
    return status, err.getvalue()


def judge(arguments: list[str], typed: str = "") -> str:
    """Return what is wrong with a command's answer; empty when nothing is."""
    try:
        status, said = answered(arguments, typed)
    except Exception as error:  # this is what is looked for
        return f"{arguments!r} {typed!r}: {type(error).__name__}: {error}"
    if "Traceback" in said or not 0 <= status <= 255 or status in (70, 74):
        return f"{arguments!r} {typed!r}: status {status}: {said[-400:]}"
    is_quiet = any(word.startswith(("-Q", "--q")) for word in arguments)
    if status and not said.strip() and not is_quiet:
        return f"{arguments!r} {typed!r}: status {status} and no word"
    return ""


def lines_of(program: str) -> Iterator[list[str]]:
    """Yield the command lines of a program."""
    chance = Chance(f"{program} 1")
    for _ in range(COMMAND_LINES):
        yield [program, *chance.words(program)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_command_line_is_a_fault(program: str) -> None:
    """Options in any order and spelling, with values of any other option."""
    assert [wrong for line in lines_of(program) if (wrong := judge(line))] == []


def test_no_script_is_a_fault() -> None:
    """Directives of three batch systems, quotes that nobody closes, other line ends."""
    chance = Chance("scripts 1")
    scripts = [chance.script() for _ in range(SCRIPTS)]
    assert [wrong for script in scripts if (wrong := judge(["sbatch"], script))] == []
