"""What a guest of a step hears, and says: the output of its tasks, and their input.

Source: sattach(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping
from typing import Any

from spur.wire.streams import (
    CHUNK_BYTES_MAX,
    EVERY_TASK,
    STEP_ITSELF,
    Finished,
    FromStep,
    Input,
    Output,
    TaskEnded,
)
from spur_cli.slurm.nodestream import Lost, NodeStream
from spur_cli.slurm.session import Session
from spur_cli.slurm.stepwords import Labels

__all__ = ["Listening"]

UNSENT_BYTES_MAX = 512 * 1024
"""What waits to be taken before standard input is read on."""


class Listening:
    """One guest of one step."""

    def __init__(
        self, session: Session, streams: list[NodeStream], values: Mapping[str, Any]
    ) -> None:
        """Listen as the options of sattach say."""
        self._session = session
        self._streams = streams
        self._filters = {
            1: values.get("output_filter"),
            2: values.get("error_filter", values.get("output_filter")),
        }
        self._input_task: int = values.get("input_filter", EVERY_TASK)
        total = sum(len(stream.tasks) for stream in streams)
        self._labels = Labels(
            width=len(str(max(total - 1, 0))),
            is_labelled=bool(values.get("label")),
            is_buffered=total > 1,
        )
        self._stdin: int | None = 0
        self._has_read = False
        self._status = 0

    def run(self) -> int:
        """Stay until every node is done; return the highest exit code of the tasks."""
        try:
            while any(not stream.is_over for stream in self._streams):
                self._turn()
        finally:
            for stream in self._streams:
                stream.close()
        return self._status

    def _turn(self) -> None:
        poll = select.poll()
        open_streams = [stream for stream in self._streams if not stream.is_over]
        by_fd = {stream.fileno(): stream for stream in open_streams if stream.due_s is None}
        for fd, stream in by_fd.items():
            poll.register(fd, select.POLLIN | (select.POLLOUT if stream.is_writing else 0))
        if self._may_read() and all(s.waiting_bytes < UNSENT_BYTES_MAX for s in open_streams):
            poll.register(0, select.POLLIN)
        is_broken = len(by_fd) < len(open_streams)
        for fd, events in poll.poll(100 if is_broken else None):
            if fd not in by_fd:
                self._read()
                continue
            if events & select.POLLOUT:
                by_fd[fd].flush()
            if events & ~select.POLLOUT:
                self._hear(by_fd[fd])
        for stream in open_streams:
            if stream.due_s is not None and not stream.is_over:
                self._try_again(stream)

    def _may_read(self) -> bool:
        if self._stdin is None:
            return False
        try:
            return not os.isatty(0) or os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return False

    def _read(self) -> None:
        """Pass input on. An input that is empty from the start ends nobody's."""
        try:
            data = os.read(0, CHUNK_BYTES_MAX)
        except OSError:
            data = b""
        if not data:
            self._stdin = None
        if data or self._has_read:
            for stream in self._streams:
                if not stream.is_over:
                    stream.send(Input(self._input_task, data))
        self._has_read = True

    def _hear(self, stream: NodeStream) -> None:
        try:
            for message in stream.receive():
                self._take(stream, message)
            stream.tell_taken()
        except Lost as lost:
            self._lose(stream, str(lost))

    def _try_again(self, stream: NodeStream) -> None:
        try:
            stream.try_again()
        except Lost as lost:
            self._lose(stream, str(lost))

    def _lose(self, stream: NodeStream, why: str) -> None:
        stream.is_over = True
        stream.close()
        if stream.was_attached or "is over" not in why:
            self._session.complain(f"{stream.node}: {why}")
            self._status = self._status or 1
        else:
            sys.stderr.write(f"sattach: Node {stream.node}: no tasks running\n")

    def _take(self, stream: NodeStream, message: FromStep) -> None:
        if isinstance(message, Output):
            self._write(message)
        elif isinstance(message, TaskEnded):
            how = f"exited with exit code {message.exit_code}"
            if message.signal:
                how = f"killed by signal {message.signal}"
            if message.signal or message.exit_code:
                self._session.complain(f"task {message.task} {how}")
            code = 128 + message.signal if message.signal else message.exit_code
            self._status = max(self._status, code)
        elif isinstance(message, Finished):
            stream.is_over = True

    def _write(self, message: Output) -> None:
        if message.task == STEP_ITSELF:
            _write_all(2, message.data)
            return
        only = self._filters[message.fd]
        if only is not None and only != message.task:
            return
        data = self._labels.put(message.task, message.fd, message.data)
        if data:
            _write_all(message.fd, data)


def _write_all(fd: int, data: bytes) -> None:
    """Write all of it. Raises: BrokenPipeError when nobody reads any more."""
    while data:
        data = data[os.write(fd, data) :]
