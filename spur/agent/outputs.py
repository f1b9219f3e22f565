"""Opening the files that a job or step reads and writes, as its user."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from spur.agent.identity import User, acting_as

__all__ = ["Files", "OpenFiles", "close_files", "open_files"]


class Files(NamedTuple):
    """Names of files, their patterns filled in; relative ones from the working directory."""

    directory: bytes
    stdin: bytes
    stdout: bytes
    stderr: bytes
    """Empty: where the output goes."""
    appends: bool
    umask: int


class OpenFiles(NamedTuple):
    """Descriptors."""

    stdin: int
    stdout: int
    stderr: int
    """May be the same as stdout."""


def open_files(files: Files, user: User) -> OpenFiles:
    """Open them with the rights of the user; a directory that an output lacks is made.

    Raises: OSError naming the file that could not be opened; none is left open then.
    """
    opened: list[int] = []
    before = os.umask(files.umask)
    try:
        with acting_as(user):
            opened.append(os.open(_below(files, files.stdin), os.O_RDONLY))
            opened.append(_open_output(files, files.stdout))
            opened.append(_open_output(files, files.stderr) if files.stderr else opened[1])
    except OSError:
        for number in opened:
            os.close(number)
        raise
    finally:
        os.umask(before)
    return OpenFiles(*opened)


def close_files(opened: OpenFiles) -> None:
    """Close each of them once."""
    for number in {opened.stdin, opened.stdout, opened.stderr}:
        with contextlib.suppress(OSError):
            os.close(number)


def _below(files: Files, name: bytes) -> bytes:
    return os.path.join(files.directory, name)


def _open_output(files: Files, name: bytes) -> int:
    path = _below(files, name)
    # Always to append, so that two writers of one file do not overwrite each other.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if files.appends else os.O_TRUNC)
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        if not name.startswith(b"/") and not os.path.isdir(files.directory):
            raise  # a working directory that vanished is not made again
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)
