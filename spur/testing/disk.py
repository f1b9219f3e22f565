"""A simulated disk: what was not synced may be lost, kept, or torn when the power fails.

Every file has two contents, the one that programs see (`seen`) and the one on the platter
(`durable`), and the operations between them in order. `sync` moves the first to the second. At a
power failure each unsynced operation is dropped, kept or torn into sectors of 512 bytes: a sector
shows some state that it had since the last sync. Directories are treated alike: a name that was
created, renamed or removed is durable once `sync_dir` returned.

A failing sync behaves as Linux does: the pages count as clean afterwards. They are seen until the
power fails, and a later sync that succeeds does not write them.

Each operation that changes something is numbered; `crash_after` and `fail_after` name the n-th from
now, so a test can walk through them all:

    for n in count(1):
        disk = SimDisk()
        disk.crash_after(n)
        try: work(disk)
        except PowerLoss: disk.crash(rng); check(disk)
        else: break
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from spur.consensus.disk import parent_of
from spur.consensus.faults import DirectoryBusy, DiskFault

__all__ = ["SECTOR", "Operation", "PowerLoss", "SimDisk", "SimFile", "SimLock"]

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""


class PowerLoss(BaseException):
    """The machine lost its power. Not an `Exception`: no handler may survive it."""


@dataclass(frozen=True)
class Operation:
    """What is about to be done; hooks get it before it happens."""

    number: int
    """Counts the operations that change something, from 1; reads have the number of the next."""
    kind: str
    """create, write, zero, truncate, punch, sync, rename, remove, make_dir, sync_dir, read, open"""
    name: str
    offset: int = 0
    size: int = 0


@dataclass(eq=False)
class _Content:
    seen: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | int]] = field(default_factory=list)
    """(offset, bytes written there), or (-1, new size)."""


@dataclass(frozen=True)
class _Renaming:
    """One change of names: each name with what it stands for afterwards; None for nothing."""

    changes: tuple[tuple[str, _Content | _Directory | None], ...]


@dataclass(eq=False)
class _Directory:
    seen: dict[str, _Content | _Directory] = field(default_factory=dict)
    durable: dict[str, _Content | _Directory] = field(default_factory=dict)
    pending: list[_Renaming] = field(default_factory=list)


_READS = frozenset({"read", "open"})


class SimDisk:
    """A `Disk` in memory."""

    def __init__(self, *, capacity_bytes: int | None = None) -> None:
        self.capacity_bytes = capacity_bytes
        """Sum of all file sizes that fits; holes count as if they were filled."""
        self.hooks: list[Callable[[Operation], None]] = []
        """Called before each operation; may raise, or let virtual time pass for a slow sync."""
        self.operations = 0
        """Operations that changed something so far."""
        self.generation = 0
        """Rises at each end of the process; files opened before are void."""
        self._root = _Directory()
        self._crash_at = 0
        self._fail_at = 0
        self._fail_errno = errno.EIO
        self._fail_kinds: frozenset[str] = frozenset()
        self._is_down = False
        self._is_locked = False

    # -- what tests arrange
    def crash_after(self, count: int) -> None:
        """Lose the power instead of doing the count-th changing operation from now."""
        self._crash_at = self.operations + count

    def fail_after(self, count: int, code: int = errno.EIO, *kinds: str) -> None:
        """Let the count-th changing operation from now (of these kinds, if any) fail with errno."""
        self._fail_kinds = frozenset(kinds)
        self._fail_at, self._fail_errno = count, code

    def end_process(self) -> None:
        """End the process that works here; the machine, and its page cache, live on."""
        self.generation += 1
        self._is_locked = False
        self._is_down = False
        self._crash_at = self._fail_at = 0

    def crash(self, rng: Random) -> None:
        """Lose the power: what programs will see is what reached the platter."""
        self.end_process()
        _settle_names(self._root, rng)
        for content in _contents(self._root):
            _settle_content(content, rng)

    def flip(self, name: str, offset: int, bit: int = 0) -> None:
        """Let one stored bit change by itself."""
        content = self._content(name, "flip a bit of")
        for image in (content.seen, content.durable):
            if offset < len(image):
                image[offset] ^= 1 << bit

    # -- Disk
    def open(self, name: str, *, create: bool = False) -> SimFile:
        directory, last = self._parent(name, "open")
        if not create:
            self._begin("open", name)
            return SimFile(self, name, self._content(name, "open"))
        self._begin("create", name)
        if last in directory.seen:
            raise DiskFault("create", name, errno.EEXIST)
        content = _Content()
        self._change(directory, (last, content))
        return SimFile(self, name, content)

    def exists(self, name: str) -> bool:
        try:
            parent, last = self._parent(name, "look for")
        except DiskFault:
            return False
        return last in parent.seen

    def names(self, directory: str) -> list[str]:
        if directory and not self.exists(directory):
            return []
        return sorted(self._directory(directory, "list").seen)

    def rename(self, old: str, new: str) -> None:
        if parent_of(old) != parent_of(new):
            raise ValueError(f"{old} and {new} are not in one directory; nothing was renamed")
        self._begin("rename", old)
        directory, before = self._parent(old, "rename")
        after = new.rpartition("/")[2]
        if before not in directory.seen:
            raise DiskFault("rename", old, errno.ENOENT)
        replaced = directory.seen.get(after)
        if isinstance(replaced, _Directory) and replaced.seen:
            raise DiskFault("rename", old, errno.ENOTEMPTY)
        self._change(directory, (before, None), (after, directory.seen[before]))

    def remove(self, name: str) -> None:
        self._begin("remove", name)
        directory, last = self._parent(name, "remove")
        found = directory.seen.get(last)
        if found is None:
            raise DiskFault("remove", name, errno.ENOENT)
        if isinstance(found, _Directory) and found.seen:
            raise DiskFault("remove", name, errno.ENOTEMPTY)
        self._change(directory, (last, None))

    def make_dir(self, name: str) -> None:
        self._begin("make_dir", name)
        directory, last = self._parent(name, "make")
        if last not in directory.seen:
            self._change(directory, (last, _Directory()))

    def sync_dir(self, name: str) -> None:
        self._begin("sync_dir", name)
        directory = self._directory(name, "sync the directory")
        directory.durable = dict(directory.seen)
        directory.pending.clear()

    def free_bytes(self) -> int:
        if self.capacity_bytes is None:
            return 1 << 40
        return max(0, self.capacity_bytes - self.used_bytes())

    def used_bytes(self) -> int:
        """Return the sum of all file sizes."""
        return sum(len(content.seen) for content in _contents(self._root))

    def lock(self) -> SimLock:
        if self._is_locked:
            raise DirectoryBusy(
                "the directory is in use by another process (pid 1); nothing was touched"
            )
        self._is_locked = True
        return SimLock(self, self.generation)

    # -- inside
    def _begin(self, kind: str, name: str, offset: int = 0, size: int = 0) -> None:
        if self._is_down:
            raise PowerLoss
        for hook in self.hooks:
            hook(Operation(self.operations + 1, kind, name, offset, size))
        if kind in _READS:
            return
        self.operations += 1
        if self.operations == self._crash_at:
            self._is_down = True
            raise PowerLoss
        if self._fail_at and (not self._fail_kinds or kind in self._fail_kinds):
            self._fail_at -= 1
            if self._fail_at == 0:
                raise DiskFault(kind, name, self._fail_errno)

    def _directory(self, name: str, doing: str, subject: str = "") -> _Directory:
        found = self._root
        for part in name.split("/") if name else ():
            inner = found.seen.get(part)
            if not isinstance(inner, _Directory):
                raise DiskFault(doing, subject or name, errno.ENOENT)
            found = inner
        return found

    def _parent(self, name: str, doing: str) -> tuple[_Directory, str]:
        return self._directory(parent_of(name), doing, name), name.rpartition("/")[2]

    def _content(self, name: str, doing: str) -> _Content:
        directory, last = self._parent(name, doing)
        found = directory.seen.get(last)
        if not isinstance(found, _Content):
            raise DiskFault(doing, name, errno.ENOENT if found is None else errno.EISDIR)
        return found

    def _change(
        self, directory: _Directory, *changes: tuple[str, _Content | _Directory | None]
    ) -> None:
        directory.pending.append(_Renaming(changes))
        _rename_in(directory.seen, directory.pending[-1])


class SimLock:
    """The lock of one process of the simulation."""

    def __init__(self, disk: SimDisk, generation: int) -> None:
        self._disk = disk
        self._generation = generation

    def release(self) -> None:
        if self._disk.generation == self._generation:
            self._disk._is_locked = False


class SimFile:
    """A `File` of a `SimDisk`."""

    def __init__(self, disk: SimDisk, name: str, content: _Content) -> None:
        self._disk = disk
        self._name = name
        self._content = content
        self._generation = disk.generation
        self._is_open = True

    def _begin(self, kind: str, offset: int = 0, size: int = 0) -> _Content:
        if self._generation != self._disk.generation:
            raise PowerLoss
        if not self._is_open:
            raise DiskFault(kind, self._name, errno.EBADF)
        self._disk._begin(kind, self._name, offset, size)
        return self._content

    def read_at(self, offset: int, size: int) -> bytes:
        return bytes(self._begin("read", offset, size).seen[offset : offset + size])

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        self._write("write", offset, bytes(data))

    def zero(self, offset: int, size: int) -> None:
        self._write("zero", offset, bytes(size))

    def _write(self, kind: str, offset: int, data: bytes) -> None:
        content = self._begin(kind, offset, len(data))
        growth = offset + len(data) - len(content.seen)
        lacking = growth - self._disk.free_bytes() if growth > 0 else 0
        if lacking > 0:
            data = data[: max(0, len(data) - lacking)]
        if data:
            content.pending.append((offset, data))
            _write_in(content.seen, offset, data)
        if lacking > 0:
            raise DiskFault(kind, self._name, errno.ENOSPC)

    def sync(self) -> None:
        content = self._content
        try:
            self._begin("sync")
        except DiskFault:
            # The pages are clean from now on, though nothing reached the platter.
            content.pending.clear()
            raise
        for offset, data in content.pending:
            _do(content.durable, offset, data)
        content.pending.clear()

    def size(self) -> int:
        return len(self._content.seen)

    def truncate(self, size: int) -> None:
        content = self._begin("truncate", size)
        content.pending.append((-1, size))
        _do(content.seen, -1, size)

    def punch(self, offset: int, size: int) -> None:
        content = self._begin("punch", offset, size)
        size = min(size, len(content.seen) - offset)
        if size > 0:
            content.pending.append((offset, bytes(size)))
            _write_in(content.seen, offset, bytes(size))

    def close(self) -> None:
        self._is_open = False


def _write_in(image: bytearray, offset: int, data: bytes) -> None:
    if offset > len(image):
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


def _do(image: bytearray, offset: int, data: bytes | int) -> None:
    if isinstance(data, bytes):
        _write_in(image, offset, data)
    elif data < len(image):
        del image[data:]
    else:
        image.extend(bytes(data - len(image)))


def _rename_in(names: dict[str, _Content | _Directory], renaming: _Renaming) -> None:
    for name, meant in renaming.changes:
        if meant is None:
            names.pop(name, None)
        else:
            names[name] = meant


def _contents(directory: _Directory) -> list[_Content]:
    found = []
    for inner in directory.seen.values():
        found.extend(_contents(inner) if isinstance(inner, _Directory) else [inner])
    return found


def _settle_names(directory: _Directory, rng: Random) -> None:
    pending, directory.pending = directory.pending, []
    names = directory.durable
    # Journalling file systems keep changes of names in order; nobody promises it, so half of the
    # time any of them may be missing, as long as what is kept makes sense.
    in_order = rng.random() < 0.5
    kept = rng.randrange(len(pending) + 1)
    for position, renaming in enumerate(pending):
        if position < kept if in_order else rng.random() < 0.5:
            gone = [name for name, meant in renaming.changes if meant is None]
            if all(name in names for name in gone):
                _rename_in(names, renaming)
    directory.seen = dict(names)
    for inner in names.values():
        if isinstance(inner, _Directory):
            _settle_names(inner, rng)


def _settle_content(content: _Content, rng: Random) -> None:
    pending, content.pending = content.pending, []
    image = content.durable
    choice = rng.random()
    if pending and choice < 0.75:
        # Drop all (a quarter of the time), keep a part in order, or keep all.
        kept = 0 if choice < 0.25 else rng.randrange(len(pending) + 1)
        for offset, data in pending[:kept]:
            _do(image, offset, data)
        if choice >= 0.5 and kept < len(pending):
            _tear(image, pending[kept : kept + 1], rng)
    elif pending:
        _tear(image, pending, rng)
    content.seen = bytearray(image)


def _tear(image: bytearray, pending: list[tuple[int, bytes | int]], rng: Random) -> None:
    """Apply to each sector only so many of the operations as the disk had come to."""
    reached: dict[int, int] = {}
    share = rng.random()
    sizes = [len(image)]
    for number, (offset, data) in enumerate(pending):
        if isinstance(data, int):
            sizes.append(data)
            continue
        sizes.append(max(sizes[-1], offset + len(data)))
        for sector in range(offset // SECTOR, (offset + len(data) + SECTOR - 1) // SECTOR):
            if sector not in reached:
                whole = rng.random() < share
                reached[sector] = len(pending) if whole else rng.randrange(len(pending))
            if reached[sector] > number:
                begin = max(offset, sector * SECTOR)
                end = min(offset + len(data), (sector + 1) * SECTOR)
                _write_in(image, begin, data[begin - offset : end - offset])
    size = rng.choice(sizes)
    _do(image, -1, size)
