"""The lock of shapes: one line for each type and version that was ever written.

    cluster.version 1 since=1 flags=0 shape=5d0f... defaults={}

A shape is the names and types of all fields, at every depth, and the values of enumerations. It
is compared with what the classes say now: a line that was written never changes, and none is
missing (ADR-0003). `ops/schema-lock` writes new lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from spur.events.declare import EventType
from spur.events.upcasts import Upcast

__all__ = ["breaches", "event_lines", "shape_hash", "shape_text"]

_SHAPE_HASH_DIGITS = 32
"""128 bits: two shapes that differ have two hashes."""


def shape_text(kind: Any) -> str:
    """Return a type's shape in full: equal texts read and write the same bytes."""
    return _text(msgspec.inspect.type_info(kind))


def shape_hash(kind: Any) -> str:
    """Return a short name for a type's shape."""
    return hashlib.sha256(shape_text(kind).encode()).hexdigest()[:_SHAPE_HASH_DIGITS]


def _text(info: Any) -> str:
    """Return the shape of one node of msgspec's description of a type."""
    inspect = msgspec.inspect
    if isinstance(info, inspect.StructType):
        tag = "" if info.tag is None else f"{info.tag!r};"
        fields = ",".join(f"{field.name}:{_text(field.type)}" for field in info.fields)
        return f"({tag}{fields})"
    if isinstance(info, inspect.EnumType):
        values = sorted(repr(member.value) for member in info.cls)
        return f"enum[{','.join(values)}]"
    if isinstance(info, inspect.UnionType):
        return "|".join(sorted(_text(part) for part in info.types))
    if isinstance(info, inspect.TupleType):
        return f"[{','.join(_text(part) for part in info.item_types)}]"
    if isinstance(info, inspect.VarTupleType):
        return f"[{_text(info.item_type)}...]"
    if isinstance(info, inspect.LiteralType):
        return f"literal[{','.join(sorted(map(repr, info.values)))}]"
    return type(info).__name__.removesuffix("Type").lower()


def event_lines(
    events: Mapping[str, EventType], upcasts: Mapping[tuple[str, int], Upcast]
) -> list[str]:
    """Return the line of every version of every event, in order."""
    lines = []
    for name in sorted(events):
        row = events[name]
        for version in range(1, row.version + 1):
            former = upcasts.get((name, version - 1))
            defaults = {} if former is None else dict(former.defaults)
            old = upcasts.get((name, version))
            if version < row.version and old is None:
                continue
            shape = shape_hash(row.cls if old is None else old.old)
            lines.append(
                f"{name} {version} since={row.since if old is None else old.since} "
                f"flags={row.flags} shape={shape} "
                f"defaults={msgspec.json.encode(defaults, order='sorted').decode()}"
            )
    return lines


def breaches(locked: Iterable[str], present: Iterable[str]) -> list[str]:
    """Return what is wrong with the present lines, one sentence each."""
    before = {_key(line): line for line in locked}
    now = {_key(line): line for line in present}
    found = []
    for key, line in before.items():
        if key not in now:
            found.append(f"{key} was written by a release and can no longer be read")
        elif now[key] != line:
            found.append(
                f"{key} has changed: a released version never does; declare the next version. "
                f"Locked: {line!r}. Now: {now[key]!r}"
            )
    found.extend(f"{key} is not locked; run ops/schema-lock" for key in now if key not in before)
    return found


def _key(line: str) -> str:
    """Return the part of a line that names type and version."""
    return " ".join(line.split(" ", 2)[:2])
