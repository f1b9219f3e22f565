"""Results in the parsable form: fields parted by `|`, one header line, one line a row.

A backslash, a `|` or a line break inside a value is written as an escape, so that every line is one
row and every `|` is one border.
"""

from __future__ import annotations

import sys

import msgspec

from spur_cli.output.result import Listing, Record, Value

__all__ = ["format_field", "write_parsable"]

_ESCAPES = str.maketrans({"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"})


def format_field(value: Value) -> str:
    """Return a value as one field. None is empty; lists and objects are JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    return msgspec.json.encode(value).decode().translate(_ESCAPES)


def write_parsable(result: Listing | Record) -> None:
    """Write a header line and one line for each row, or `NAME|VALUE` lines for a record."""
    if isinstance(result, Record):
        for name, value in result.fields.items():
            sys.stdout.write(f"{name}|{format_field(value)}\n")
        return
    sys.stdout.write("|".join(column.header for column in result.columns) + "\n")
    for row in result.rows:
        fields = [format_field(row[column.name]) for column in result.columns]
        sys.stdout.write("|".join(fields) + "\n")
