"""The cluster itself: identity, version, membership, counters."""

from __future__ import annotations

from spur.projections.tables import Row

__all__ = ["ClusterRow", "CounterRow", "MembershipRow", "newborn"]


class ClusterRow(Row, frozen=True):
    """The one row of what the cluster is; its key is 1."""

    cluster_id: bytes
    incarnation: int
    version: int
    """Newest version of events that may be written (LOG-CONTRACT 1.4)."""


class CounterRow(Row, frozen=True):
    """A number that only rises."""

    value: int


class MembershipRow(Row, frozen=True):
    """The newest membership entry; its key is 1. The consensus room reads the body."""

    index: int
    body: bytes


def newborn(cluster_id: bytes, incarnation: int) -> ClusterRow:
    """Return what a cluster is before its first entry."""
    return ClusterRow(cluster_id, incarnation, 1)
