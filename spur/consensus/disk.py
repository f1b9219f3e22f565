"""The few things the stores ask of a disk, and a directory of the operating system that does them.

Names are relative, with "/" between directory and file. Nothing is durable before a sync: a file's
bytes and size by `File.sync`, its name (created, renamed, removed) by `Disk.sync_dir` of the
directory that holds it. `spur.testing.disk.SimDisk` is the other implementation; one contract suite
runs over both.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from typing import Protocol

from spur.consensus.faults import DirectoryBusy, DiskFault

__all__ = ["Disk", "File", "Lock", "OsDisk", "OsFile", "OsLock", "numbers_of", "parent_of"]

_ZEROS = bytes(1 << 20)

_PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01
"""FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE. Source: fallocate(2)."""


class File(Protocol):
    """An open file."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes; fewer only at the end of the file."""
        ...

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data`; beyond the end the file grows."""
        ...

    def sync(self) -> None:
        """Make bytes and size durable; an error leaves in doubt what was written before."""
        ...

    def size(self) -> int:
        """Return the size in bytes."""
        ...

    def truncate(self, size: int) -> None:
        """Set the size."""
        ...

    def zero(self, offset: int, size: int) -> None:
        """Write zeros, so that later writes there allocate nothing."""
        ...

    def punch(self, offset: int, size: int) -> None:
        """Give the space back where the file system can; the bytes read as zeros."""
        ...

    def close(self) -> None:
        """Close; twice is allowed."""
        ...


class Lock(Protocol):
    """The exclusive right to a directory."""

    def release(self) -> None:
        """Give it up; twice is allowed."""
        ...


class Disk(Protocol):
    """A directory tree. Every refusal of the operating system is a `DiskFault`."""

    def open(self, name: str, *, create: bool = False) -> File:
        """Open a file; with `create` it must not exist yet and is empty, mode 0600."""
        ...

    def exists(self, name: str) -> bool:
        """Tell whether a file or directory of this name is there."""
        ...

    def names(self, directory: str) -> list[str]:
        """Return the sorted names inside a directory; none if it is not there."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename inside one directory, replacing a file of the new name."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file or an empty directory."""
        ...

    def make_dir(self, name: str) -> None:
        """Make a directory, mode 0700; one that is there already is left alone."""
        ...

    def sync_dir(self, name: str) -> None:
        """Make the names inside a directory durable; "" is the root."""
        ...

    def free_bytes(self) -> int:
        """Return the bytes that can still be written."""
        ...

    def lock(self) -> Lock:
        """Take the directory for this process.

        Raises: DirectoryBusy when another process has it.
        """
        ...


def parent_of(name: str) -> str:
    """Return the directory part of a name; "" for one in the root."""
    return name.rpartition("/")[0]


def numbers_of(names: Iterable[str], prefix: str, suffix: str) -> list[int]:
    """Return the numbers in names of this form, rising; any other file there is left alone."""
    found = []
    for name in names:
        number = name.removeprefix(prefix).removesuffix(suffix)
        if name == f"{prefix}{number}{suffix}" and number.isascii() and number.isdigit():
            found.append(int(number))
    return sorted(found)


class OsDisk:
    """A directory of the operating system."""

    def __init__(self, root: str, *, read_only: bool = False) -> None:
        self.root = root
        self.read_only = read_only

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name) if name else self.root

    def open(self, name: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDONLY if self.read_only else os.O_RDWR
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        try:
            return OsFile(name, os.open(self._path(name), flags | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise _fault("create" if create else "open", name, error) from error

    def exists(self, name: str) -> bool:
        return os.path.lexists(self._path(name))

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(self._path(directory)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _fault("list", directory, error) from error

    def rename(self, old: str, new: str) -> None:
        if parent_of(old) != parent_of(new):
            raise ValueError(f"{old} and {new} are not in one directory; nothing was renamed")
        try:
            os.rename(self._path(old), self._path(new))
        except OSError as error:
            raise _fault("rename", old, error) from error

    def remove(self, name: str) -> None:
        path = self._path(name)
        try:
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.rmdir(path)
            else:
                os.unlink(path)
        except OSError as error:
            raise _fault("remove", name, error) from error

    def make_dir(self, name: str) -> None:
        try:
            os.mkdir(self._path(name), 0o700)
        except FileExistsError:
            return
        except OSError as error:
            raise _fault("make the directory", name, error) from error

    def sync_dir(self, name: str) -> None:
        try:
            descriptor = os.open(self._path(name), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _fault("sync the directory", name, error) from error

    def free_bytes(self) -> int:
        try:
            figures = os.statvfs(self.root)
        except OSError as error:
            raise _fault("ask for the free space of", "", error) from error
        return figures.f_bavail * figures.f_frsize

    def lock(self) -> OsLock:
        try:
            descriptor = os.open(self._path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _fault("create", "lock", error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise DirectoryBusy(
                f"{self.root} is in use by another process (pid {holder}); nothing was touched"
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise _fault("lock", "lock", error) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        return OsLock(descriptor)


class OsLock:
    """A flock; it falls with the process, however that ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class OsFile:
    """A file descriptor that knows its name."""

    def __init__(self, name: str, descriptor: int) -> None:
        self._name = name
        self._descriptor = descriptor

    def read_at(self, offset: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, offset)
            while len(data) < size:
                more = os.pread(self._descriptor, size - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise _fault("read", self._name, error) from error
        return data

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        try:
            done = os.pwrite(self._descriptor, data, offset)
            if done < len(data):
                rest = memoryview(data)
                while done < len(rest):
                    done += os.pwrite(self._descriptor, rest[done:], offset + done)
        except OSError as error:
            raise _fault("write", self._name, error) from error

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise _fault("sync", self._name, error) from error

    def size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise _fault("look at", self._name, error) from error

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise _fault("truncate", self._name, error) from error

    def zero(self, offset: int, size: int) -> None:
        # Real zeros rather than fallocate: unwritten extents would be converted, and the journal
        # written, under each later sync (measured: 10 to 40 % of the commits).
        end = offset + size
        while offset < end:
            piece = min(end - offset, len(_ZEROS))
            self.write_at(offset, memoryview(_ZEROS)[:piece])
            offset += piece

    def punch(self, offset: int, size: int) -> None:
        if size <= 0:
            return
        try:
            _punch_hole(self._descriptor, offset, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise _fault("punch", self._name, error) from error
            self.zero(offset, max(0, min(size, self.size() - offset)))

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def _punch_hole(descriptor: int, offset: int, size: int) -> None:
    # The standard library has no fallocate with a mode.
    if _LIBC.fallocate(descriptor, _PUNCH_HOLE_KEEP_SIZE, offset, size) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _fault(operation: str, name: str, error: OSError) -> DiskFault:
    return DiskFault(operation, name, error.errno or errno.EIO)
