"""Slurm's commands and variables inside the body of a script, as far as they can be seen.

    srun -n 4 ./a.out | tee log        ->  line 7: srun, with its words

It is read as a shell reads it, roughly: what a variable or a substitution stands for is not known,
and values with a $ are not judged. Here-documents are passed over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from spur.slurm.jobenv import TABLE
from spur.slurm.options import OPTIONS
from spur.slurm.variables import variables_of

__all__ = ["ABSENT", "Call", "calls_in", "unset_variables", "used_variables"]

ABSENT = {
    "sgather": "copy the files with srun and cp",
    "sh5util": "no profiles are taken",
    "sview": "use squeue, sinfo and scontrol",
    "smap": "use squeue, sinfo and scontrol",
    "slurmrestd": "there is no REST server",
}
"""Commands of Slurm that are not there at all, and what to do instead."""

_OTHERS = frozenset(
    [
        "SLURM_SUBMIT_DIR",
        "SLURM_SUBMIT_HOST",
        "SLURM_EXPORT_ENV",
        "SLURM_GET_USER_ENV",
        "SLURM_PRIO_PROCESS",
        "SLURM_LAUNCH_NODE_IPADDR",
        "SLURM_SRUN_COMM_HOST",
        "SLURM_SRUN_COMM_PORT",
        "SLURM_STEP_NODELIST",
        "SLURM_STEP_NUM_NODES",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_STEP_ID",
        "SLURM_STEPID",
        "SLURM_STEP_GPUS",
        "SLURM_STEP_LAUNCHER_PORT",
        "SLURM_UMASK",
        "SLURM_CPU_BIND",
        "SLURM_CPU_BIND_LIST",
        "SLURM_CPU_BIND_TYPE",
        "SLURM_CPU_BIND_VERBOSE",
        "SLURM_CPU_FREQ_REQ",
        "SLURM_TASK_PID",
        "SLURM_PTY_PORT",
        "SLURM_PTY_WIN_COL",
        "SLURM_PTY_WIN_ROW",
        "SLURM_HET_SIZE",
        "SLURM_RLIMIT_NOFILE",
        "SLURM_DEBUG",
    ]
)
"""Variables that steps find, or that go with a submission."""

_USED = re.compile(r"\b(SLURMD?_[A-Z][A-Z0-9_]*)\b")
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_BEFORE = frozenset(
    [
        "then",
        "do",
        "else",
        "elif",
        "if",
        "while",
        "until",
        "!",
        "exec",
        "time",
        "nohup",
        "env",
        "command",
        "nice",
        "timeout",
        "sudo",
        "{",
        "(",
    ]
)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")


class Call(NamedTuple):
    """One call of a command."""

    line: int
    command: str
    words: tuple[str, ...]


def calls_in(body: str) -> Iterator[Call]:
    """Yield the calls of Slurm's commands in a shell's script."""
    for number, line in _lines(body):
        try:
            tokens = _tokens(line)
        except ValueError:
            tokens = line.split()
        yield from _calls(number, tokens)


def _lines(body: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines with the number of their first; comments and documents are left out."""
    ends: list[str] = []
    begun, text = 0, ""
    for number, line in enumerate(body.split("\n"), 1):
        if ends:
            if line.strip() == ends[0]:
                ends.pop(0)
            continue
        if not text:
            begun = number
            if line.lstrip().startswith("#"):
                continue
        if line.endswith("\\"):
            text += line[:-1] + " "
            continue
        text += line
        ends = [match[2] for match in _HERE.finditer(text)]
        yield begun, text
        text = ""
    if text:
        yield begun, text


def _tokens(line: str) -> list[str]:
    plain = line.replace("`", " ; ").replace('"$(', " $( ").replace(')"', " ) ")
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    return list(lexer)


def _calls(number: int, tokens: list[str]) -> Iterator[Call]:
    is_command = True
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if _is_between(token):
            is_command = True
            continue
        if not is_command:
            continue
        name = token.rpartition("/")[2]
        if name in OPTIONS or name in ABSENT:
            end = place
            while end < len(tokens) and not _is_between(tokens[end]):
                end += 1
            yield Call(number, name, tuple(tokens[place:end]))
            # What a launcher runs may be another of them.
            is_command = name == "salloc"
            continue
        is_command = token in _BEFORE or bool(_ASSIGNED.match(token)) or token == "$"


def _is_between(token: str) -> bool:
    return bool(token) and all(letter in ";&|()<>" for letter in token)


def used_variables(text: str) -> dict[str, int]:
    """Return Slurm's variables that a script names, with the first line of each."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#"):
            continue
        for name in _USED.findall(line):
            found.setdefault(name, number)
    return found


def unset_variables(text: str) -> dict[str, int]:
    """Return those of them that nobody sets or reads here, and that the script does not set."""
    known = {*TABLE, *_OTHERS}
    for command in OPTIONS:
        known.update(variables_of(command))
    own = set(re.findall(r"\b(SLURMD?_[A-Z0-9_]*)=", text))
    return {
        name: line
        for name, line in used_variables(text).items()
        if name not in known and name not in own and "_HET_GROUP_" not in name
    }
