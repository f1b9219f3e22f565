"""The spool of an agent: attempts' directories and the nodes' outboxes, on the disk.

Every function blocks and is called in a thread. What a function has returned from is synced; what
it could not do it says by an OSError, and nothing half made is ever taken for whole.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from spur.agent.machine import Found, Outbox, Report, is_void, void_claim
from spur.agent.manifest import (
    CLAIM,
    LOCK,
    MANIFEST,
    OUTCOME,
    AttemptName,
    Manifest,
    Outcome,
    decode_manifest,
    decode_outcome,
    directory_name,
    encode_manifest,
    parse_directory_name,
)
from spur.values.errors import OperatorFault
from spur.values.ids import NodeName

__all__ = ["OUTBOX_ID_SIZE", "Spool", "is_full"]

OUTBOX_ID_SIZE = 16

_MADE = ".made-"
"""Before the name of a directory whose manifest is not whole yet."""
_GONE = ".gone-"
"""Before the name of a directory that is being removed."""
_OUTBOX = "outbox."

_SLOT_BYTES = 1024


class _Slot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an outbox file holds: the report that was made last."""

    id: bytes
    report: Report | None


_ENCODE = msgspec.msgpack.Encoder().encode
_SLOT = msgspec.msgpack.Decoder(_Slot)


def is_full(error: OSError) -> bool:
    """Whether something could not be written for want of room, which may come back."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class Spool:
    """The directory of one agent; held by one process at a time."""

    def __init__(self, path: Path) -> None:
        """Make the directory if need be and lock it; clean up what was half made.

        Raises: OperatorFault when another agent has it, or it can't be used; OSError when the disk
        is full.
        """
        self.path = path
        try:
            path.mkdir(mode=0o711, parents=True, exist_ok=True)
            path.chmod(0o711)
            self._lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if is_full(error):
                raise
            raise OperatorFault(f"{path}: no spool can be kept here: {error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise OperatorFault(f"{path}: another agent runs on this directory") from error
        for entry in os.listdir(path):
            if entry.startswith((_MADE, _GONE)):
                shutil.rmtree(path / entry, ignore_errors=True)

    def close(self) -> None:
        """Let another process have the directory; a no-op when it is let go already."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def directory(self, name: AttemptName) -> Path:
        """Return where an attempt's files are."""
        return self.path / directory_name(name)

    # -- attempts

    def prepare(self, name: AttemptName, manifest: Manifest) -> None:
        """Write a manifest into a directory of its own; both are synced. Raises: OSError."""
        target = self.directory(name)
        made = self.path / f"{_MADE}{target.name}"
        if target.exists():
            # Of an attempt that had the same name before the cluster was restored.
            self.remove(name)
        try:
            made.mkdir(mode=0o711)
            _write_synced(made / MANIFEST, encode_manifest(manifest))
            _sync_directory(made)
            made.rename(target)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            raise
        _sync_directory(self.path)

    def take_claim(self, name: AttemptName, incarnation: int) -> bool:
        """Take the claim for nobody; return whether nobody's it is, now or from before.

        Raises: OSError when the disk takes no file.
        """
        directory = self.directory(name)
        is_new = not directory.exists()
        directory.mkdir(mode=0o711, exist_ok=True)
        try:
            _write_synced(directory / CLAIM, void_claim(incarnation))
        except FileExistsError:
            return is_void((directory / CLAIM).read_bytes())
        _sync_directory(directory)
        if is_new:
            _sync_directory(self.path)
        return True

    def found(self, name: AttemptName) -> Found:
        """Return what lies in an attempt's directory; a damaged file counts as none."""
        directory = self.directory(name)
        # The lock is looked at first: who holds it no more has written all it ever will.
        lives = self.holder(name) is not None
        return Found(
            name,
            _manifest_in(directory),
            _read(directory / CLAIM),
            _outcome_in(directory),
            lives,
        )

    def holder(self, name: AttemptName) -> int | None:
        """Return the process that holds an attempt's lock, 0 when it has not said; or None."""
        try:
            lock = os.open(self.directory(name) / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.pread(lock, 32, 0).strip()
            return int(said) if said.isdigit() else 0
        finally:
            os.close(lock)
        return None

    def scan(self) -> list[Found]:
        """Return everything that an earlier process left."""
        names = (parse_directory_name(entry) for entry in sorted(os.listdir(self.path)))
        return [self.found(name) for name in names if name is not None]

    def remove(self, name: AttemptName) -> None:
        """Remove an attempt's directory, as a whole or not at all."""
        directory = self.directory(name)
        gone = self.path / f"{_GONE}{directory.name}"
        with suppress(FileNotFoundError):
            directory.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def free_bytes(self) -> int:
        """Return how much an unprivileged user could still write."""
        stat = os.statvfs(self.path)
        return stat.f_bavail * stat.f_frsize

    # -- outboxes

    def outbox(self, node: NodeName) -> Outbox:
        """Return a node's outbox as it was left; a new one where there was none.

        A report that was not written whole was never sent; the one before it was answered.
        """
        content = _read(self.path / f"{_OUTBOX}{node}") or b""
        newest: _Slot | None = None
        for start in (0, _SLOT_BYTES):
            slot = _slot_in(content[start : start + _SLOT_BYTES])
            if slot is not None and (newest is None or _number(slot) > _number(newest)):
                newest = slot
        if newest is None:
            made = _Slot(os.urandom(OUTBOX_ID_SIZE), None)
            fresh = self.path / f"{_OUTBOX}{node}.new"
            fresh.unlink(missing_ok=True)
            _write_synced(fresh, _packed(made).ljust(2 * _SLOT_BYTES, b"\0"))
            fresh.rename(self.path / f"{_OUTBOX}{node}")
            _sync_directory(self.path)
            return Outbox(id=made.id)
        return Outbox(id=newest.id, number=_number(newest), sending=newest.report)

    def keep_report(self, node: NodeName, outbox_id: bytes, report: Report) -> None:
        """Write a report down before it is sent; the one before it stays whole. Raises: OSError."""
        file = os.open(self.path / f"{_OUTBOX}{node}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            packed = _packed(_Slot(outbox_id, report)).ljust(_SLOT_BYTES, b"\0")
            os.pwrite(file, packed, report.number % 2 * _SLOT_BYTES)
            os.fdatasync(file)
        finally:
            os.close(file)


def _number(slot: _Slot) -> int:
    return 0 if slot.report is None else slot.report.number


def _packed(slot: _Slot) -> bytes:
    body = _ENCODE(slot)
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def _slot_in(data: bytes) -> _Slot | None:
    """Return what a slot holds; None when it is empty or was not written whole."""
    size = int.from_bytes(data[:4], "big")
    body = data[8 : 8 + size]
    if not size or len(body) != size or zlib.crc32(body).to_bytes(4, "big") != data[4:8]:
        return None
    try:
        return _SLOT.decode(body)
    except msgspec.MsgspecError:
        return None


def _manifest_in(directory: Path) -> Manifest | None:
    data = _read(directory / MANIFEST)
    try:
        return None if data is None else decode_manifest(data)
    except OperatorFault:
        return None


def _outcome_in(directory: Path) -> Outcome | None:
    data = _read(directory / OUTCOME)
    try:
        return None if data is None else decode_outcome(data)
    except OperatorFault:
        return None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write_synced(path: Path, content: bytes) -> None:
    """Write a new file that its owner alone may read, and sync it. Raises: OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
