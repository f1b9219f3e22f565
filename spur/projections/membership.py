"""The membership of the log, as the state remembers it."""

from __future__ import annotations

from spur.projections.tables import Row

__all__ = ["MembershipRow"]


class MembershipRow(Row, frozen=True):
    """The newest membership entry; its key is 1. The consensus room reads the body."""

    index: int
    body: bytes
