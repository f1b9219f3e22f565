"""Ids: one type per kind of thing, so that mypy tells them apart."""

from __future__ import annotations

import re
from typing import NewType

__all__ = ["NAME_GRAMMAR", "HostId", "JobId", "NodeName", "PartitionName", "TokenId", "is_name"]

JobId = NewType("JobId", int)
"""64 bits, from a counter in the state, never used twice (LOG-CONTRACT 7.1)."""

HostId = NewType("HostId", int)
"""The log index that added the host; 0 is the cluster itself. Never used twice."""

TokenId = NewType("TokenId", int)
"""The log index that created the join token. Never used twice."""

NodeName = NewType("NodeName", str)
PartitionName = NewType("PartitionName", str)

NAME_GRAMMAR = "up to 64 letters, digits, '.', '_' and '-', a letter or digit first"
"""What `is_name` asks, for sentences."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def is_name(text: str) -> bool:
    """Return whether the text may name a host, a node or a partition."""
    return _NAME.match(text) is not None
