"""Digest: one value for the whole state, brought up to date in slices."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["STATE_VERSION", "settle", "state_digest"]

STATE_VERSION = 1
"""Of the digest: it rises with every change of a table's shape, so that replicas of two releases
do not compare what cannot be equal."""


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
