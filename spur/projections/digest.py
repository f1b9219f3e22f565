"""Digest: one value for the whole state, brought up to date in slices."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["settle", "state_digest"]


def state_digest(state: State) -> bytes:
    """Return the digest of all tables, 32 bytes; equal states have equal digests.

    It settles what is left, which takes as long as there are unsettled rows.
    """
    total = hashlib.sha256()
    for table in state.tables():
        total.update(f"{table.name}/{table.version}/".encode())
        total.update(table.digest())
    return total.digest()


def settle(state: State, limit: int) -> int:
    """Bring at most `limit` changed rows into the running digests; return how many were."""
    left = limit
    for table in state.tables():
        if left <= 0:
            break
        left -= table.settle(left)
    return limit - left
