"""A supervisor's hold on its attempt: lock, claim, outcome, and the word of how far it is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time

from spur.agent.manifest import (
    CLAIM,
    LOCK,
    MANIFEST,
    OUTCOME,
    Manifest,
    Outcome,
    decode_manifest,
    encode_outcome,
)
from spur.agent.notices import Claimed, Ended, Notice, encode_notice

__all__ = ["Attempt", "NotOurs"]

OUTCOME_ROOM = 4096
"""Bytes of disk that are set aside for an outcome before anything runs."""

WHY_LENGTH_MAX = 1000

LOCK_WAIT_S = 1.0
"""How long a taken lock is waited for: an agent looks by taking it for a moment."""


class NotOurs(Exception):
    """Another process has the attempt; this one must do nothing."""


class Attempt:
    """One attempt's directory, held by this process for as long as it lives."""

    def __init__(self, directory: str, channel: socket.socket | None) -> None:
        """Take the lock and read the manifest.

        Raises: NotOurs when another holds the lock; OSError; OperatorFault for a damaged manifest.
        """
        self.directory = directory
        self._channel = channel
        self._at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._lock = self._take_lock()
        self._outcome = -1
        with open(self._name(MANIFEST), "rb") as file:
            self.manifest: Manifest = decode_manifest(file.read())

    def _name(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _take_lock(self) -> int:
        lock = os.open(self._name(LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        until = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise NotOurs("another supervisor lives") from None
                time.sleep(0.02)
        os.truncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        return lock

    def write_script(self, name: str, content: bytes, uid: int, gid: int) -> str:
        """Put the job's script into the directory, for its user alone, and return its path.

        Raises: OSError.
        """
        path = self._name(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # of a supervisor that died before its claim
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(path, flags, 0o700)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(file, view) :]
            os.fchmod(file, 0o700)
            if os.geteuid() == 0:
                os.fchown(file, uid, gid)
        finally:
            os.close(file)
        return path

    def claim(self) -> None:
        """Make the claim, durably: from here on the attempt counts as begun.

        The disk's room for the outcome is taken first: a disk that fills up later loses no exit
        code. Raises: NotOurs when the agent has voided it; OSError.
        """
        new = self._name(f"{OUTCOME}.new")
        self._outcome = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.posix_fallocate(self._outcome, 0, OUTCOME_ROOM)
        try:
            claim = os.open(self._name(CLAIM), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise NotOurs("the attempt was voided") from None
        try:
            os.write(claim, b"run")
            os.fsync(claim)
        finally:
            os.close(claim)
        os.fsync(self._at)

    def say_claimed(self) -> None:
        """Let the agent know that the user's code runs."""
        self._say(Claimed(self.directory, os.getpid()))

    def settle(
        self,
        *,
        exit_code: int = 0,
        signal: int = 0,
        void: bool = False,
        out_of_memory: bool = False,
        ended_boot_ns: int = 0,
        why: str = "",
    ) -> None:
        """Write the outcome, durably, and let the agent know. Raises: OSError."""
        outcome = Outcome(
            boot_id=self.manifest.boot_id,
            void=void,
            exit_code=exit_code,
            signal=signal,
            out_of_memory=out_of_memory,
            ended_boot_ns=ended_boot_ns or time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            why=why[:WHY_LENGTH_MAX],
        )
        content = encode_outcome(outcome)
        os.pwrite(self._outcome, content, 0)
        os.ftruncate(self._outcome, len(content))
        os.fsync(self._outcome)
        os.rename(self._name(f"{OUTCOME}.new"), self._name(OUTCOME))
        os.fsync(self._at)
        self._say(Ended(self.directory, os.getpid()))

    def _say(self, notice: Notice) -> None:
        if self._channel is not None:
            with contextlib.suppress(OSError):  # a later agent looks into the directory
                self._channel.send(encode_notice(notice))
