"""Requests about the cluster as a whole."""

from __future__ import annotations

from spur.wire.declare import Request, request

__all__ = ["Tick"]


@request
class Tick(Request, frozen=True, tag="clock.tick"):
    """Turn what has fallen due into events; the cluster asks this of itself."""
