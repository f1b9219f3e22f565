"""Opening the files that jobs and steps read and write, as their user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from spur.agent.identity import User, acting_as

__all__ = [
    "Files",
    "OpenFiles",
    "close_files",
    "open_files",
    "open_input",
    "open_output",
    "opening",
]


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


@contextlib.contextmanager
def opening(user: User, umask: int) -> Iterator[list[int]]:
    """Open files inside with the rights and the mask of a user.

    The descriptors that are put into the list are closed when something inside fails.
    """
    opened: list[int] = []
    before = os.umask(umask)
    try:
        with acting_as(user):
            yield opened
    except OSError:
        for number in opened:
            os.close(number)
        raise
    finally:
        os.umask(before)


def open_files(files: Files, user: User) -> OpenFiles:
    """Open the three of a process; a directory that an output lacks is made.

    Raises: OSError naming the file that could not be opened; none is left open then.
    """
    with opening(user, files.umask) as opened:
        opened.append(open_input(files.directory, files.stdin))
        opened.append(open_output(files.directory, files.stdout, files.appends))
        if not files.stderr:
            return OpenFiles(opened[0], opened[1], opened[1])
        opened.append(open_output(files.directory, files.stderr, files.appends))
    return OpenFiles(*opened)


def close_files(opened: OpenFiles) -> None:
    """Close each of them once."""
    for number in {opened.stdin, opened.stdout, opened.stderr}:
        with contextlib.suppress(OSError):
            os.close(number)


def open_input(directory: bytes, name: bytes) -> int:
    """Return a descriptor to read from. Raises: OSError."""
    return os.open(os.path.join(directory, name), os.O_RDONLY)


def open_output(directory: bytes, name: bytes, appends: bool) -> int:
    """Return a descriptor to write to; directories that are missing are made. Raises: OSError."""
    path = os.path.join(directory, name)
    # Always to append, so that two writers of one file do not overwrite each other.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if appends else os.O_TRUNC)
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        if not name.startswith(b"/") and not os.path.isdir(directory):
            raise  # a working directory that vanished is not made again
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)
