"""Sending a file to the nodes of a run, to all of them at once.

Source: sbcast(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

import os
import select
import time
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from spur.slurm.wording import SlurmError, error_line
from spur.wire.streams import CHUNK_BYTES_MAX, FilePiece, FilePut, FromStep, PutFile
from spur_cli.slurm.guesting import Visit
from spur_cli.slurm.nodestream import Lost, NodeStream
from spur_cli.slurm.session import Session

__all__ = ["FAILED_STATUS", "Sent", "Source", "open_source", "send_file"]

FAILED_STATUS = 255

UNSENT_BYTES_MAX = 512 * 1024
"""What waits for one node before the file is read on."""

LOST_NUMBER = 5
"""What a node counts as failed with that is not reached any more: EIO."""


class Source(NamedTuple):
    """A file that is open."""

    fd: int
    found: os.stat_result

    def put(self, path: bytes, *, forces: bool, keeps_times: bool, is_compressed: bool) -> PutFile:
        """Return what a node is told before the content."""
        found = self.found
        return PutFile(
            path,
            found.st_mode & 0o7777,
            found.st_atime_ns,
            found.st_mtime_ns,
            keeps_times,
            forces,
            is_compressed,
        )

    def pieces(self, *, is_compressed: bool) -> Iterator[bytes]:
        """Yield the content in pieces, from its beginning."""
        press = zlib.compressobj(1) if is_compressed else None
        os.lseek(self.fd, 0, os.SEEK_SET)
        while data := os.read(self.fd, CHUNK_BYTES_MAX):
            content = data if press is None else press.compress(data)
            for place in range(0, len(content), CHUNK_BYTES_MAX):
                yield content[place : place + CHUNK_BYTES_MAX]
        rest = b"" if press is None else press.flush()
        for place in range(0, len(rest), CHUNK_BYTES_MAX):
            yield rest[place : place + CHUNK_BYTES_MAX]


class Sent(NamedTuple):
    """What became of a file on one node."""

    node: str
    number: int
    """0, or the error's number."""
    why: str


def open_source(program: str, path: str) -> Source:
    """Open a file to send. Raises: SlurmError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        sentence = f"Can't open `{path}`: {error.strerror}"
        raise SlurmError(error_line(program, sentence), status=FAILED_STATUS) from error
    found = os.fstat(fd)
    if os.path.isdir(path):
        sentence = f"Can't mmap file `{path}`, No such device."
        raise SlurmError(error_line(program, sentence), status=FAILED_STATUS)
    return Source(fd, found)


def send_file(
    session: Session,
    visit: Visit,
    source: Source,
    put: Callable[[str], PutFile],
    *,
    timeout_s: float | None = None,
) -> list[Sent]:
    """Send a file to every node; `put` is what each is told first. Raises: SlurmError."""
    streams = visit.streams(session, tuple(() for _ in visit.nodes))
    told = [put(stream.node) for stream in streams]
    for stream, first in zip(streams, told, strict=True):
        stream.send(first)
    is_compressed = any(first.is_compressed for first in told)
    pieces = source.pieces(is_compressed=is_compressed)
    results: dict[str, Sent] = {}
    is_read = False
    until_s = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        while open_streams := [stream for stream in streams if stream.node not in results]:
            if until_s is not None and time.monotonic() > until_s:
                why = "Socket timed out on send/recv operation"
                results |= {s.node: Sent(s.node, LOST_NUMBER, why) for s in open_streams}
                break
            while not is_read and all(
                stream.waiting_bytes < UNSENT_BYTES_MAX for stream in open_streams
            ):
                data = next(pieces, b"")
                is_read = not data
                for stream in open_streams:
                    stream.send(FilePiece(data))
            _turn(open_streams, results)
    finally:
        for stream in streams:
            stream.close()
    return [results[node] for node in visit.nodes]


def _turn(streams: list[NodeStream], results: dict[str, Sent]) -> None:
    """Wait for something to come or to go."""
    poll = select.poll()
    by_fd = {stream.fileno(): stream for stream in streams if stream.due_s is None}
    for fd, stream in by_fd.items():
        poll.register(fd, select.POLLIN | (select.POLLOUT if stream.is_writing else 0))
    for fd, events in poll.poll(100):
        stream = by_fd[fd]
        if events & select.POLLOUT:
            stream.flush()
        if events & ~select.POLLOUT:
            _hear(stream, results)
    for stream in streams:
        # What broke off cannot go on in the middle: the nodes keep nothing of a guest.
        if stream.due_s is not None and stream.was_attached and stream.node not in results:
            why = "Communication connection failure"
            results[stream.node] = Sent(stream.node, LOST_NUMBER, why)
        elif stream.due_s is not None and stream.node not in results:
            _again(stream, results)


def _hear(stream: NodeStream, results: dict[str, Sent]) -> None:
    try:
        messages: list[FromStep] = stream.receive()
    except Lost as lost:
        results[stream.node] = Sent(stream.node, LOST_NUMBER, str(lost))
        return
    for message in messages:
        if isinstance(message, FilePut):
            results[stream.node] = Sent(stream.node, message.number, os.strerror(message.number))


def _again(stream: NodeStream, results: dict[str, Sent]) -> None:
    try:
        stream.try_again()
    except Lost as lost:
        results[stream.node] = Sent(stream.node, LOST_NUMBER, str(lost))
