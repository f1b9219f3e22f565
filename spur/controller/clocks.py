"""The clocks of this machine, as the replica reads them."""

from __future__ import annotations

import time

__all__ = ["MachineClocks"]


class MachineClocks:
    """Wall clock and boot-time clock; the latter counts while the machine sleeps."""

    def __init__(self, offset_ns: int = 0) -> None:
        self._offset_ns = offset_ns

    def wall_ns(self) -> int:
        """Return the wall clock, UTC."""
        return time.time_ns() + self._offset_ns

    def mono_ns(self) -> int:
        """Return nanoseconds since the machine booted."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
