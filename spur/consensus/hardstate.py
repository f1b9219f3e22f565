"""What a replica must never forget: its term and its vote."""

from __future__ import annotations

import msgspec

__all__ = ["HardState"]


class HardState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Raft's persistent state beside the log itself."""

    term: int = 0
    vote: int = 0
    """The replica voted for in this term; 0 for none."""
