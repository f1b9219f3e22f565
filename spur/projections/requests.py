"""Requests remembered, so that one tried twice is done once (LOG-CONTRACT 3.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from spur.events.envelope import Envelope
from spur.projections.counters import REQUEST_FLOOR, counter, raise_counter
from spur.projections.invariants import invariant
from spur.projections.tables import Row
from spur.values.errors import Rejection
from spur.values.limits import (
    REMEMBERED_REQUESTS_MAX,
    REQUEST_MEMORY_NS,
    REQUESTS_FORGOTTEN_PER_ENTRY_MAX,
)

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "RequestKey",
    "RequestRow",
    "StoredAnswer",
    "lookup",
    "next_part",
    "remember_request",
]

RequestKey = tuple[str, bytes]
"""Principal and request id."""


class RequestRow(Row, frozen=True):
    """A request that was executed, or whose parts are being executed."""

    index: int
    """The entry of its first part."""
    time_ns: int
    hash: bytes
    part: int
    """Parts done; 0 when the request is finished."""
    answer: bytes
    answer_index: int
    """The entry whose answer this is; 0 while parts follow."""


class StoredAnswer(msgspec.Struct, frozen=True, gc=False):
    """The answer that a request had the first time."""

    answer: bytes
    index: int


def lookup(
    state: State, principal: str, request_id: bytes, request_hash: bytes, since: int
) -> StoredAnswer | Rejection | None:
    """Return what is known of a request; None when it is to be executed, or gone on with."""
    row = state.requests.get((principal, request_id))
    if row is None:
        floor = counter(state, REQUEST_FLOOR)
        if since < floor:
            return Rejection(
                "outcome-unknown",
                f"the request was first tried at index {since}, and what came of requests up to "
                f"{floor} is forgotten; nothing was executed",
                "look whether it took effect, then ask with a new request id",
            )
        return None
    if row.hash != request_hash:
        return Rejection(
            "request-reused",
            "this request id was used for another request; nothing was executed",
            "give each request its own id",
        )
    if row.part:
        return None
    return StoredAnswer(row.answer, row.answer_index)


def next_part(state: State, principal: str, request_id: bytes) -> int:
    """Return the number of the part to execute next: 1, unless parts of it were done before."""
    row = state.requests.get((principal, request_id))
    return 1 if row is None else row.part + 1


def remember_request(state: State, index: int, envelope: Envelope) -> None:
    """Write down what an entry answers, and forget the oldest that are over age or number.

    An entry that answers nobody changes nothing here, so it costs nothing.
    """
    request = envelope.request
    request_id = request.id
    if not request_id:
        return
    table, time_ns = state.requests, envelope.time_ns
    key = (request.principal, request_id)
    known = table.get(key)
    first, first_ns = (index, time_ns) if known is None else (known.index, known.time_ns)
    if request.parts:
        row = RequestRow(first, first_ns, request.hash, 0, request.answer, index)
    else:
        row = RequestRow(first, first_ns, request.hash, request.part, b"", 0)
    table.put(key, row)
    _forget(state, time_ns - REQUEST_MEMORY_NS)


def _forget(state: State, horizon_ns: int) -> None:
    """Evict what is older than the horizon or beyond the number, in order of the log."""
    table, oldest = state.requests, state.requests_oldest
    floor = 0
    for _ in range(REQUESTS_FORGOTTEN_PER_ENTRY_MAX):
        found = oldest.first()
        if found is None:
            break
        index, key = found
        if table[key].time_ns > horizon_ns and len(table) <= REMEMBERED_REQUESTS_MAX:
            break
        table.delete(key)
        floor = index
    if floor:
        raise_counter(state, REQUEST_FLOOR, floor)


@invariant("remembered-requests-are-newer-than-forgotten-ones")
def requests_out_of_order(state: State) -> Iterator[str]:
    """What is remembered came after all that was forgotten, and is not from the future."""
    floor = counter(state, REQUEST_FLOOR)
    for key in state.requests.sorted_keys():
        row = state.requests[key]
        if not floor < row.index <= max(row.index, row.answer_index) <= state.index:
            yield f"request {key[1].hex()} of {key[0]} is of entry {row.index}; floor {floor}"
