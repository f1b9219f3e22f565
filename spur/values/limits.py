"""Named limits of the log: each refusal quotes the name it stands under here.

They steer what `decide` and `apply` return, so they are part of the product, not settings; a
change of one needs a new `cluster.version`.
"""

from __future__ import annotations

__all__ = [
    "ANSWER_BYTES_MAX",
    "ENTRY_BODY_BYTES_MAX",
    "ENTRY_ROW_CHANGES_MAX",
    "REMEMBERED_REQUESTS_MAX",
    "REQUESTS_FORGOTTEN_PER_ENTRY_MAX",
    "REQUEST_MEMORY_NS",
    "TICK_EVENTS_MAX",
    "LimitExceeded",
]

ENTRY_BODY_BYTES_MAX = 4 << 20
"""Bytes of one entry's body. Source: LOG-CONTRACT 1.5."""

ENTRY_ROW_CHANGES_MAX = 2_000
"""Rows that the events of one entry may change. Source: LOG-CONTRACT 1.5."""

ANSWER_BYTES_MAX = 256
"""Bytes of an answer that is remembered. Source: LOG-CONTRACT 3.5."""

REMEMBERED_REQUESTS_MAX = 200_000
"""Request ids remembered at most. Source: LOG-CONTRACT 3.5."""

REQUEST_MEMORY_NS = 15 * 60 * 1_000_000_000
"""Log time for which a request id is remembered. Source: LOG-CONTRACT 3.5."""

REQUESTS_FORGOTTEN_PER_ENTRY_MAX = 64
"""Request ids that one entry may evict. An entry remembers one, so the table always shrinks
faster than it grows, and no entry pays for a quiet hour."""

TICK_EVENTS_MAX = 500
"""Consequences of time in one entry. Source: LOG-CONTRACT 4.2."""


class LimitExceeded(Exception):
    """A named limit would be exceeded; the request is refused by that name."""

    def __init__(self, name: str, limit: int, found: int) -> None:
        super().__init__(f"{name} is {limit}, and this needs {found}")
        self.name = name
        self.limit = limit
        self.found = found

    def __reduce__(self) -> tuple[type[LimitExceeded], tuple[str, int, int]]:
        return (LimitExceeded, (self.name, self.limit, self.found))
