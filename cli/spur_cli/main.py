"""The entry point: finds the command meant, runs it, and turns faults into exit statuses.

Exit statuses: 0 done, 1 judged no or fault, 2 the command line was wrong, 141 the reader of our
output went away (as a shell reports SIGPIPE), 130 interrupted. Output that can't be written is a
fault, a complaint that can't be is none; a standard file that is closed takes all and gives
nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from spur_cli.registry import COMMANDS, Command, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["main"]

_USAGE_STATUS = 2
_INTERRUPTED_STATUS = 130
_BROKEN_PIPE_STATUS = 141


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status. `argv` includes the program's name."""
    _open_what_is_closed()
    stderr = sys.stderr
    sys.stderr = _Complaints(stderr)
    try:
        return _main(sys.argv if argv is None else argv)
    finally:
        sys.stderr = stderr


def _main(called: list[str]) -> int:
    name = os.path.basename(called[0])
    arguments = called[1:]
    is_alias = any(row.alias == name for row in COMMANDS)
    if not is_alias and arguments and arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(_overview(COMMANDS))
        return 0
    if not is_alias and arguments and arguments[0] in ("-V", "--version"):
        arguments = ["version", *arguments[1:]]
    found = find(name, arguments)
    if found is None and arguments[1:2] in (["-h"], ["--help"]):
        started = [row for row in COMMANDS if row.words[0] == arguments[0]]
        if started:
            sys.stdout.write(_overview(started))
            return 0
    if found is None:
        sys.stderr.write(_not_found(arguments))
        return _USAGE_STATUS
    command, rest = found
    try:
        status = _run(command, rest)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED_STATUS
    except BrokenPipeError:
        _stop_writing()
        return _BROKEN_PIPE_STATUS
    except OSError as error:
        _stop_writing()
        program = name if is_alias else f"spur {' '.join(command.words)}"
        place = f"{error.filename}: " if error.filename is not None else ""
        sys.stderr.write(f"{program}: error: {place}{error.strerror or error}\n")
        return 1
    return status


class _Complaints:
    """Standard error, which may be a full disk: what can't be complained is no further fault."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write; or drop it and all that follows, so that nobody tries it again at the end."""
        try:
            return self._file.write(text)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def _open_what_is_closed() -> None:
    """Let nothing that we open take the number of a standard file that our caller closed."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _stop_writing() -> None:
    """Drop what nobody takes; the interpreter must not try again when it shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(command: Command, arguments: list[str]) -> int:
    import importlib

    module = importlib.import_module(f"spur_cli.commands.{command.module}")
    try:
        status: int = module.run(arguments, command)
    except SystemExit as left:  # argparse has written what was wrong, or the help asked for
        return left.code if isinstance(left.code, int) else _USAGE_STATUS
    except Exception as error:
        from spur.values.errors import SpurError

        if not isinstance(error, SpurError):
            raise
        sys.stderr.write(f"spur {' '.join(command.words)}: {error}\n")
        return 1
    return status


def _overview(rows: Sequence[Command]) -> str:
    width = max(len(" ".join(row.words)) for row in rows)
    lines = [f"  {' '.join(row.words):<{width}}  {row.summary}\n" for row in rows]
    return (
        "usage: spur COMMAND ...\n\ncommands:\n"
        + "".join(lines)
        + "\n`spur COMMAND --help` shows the options of a command.\n"
    )


def _not_found(arguments: list[str]) -> str:
    if not arguments:
        return _overview(COMMANDS)
    import difflib

    first = arguments[0]
    started = [" ".join(row.words) for row in COMMANDS if row.words[0] == first]
    if started:
        meant = " ".join(arguments[:2])
        wrong = f"{first} needs one more word" if meant == first else f"no command {meant!r}"
        return f"spur: {wrong}\nhint: one of: {', '.join(started)}\n"
    near = difflib.get_close_matches(first, [row.words[0] for row in COMMANDS], n=1)
    hint = f"did you mean {near[0]}?" if near else "spur --help lists the commands"
    return f"spur: no command {first!r}\nhint: {hint}\n"
