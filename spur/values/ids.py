"""Ids: one type per kind of thing, so that mypy tells them apart."""

from __future__ import annotations

from typing import NewType

__all__ = ["HostId", "JobId", "NodeName", "PartitionName"]

JobId = NewType("JobId", int)
"""64 bits, from a counter in the state, never used twice (LOG-CONTRACT 7.1)."""

HostId = NewType("HostId", int)
"""The log index that added the host; 0 is the cluster itself. Never used twice."""

NodeName = NewType("NodeName", str)
PartitionName = NewType("PartitionName", str)
