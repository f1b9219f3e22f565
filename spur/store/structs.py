"""Structs of the log as columns, and back: a field goes into the column that has its name.

How a field is written follows from its type alone, so that a new option of jobs is one column and
no code: numbers, text and bytes as they are, enumerations as their value, names in a row as a list
with commas, and what is made of further structs as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec
from msgspec import inspect
from sqlalchemy import LargeBinary, Table
from sqlalchemy.types import TypeEngine

from spur.store.tables import jobs, run_nodes, step_nodes
from spur.values.arrays import TaskSet
from spur.values.jobspec import JobSpec, ResourceAsk
from spur.values.tres import NodeShare

__all__ = ["SHARES", "STEP_SHARES", "Columns", "spec_columns", "spec_of", "tasks_of", "tasks_text"]

S = TypeVar("S", bound=msgspec.Struct)

Row = Mapping[str, Any]

MASK_BYTES = 8
"""A mask of devices in bytes: SQL has no unsigned integer of 64 bits."""


class Columns(Generic[S]):
    """The fields of one class of structs, as columns of one table."""

    def __init__(self, cls: type[S], table: Table, *, without: str = "") -> None:
        self._cls = cls
        hints = get_type_hints(cls)
        self._ways = [
            (field.name, *_way(field.type, hints[field.name], table.c[field.name].type))
            for field in _fields(cls)
            if field.name != without
        ]

    def write(self, struct: S) -> dict[str, Any]:
        """Return the columns that hold the struct."""
        return {name: encode(getattr(struct, name)) for name, encode, _ in self._ways}

    def read(self, row: Row, **others: Any) -> S:
        """Return the struct that the row's columns hold; `others` are fields that have none."""
        return self._cls(**{name: decode(row[name]) for name, _, decode in self._ways}, **others)


Way = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _fields(cls: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(cls)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{cls.__name__} is no struct")
    return info.fields


def _as_it_is(value: Any) -> Any:
    return value


def _way(kind: inspect.Type, hint: Any, column: TypeEngine[Any]) -> Way:
    """Return how a field of this type is written into a column, and read."""
    if isinstance(kind, inspect.UnionType):
        inner = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        if len(inner) == 1 and isinstance(inner[0], _PLAIN):
            return _as_it_is, _as_it_is
    if isinstance(kind, inspect.IntType) and isinstance(column, LargeBinary):
        return (
            lambda mask: mask.to_bytes(MASK_BYTES, "big"),
            lambda stored: int.from_bytes(stored, "big"),
        )
    if isinstance(kind, _PLAIN):
        return _as_it_is, _as_it_is
    if isinstance(kind, inspect.EnumType):
        return _value_of, kind.cls
    if isinstance(kind, inspect.VarTupleType) and isinstance(kind.item_type, inspect.StrType):
        return ",".join, _names_of
    return _json_of, msgspec.json.Decoder(hint).decode


_PLAIN = (inspect.IntType, inspect.BoolType, inspect.StrType, inspect.BytesType)


def _value_of(member: Enum) -> Any:
    return member.value


def _json_of(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _names_of(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


_SPEC = Columns(JobSpec, jobs, without="ask")
_ASK = Columns(ResourceAsk, jobs)
SHARES = Columns(NodeShare, run_nodes)
"""What a run holds on one node."""
STEP_SHARES = Columns(NodeShare, step_nodes)
"""What a step uses on one node."""


def spec_columns(spec: JobSpec) -> dict[str, Any]:
    """Return the columns of `jobs` that hold a spec."""
    return _SPEC.write(spec) | _ASK.write(spec.ask)


def spec_of(row: Row) -> JobSpec:
    """Return the spec that a row of `jobs` holds."""
    return _SPEC.read(row, ask=_ASK.read(row))


def tasks_text(tasks: TaskSet | None) -> str:
    """Return the tasks of an array as text that gives back these very ranges; empty for None."""
    if tasks is None:
        return ""
    return ",".join(
        (str(first) if first == last else f"{first}-{last}") + (f":{step}" if step != 1 else "")
        for first, last, step in tasks.ranges
    )


def tasks_of(text: str) -> TaskSet | None:
    """Return the tasks that `tasks_text` wrote."""
    if not text:
        return None
    ranges = []
    for part in text.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        ranges.append((int(first), int(last or first), int(step or 1)))
    return TaskSet(tuple(ranges))
