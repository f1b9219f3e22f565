"""Whether what a command printed is what was recorded, but for what depends on the moment.

Texts are brought to a common form first: numbers of jobs become the names of the variables that
captured them, points in time and process numbers become tokens. Where two recordings differed, a
step carries a mask: `<*>` stands for any word, `<**>` for any line.

A replay is not as quick as the recording was, so what runs has run for longer by then: a text that
differs in lengths of time alone is the same, if all that grew did so by one amount, and all that is
left shrank by it.

Source: the README of the recordings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spur.testing.conformance.cases import Step

__all__ = ["differs", "normalise"]

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_PORTS = (
    "SLURM_TASK_PID|SLURM_STEP_LAUNCHER_PORT|SLURM_SRUN_COMM_PORT|SLURM_LAUNCH_NODE_IPADDR"
    "|SLURM_STEPMGR|SRUN_DEBUG_PORT|SLURM_PMI_PORT"
)
_PMI = (
    r"SLURM_PMI2?_KVS_\w+|PMI_FD|SLURM_PMI2_SRUN_PORT|SLURM_PMI2_STEP_NODES"
    "|SLURM_PMI_KVS_NO_DUP_KEYS"
)

_TOKENS = tuple(
    (re.compile(pattern), token)
    for pattern, token in (
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "<TIME>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d(?!:)", "<TIME>"),
        (rf"{_DAY},? {_MONTH} [ \d]\d \d\d:\d\d:\d\d \d{{4}}", "<CTIME>"),
        (rf"{_DAY}, \d\d {_MONTH} \d{{4}} \d\d:\d\d:\d\d [+-]\d{{4}}", "<CTIME>"),
        (r"(?<![\d.])(?:17|18|19)\d{8}(?![\d.])", "<EPOCH>"),
        (r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", "<JWT>"),
        (rf"({_PORTS})=\S+", r"\1=<N>"),
        (rf"({_PMI})=\S*", r"\1=<N>"),
        (r"(AllocNode:Sid=\w+):\d+", r"\1:<SID>"),
        (r"\b(CPULoad|FreeMem|RunTime|SecsPreSuspend)=\S+", r"\1=<N>"),
        (r"(OS=).*", r"\1<OS>"),
        (r"\(login:\d+\)", "(login:<SID>)"),
    )
)

NEIGHBOURS = 5
"""Numbers behind a captured one that are named after it: tasks and components of a submission."""


def normalise(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with what depends on the moment or the machine replaced by tokens."""
    numbers = sorted(
        ((value, name) for name, value in variables.items() if re.fullmatch(r"\d{3,}", value)),
        key=lambda pair: -len(pair[0]),
    )
    for value, name in numbers:
        text = _replaced(text, value, f"<{name}>")
    for value, name in numbers:
        for step in range(1, NEIGHBOURS + 1):
            text = _replaced(text, str(int(value) + step), f"<{name}+{step}>")
    for pattern, token in _TOKENS:
        text = pattern.sub(token, text)
    return text


def _replaced(text: str, number: str, token: str) -> str:
    return re.sub(rf"(?<!\d){number}(?!\d)", lambda _: token, text) if number in text else text


def differs(
    step: Step,
    *,
    stdout: str,
    stderr: str,
    exit_code: int | None,
    variables: Mapping[str, str],
    recorded: Mapping[str, str],
) -> str:
    """Return what differs from the record, in one sentence; empty when nothing does.

    `exit_code` is None for a command that did not end by itself. `variables` and `recorded` are
    what was captured now and then.
    """
    streams = (
        ("stdout", stdout, step.stdout, step.stdout_masked, step.stdout_unstable),
        ("stderr", stderr, step.stderr, step.stderr_masked, step.stderr_unstable),
    )
    for name, actual, text, mask, is_unstable in streams:
        if is_unstable:
            continue
        wanted = normalise(text, recorded) if mask is None else mask
        shown = normalise(actual, variables)
        reason = _first_difference(wanted, shown)
        if reason and _is_later(wanted, shown):
            reason = ""
        if reason:
            return f"{name}: {reason}"
    if step.exit_code_unstable or step.exit_code == "timeout":
        return ""
    if exit_code is None:
        return "it did not end by itself"
    if exit_code != step.exit_code:
        return f"exit status: expected {step.exit_code}, got {exit_code}"
    return ""


def _first_difference(wanted: str, actual: str) -> str:
    lines, given = wanted.split("\n"), actual.split("\n")
    for number, (line, got) in enumerate(zip(lines, given, strict=False), 1):
        if not _fits(line, got):
            return f"line {number}: expected {line!r}, got {got!r}"
    if len(lines) != len(given):
        return f"{len(given)} lines, expected {len(lines)}"
    return ""


_LENGTH = re.compile(r"(?<![\d:-])(?:(\d+)-)?(?:(\d\d?):)?(\d\d?):(\d\d)(?![\d:-])")

LATER_S_MAX = 600
"""The most that a replay is behind the record."""

SKEW_S = 20
"""By how much lengths of one text may differ in what they grew by: jobs began one after another,
and that took longer too."""


def _is_later(wanted: str, actual: str) -> bool:
    """Whether two texts differ only in how long ago things began."""
    lines, given = wanted.split("\n"), actual.split("\n")
    if len(lines) != len(given):
        return False
    moved: list[int] = []
    for line, got in zip(lines, given, strict=True):
        if _fits(line, got):
            continue
        if len(line) != len(got) or _LENGTH.sub("<L>", line) != _LENGTH.sub("<L>", got):
            return False
        lengths = zip(_LENGTH.finditer(line), _LENGTH.finditer(got), strict=True)
        moved += [abs(_seconds(after) - _seconds(before)) for before, after in lengths]
    moved = [seconds for seconds in moved if seconds]
    return max(moved) <= LATER_S_MAX and max(moved) - min(moved) <= SKEW_S


def _seconds(length: re.Match[str]) -> int:
    days, hours, minutes, seconds = (int(part or 0) for part in length.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _fits(wanted: str, got: str) -> bool:
    if wanted == "<**>":
        return True
    if "<*>" not in wanted:
        return wanted == got
    words, given = wanted.split(), got.split()
    return len(words) == len(given) and all(
        word in ("<*>", other) for word, other in zip(words, given, strict=True)
    )
