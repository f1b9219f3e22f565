"""What a command hands over to be shown.

A command builds a `Listing` (many rows of one kind) or a `Record` (one thing, named values). Every
form shows the same values; only a table may shorten or colour them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Column", "Form", "Listing", "Record", "Value"]

Value = str | int | bool | None | list["Value"] | dict[str, "Value"]
"""What a cell may hold: exactly what JSON can say without a float."""


class Form(StrEnum):
    """How a result is shown."""

    TABLE = "table"
    JSON = "json"
    PARSABLE = "parsable"


class Column(NamedTuple):
    """One column of a listing."""

    name: str
    """The JSON name, and the key of the value in a row."""
    header: str
    """The heading in tables and in the parsable form."""
    is_right: bool = False
    """Numbers stand to the right."""
    styles: tuple[tuple[str, str], ...] = ()
    """Values and the colours that they have in tables on a terminal."""


class Listing(NamedTuple):
    """Rows of one kind; they may be produced while they are shown."""

    columns: tuple[Column, ...]
    rows: Iterable[Mapping[str, Value]]
    empty: str
    """What a person reads when there is no row."""


class Record(NamedTuple):
    """One thing as named values."""

    fields: Mapping[str, Value]
    line: str = ""
    """What a person reads instead of the fields, when one line says it all."""
