"""Digest: one value for the whole state, brought up to date in slices."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from spur.projections.tables import table_lines

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["digest_version", "settle", "state_digest"]


def digest_version(state: State) -> int:
    """Return a number, 48 bits, that names the shapes of all tables.

    Replicas of two releases, half-way through an upgrade, may keep the same state in tables of
    other shapes; their digests differ then, and this number says that they can't be compared.
    """
    lines = "\n".join(table_lines(state.tables()))
    return int.from_bytes(hashlib.sha256(lines.encode()).digest()[:6], "big")


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
