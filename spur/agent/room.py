"""Whether the spool has room for what is launched.

A node whose spool has none takes no jobs: the agent says so when it registers its nodes, and the
cluster drains them until it says that there is room again.
"""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["Room"]

MIB = 1 << 20

BACK_PART = 4
"""There is room again a fourth above the mark: a spool at its mark is not low again and again."""


class Room:
    """The room that one spool has, against its mark."""

    def __init__(self, free_bytes: Callable[[], int], mark_mib: int) -> None:
        """Prepare. `free_bytes` says how much can still be written; a mark of 0 is never met."""
        self._free_bytes = free_bytes
        self._mark_mib = mark_mib
        self._is_low = False

    def fault(self) -> str:
        """Return what is wrong with the spool, or nothing. Blocks. Raises: OSError."""
        free_mib = self._free_bytes() // MIB
        mark_mib = self._mark_mib
        enough_mib = mark_mib + mark_mib // BACK_PART if self._is_low else mark_mib
        self._is_low = free_mib < enough_mib
        if not self._is_low:
            return ""
        missed_mib = mark_mib if free_mib < mark_mib else enough_mib
        return f"spool of {os.uname().nodename}: {free_mib} MiB are free, below {missed_mib}"
