"""Bytes of an envelope, both ways; reading is strict.

An unknown type, a higher version, or surplus or missing elements at any depth stop the reader,
unless the stored flags say that the event is ignorable. Older versions are brought up to date
here, so nothing behind this door knows that they existed. Source: LOG-CONTRACT 1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from spur.events.declare import (
    EVENTS,
    IGNORABLE,
    Event,
    EventType,
    IgnoredEvent,
)
from spur.events.envelope import (
    ENVELOPE_VERSION,
    Actor,
    AttachmentRef,
    Envelope,
    RequestMark,
    StoredEvent,
)
from spur.events.upcasts import UPCASTS, Upcast
from spur.values.errors import SpurError
from spur.values.limits import ANSWER_BYTES_MAX, ENTRY_BODY_BYTES_MAX, LimitExceeded

__all__ = [
    "Codec",
    "NotYetWritable",
    "UnreadableRecord",
    "decode_envelope",
    "encode_envelope",
]

_ENCODE = msgspec.msgpack.Encoder().encode


class UnreadableRecord(SpurError):
    """A record that this release cannot read; the reader stops at it and skips nothing."""

    def __init__(self, index: int, event_type: str, why: str) -> None:
        what = f"event {event_type!r}" if event_type else "envelope"
        super().__init__(f"entry {index}: {what} cannot be read: {why}")
        self.index = index
        self.event_type = event_type
        self.why = why

    def __reduce__(self) -> tuple[type[UnreadableRecord], tuple[int, str, str]]:
        return (UnreadableRecord, (self.index, self.event_type, self.why))


class NotYetWritable(SpurError):
    """A version of an event that the cluster may not write yet: some member cannot read it."""


Reader = Callable[[bytes | msgspec.Raw], Event]


class Codec:
    """Encoder and strict decoder over one registry of events and upcasts."""

    def __init__(
        self,
        events: dict[str, EventType],
        upcasts: dict[tuple[str, int], Upcast],
    ) -> None:
        self._events = events
        self._upcasts = upcasts
        self._readers: dict[tuple[str, int], Reader] = {}
        self._rows: dict[type[Event], EventType] = {}
        self._envelope = msgspec.msgpack.Decoder(Envelope).decode

    def encode(
        self,
        *,
        time_ns: int,
        command: str,
        request: RequestMark,
        actor: Actor,
        events: Sequence[Event],
        attachments: tuple[AttachmentRef, ...] = (),
        cluster_version: int,
    ) -> bytes:
        """Return the body of an entry that holds these events.

        Raises: LimitExceeded for a body or an answer over its limit; NotYetWritable for an event
        that `cluster_version` does not allow.
        """
        if len(request.answer) > ANSWER_BYTES_MAX:
            raise LimitExceeded("answer-bytes-max", ANSWER_BYTES_MAX, len(request.answer))
        stored = []
        for event in events:
            row = self._row(type(event))
            if row.since > cluster_version:
                raise NotYetWritable(
                    f"event {row.name!r} version {row.version} may be written from cluster "
                    f"version {row.since} on; the cluster is at {cluster_version}"
                )
            payload = msgspec.Raw(_ENCODE(event))
            stored.append(StoredEvent(row.name, row.version, row.flags, payload))
        body = _ENCODE(
            Envelope(ENVELOPE_VERSION, time_ns, command, request, actor, tuple(stored), attachments)
        )
        if len(body) > ENTRY_BODY_BYTES_MAX:
            raise LimitExceeded("entry-body-bytes-max", ENTRY_BODY_BYTES_MAX, len(body))
        return body

    def _row(self, cls: type[Event]) -> EventType:
        """Return the registry's row of an event class. Raises: KeyError when not declared."""
        if cls not in self._rows:
            self._rows = {row.cls: row for row in self._events.values()}
        return self._rows[cls]

    def decode(self, body: bytes, index: int) -> tuple[Envelope, tuple[Event, ...]]:
        """Return the envelope and its events at their newest versions.

        An ignorable event that is unknown comes back as an `IgnoredEvent`, so positions hold.

        Raises: UnreadableRecord naming the index and the event's type.
        """
        try:
            envelope = self._envelope(body)
        except msgspec.MsgspecError as error:
            raise UnreadableRecord(index, "", _envelope_trouble(body, error)) from error
        if envelope.version != ENVELOPE_VERSION:
            raise UnreadableRecord(
                index,
                "",
                f"envelope version {envelope.version} is not the known {ENVELOPE_VERSION}",
            )
        readers = self._readers
        events = []
        for stored in envelope.events:
            reader = readers.get((stored.type, stored.version))
            if reader is None:
                events.append(self._decode_first(stored, index))
                continue
            try:
                events.append(reader(stored.payload))
            except msgspec.MsgspecError as error:
                raise UnreadableRecord(index, stored.type, str(error)) from error
        return envelope, tuple(events)

    def _decode_first(self, stored: StoredEvent, index: int) -> Event:
        """Decode an event whose type and version were not met before."""
        row = self._events.get(stored.type)
        if row is None or stored.version > row.version:
            if stored.flags & IGNORABLE:
                return IgnoredEvent(stored.type, stored.version)
            if row is None:
                raise UnreadableRecord(index, stored.type, "this release does not know the type")
            raise UnreadableRecord(
                index,
                stored.type,
                f"version {stored.version} is newer than the known {row.version}",
            )
        reader = self._reader(row, stored.version)
        if reader is None:
            raise UnreadableRecord(index, stored.type, f"no such version: {stored.version}")
        self._readers[stored.type, stored.version] = reader
        try:
            return reader(stored.payload)
        except msgspec.MsgspecError as error:
            raise UnreadableRecord(index, stored.type, str(error)) from error

    def _reader(self, row: EventType, version: int) -> Reader | None:
        """Return what reads a stored version and brings it to the newest; None: no such one."""
        if version == row.version:
            return msgspec.msgpack.Decoder(row.cls).decode
        steps: list[Upcast] = []
        for number in range(version, row.version):
            step = self._upcasts.get((row.name, number))
            if step is None:
                return None
            steps.append(step)
        decode = msgspec.msgpack.Decoder(steps[0].old).decode

        def read(payload: bytes | msgspec.Raw) -> Event:
            event = decode(payload)
            for step in steps:
                event = step.to_next(event)
            return event

        return read


def _envelope_trouble(body: bytes, error: msgspec.MsgspecError) -> str:
    """Say "newer version" rather than "wrong length" when that is the reason."""
    try:
        version = msgspec.msgpack.decode(body)[0]
    except (msgspec.MsgspecError, IndexError, TypeError, KeyError):
        return str(error)
    if isinstance(version, int) and version > ENVELOPE_VERSION:
        return f"envelope version {version} is newer than the known {ENVELOPE_VERSION}"
    return str(error)


_CODEC = Codec(EVENTS, UPCASTS)

encode_envelope = _CODEC.encode
decode_envelope = _CODEC.decode
