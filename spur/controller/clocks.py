"""The clocks of this machine, as the replica reads them."""

from __future__ import annotations

import mmap
import time
from pathlib import Path

from spur.values.errors import OperatorFault

__all__ = ["OFFSET_BYTES", "MachineClocks"]

OFFSET_BYTES = 8
"""Of a file that holds an offset: nanoseconds, signed, the lowest byte first."""


class MachineClocks:
    """Wall clock and boot-time clock; the latter counts while the machine sleeps."""

    def __init__(self, offset_ns: int = 0, offset_file: Path | None = None) -> None:
        """Add an offset to the wall clock, and what a file holds at the moment of each reading.

        Raises: OperatorFault when the file can't be read.
        """
        self._offset_ns = offset_ns
        self._moving = None if offset_file is None else _mapped(offset_file)

    def wall_ns(self) -> int:
        """Return the wall clock, UTC."""
        wall_ns = time.time_ns() + self._offset_ns
        if self._moving is not None:
            wall_ns += int.from_bytes(self._moving[:OFFSET_BYTES], "little", signed=True)
        return wall_ns

    def mono_ns(self) -> int:
        """Return nanoseconds since the machine booted."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), OFFSET_BYTES, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise OperatorFault(
            f"clock_offset_file {path} does not hold {OFFSET_BYTES} bytes: {error}; nothing was"
            " started"
        ) from error
