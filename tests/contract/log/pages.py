"""Whether the kernel has written a file's bytes to the disk, or merely remembers that it should.

Killing a process shows nothing about this: what it wrote stays in the page cache. The kernel tells
root for each page of memory whether it differs from the disk.
Source: Documentation/admin-guide/mm/pagemap.rst.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path

__all__ = ["can_see_pages", "is_on_disk"]

_PAGE = mmap.PAGESIZE
_GAP_BYTES_MAX = 256
"""Between the starts of two pieces that a file holds in a row."""
_ENTRY = struct.Struct("<Q")
_PRESENT = 1 << 63
_FRAME_MASK = (1 << 55) - 1
_DIRTY, _WRITEBACK = 1 << 4, 1 << 8


def can_see_pages(directory: Path) -> bool:
    """Return whether this process may look, and the directory lies on a disk at all."""
    probe = directory / "page-probe"
    try:
        with probe.open("wb") as file:
            file.write(b"x" * _PAGE)
            file.flush()
            is_dirty = not _clean(probe, 0, 1)
            os.fsync(file.fileno())
        # In a file system of memory a page stays dirty for ever.
        return is_dirty and _clean(probe, 0, 1)
    except (OSError, LookupError):
        return False
    finally:
        probe.unlink()


def is_on_disk(path: Path, pieces: Sequence[bytes]) -> bool:
    """Return whether the file holds the pieces in a row and every page wholly inside is clean.

    A format may put bytes of its own between and into them, so one in ten may be missing
    (not the first). Together
    they must be longer than two pages; those at the ends are shared with what lies beside.
    """
    content = path.read_bytes()
    found = [content.find(pieces[0])]
    if found[0] < 0:
        return False
    for piece in pieces[1:]:
        at = found[-1]
        position = content.find(piece, at, at + _GAP_BYTES_MAX)
        if position >= 0:
            found.append(position)
    if len(found) < 0.9 * len(pieces):
        return False
    return _clean(path, -(-found[0] // _PAGE), found[-1] // _PAGE)


def _clean(path: Path, first: int, end: int) -> bool:
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED) as view,
    ):
        start = _address(path)
        for page in range(first, end):
            view[page * _PAGE]  # brings the page into our own table
            flags = _flags(start // _PAGE + page)
            if flags & (_DIRTY | _WRITEBACK):
                return False
    return True


def _address(path: Path) -> int:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(f" {path}"):
            return int(line.split("-", 1)[0], 16)
    raise LookupError(f"{path} is not mapped")


def _flags(page: int) -> int:
    entry = _read("/proc/self/pagemap", page)
    frame = entry & _FRAME_MASK
    if not entry & _PRESENT or not frame:
        raise LookupError("the kernel does not show frames to this process")
    return _read("/proc/kpageflags", frame)


def _read(table: str, position: int) -> int:
    descriptor = os.open(table, os.O_RDONLY)
    try:
        value: int = _ENTRY.unpack(os.pread(descriptor, 8, position * 8))[0]
        return value
    finally:
        os.close(descriptor)
