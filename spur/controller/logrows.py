"""Entries of the log as rows of plain values, for people and for other programs.

Private text is never in a row: an attachment is shown by name, size and digest, and its content as
`(redacted)`, or `(erased)` where the replica knows that it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from spur.consensus.membership import Membership
from spur.events.codec import decode_envelope
from spur.events.declare import Event, IgnoredEvent
from spur.events.envelope import Actor, Entry, EntryKind, Envelope
from spur.values.members import by_whom

__all__ = ["ERASED", "REDACTED", "Row", "entry_row", "event_rows", "format_time", "full_row"]

Row = dict[str, Any]
"""A row: names to values that JSON can hold."""

REDACTED = "(redacted)"
ERASED = "(erased)"

_KINDS = {EntryKind.NOOP: "no-op", EntryKind.MEMBERSHIP: "membership", EntryKind.EVENTS: "events"}


def format_time(time_ns: int) -> str:
    """Return a stamp as ISO 8601 in UTC, to the nanosecond."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def entry_row(entry: Entry) -> Row:
    """Return an entry in one line: what was asked, by whom, and the names of what came of it.

    Raises: UnreadableRecord for an entry that this release cannot read.
    """
    row: Row = {
        "index": entry.index,
        "term": entry.term,
        "time": None,
        "command": _kind_name(entry),
        "actor": None,
        "events": [],
        "attachments": [],
    }
    if entry.kind == EntryKind.EVENTS:
        envelope, _ = decode_envelope(entry.body, entry.index)
        row["time"] = format_time(envelope.time_ns)
        row["command"] = envelope.command
        row["actor"] = _actor_words(envelope.actor)
        row["events"] = [stored.type for stored in envelope.events]
        row["attachments"] = [f"{ref.name} ({ref.size} B)" for ref in envelope.attachments]
    return row


def event_rows(entry: Entry) -> Iterator[Row]:
    """Yield the events of an entry, one row each, with their fields.

    Raises: UnreadableRecord for an entry that this release cannot read.
    """
    if entry.kind != EntryKind.EVENTS:
        return
    envelope, events = decode_envelope(entry.body, entry.index)
    for position, (stored, event) in enumerate(zip(envelope.events, events, strict=True)):
        yield {
            "index": entry.index,
            "position": position,
            "time": format_time(envelope.time_ns),
            "event": stored.type,
            "version": stored.version,
            "fields": _fields_of(event),
        }


def full_row(entry: Entry, chain: bytes, is_erased: Callable[[bytes], bool]) -> Row:
    """Return all of an entry but the content of its attachments.

    `is_erased` tells whether the blob of a digest is known to be gone.

    Raises: UnreadableRecord for an entry that this release cannot read.
    """
    row: Row = {
        "index": entry.index,
        "term": entry.term,
        "kind": _kind_name(entry),
        "chain": chain.hex(),
    }
    if entry.kind == EntryKind.MEMBERSHIP:
        row["members"] = [_plain(member) for member in Membership.decode(entry.body).members]
        who = by_whom(entry.body)
        row["by_whom"] = None if who is None else _plain(who)
    elif entry.kind == EntryKind.EVENTS:
        envelope, events = decode_envelope(entry.body, entry.index)
        row |= _envelope_row(envelope)
        row["events"] = [
            {
                "type": stored.type,
                "version": stored.version,
                "ignorable": bool(stored.flags),
                "fields": _fields_of(event),
            }
            for stored, event in zip(envelope.events, events, strict=True)
        ]
        row["attachments"] = [
            {
                "name": ref.name,
                "size": ref.size,
                "digest": ref.digest.hex(),
                "content": ERASED if is_erased(ref.digest) else REDACTED,
            }
            for ref in envelope.attachments
        ]
    return row


def _envelope_row(envelope: Envelope) -> Row:
    """Return what an envelope says besides its events."""
    request = envelope.request
    return {
        "time": format_time(envelope.time_ns),
        "time_ns": envelope.time_ns,
        "command": envelope.command,
        "request": {
            "principal": request.principal,
            "id": request.id.hex(),
            "since": request.since,
            "hash": request.hash.hex(),
            "part": request.part,
        },
        "actor": _plain(envelope.actor),
    }


def _kind_name(entry: Entry) -> str:
    """Return the word for what an entry is."""
    return _KINDS[EntryKind(entry.kind)]


def _actor_words(actor: Actor) -> str:
    """Return who asked, and on whose word, for people."""
    if actor.host_role == "cluster":
        return f"the cluster ({actor.via})"
    return f"uid {actor.uid} on {actor.host_role} host {actor.host_id} ({actor.via})"


def _fields_of(event: Event) -> Row:
    """Return an event's fields by name; none of one that is ignorable and unknown."""
    if isinstance(event, IgnoredEvent):
        return {}
    fields: Row = _plain(event)
    return fields


def _plain(value: Any) -> Any:
    """Return a stored value as JSON can hold it: structs by name, bytes as hexadecimal digits."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, int) else value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
