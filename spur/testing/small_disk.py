"""A file system of a few MiB in memory, to be filled. Takes root."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["SmallDisk", "small_disk"]

MIB = 1 << 20

GONE_S = 10.0
"""How long processes on a file system may take to be gone after they were killed."""


class SmallDisk:
    """A mounted file system."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._filler = directory / "filler"

    def fill(self, free_mib: int) -> None:
        """Take room until so much is free, or as near as can be."""
        figures = os.statvfs(self.directory)
        taken = figures.f_bavail * figures.f_frsize - free_mib * MIB
        with self._filler.open("ab") as file:
            if taken > 0:
                os.posix_fallocate(file.fileno(), file.tell(), taken)

    def clear(self) -> None:
        """Give the room back."""
        self._filler.unlink()


@contextmanager
def small_disk(directory: Path, size_mib: int) -> Iterator[SmallDisk]:
    """Mount a file system on a new directory; unmount it at the end."""
    directory.mkdir()
    size = f"size={size_mib}m,mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "spur-test", str(directory)], check=True)
    try:
        yield SmallDisk(directory)
    finally:
        _unmount(directory)


def _unmount(directory: Path) -> None:
    """Unmount, once those are gone that were just killed; in the end without waiting for them."""
    end_s = time.monotonic() + GONE_S
    while time.monotonic() < end_s:
        if subprocess.run(["umount", str(directory)], check=False).returncode == 0:
            return
        time.sleep(0.2)
    subprocess.run(["umount", "--lazy", str(directory)], check=True)
