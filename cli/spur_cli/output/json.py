"""Results as JSON: a record is one object; a listing is one object a line, written as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

import msgspec

from spur_cli.output.result import Listing, Record, Value

__all__ = ["write_json", "write_rows"]


def write_json(result: Listing | Record) -> None:
    """Write a record as one indented object, or a listing as JSON lines in column order."""
    if isinstance(result, Record):
        encoded = msgspec.json.format(msgspec.json.encode(result.fields), indent=2)
        print(encoded.decode())
        return
    names = [column.name for column in result.columns]
    write_rows(({name: row[name] for name in names} for row in result.rows), sys.stdout)


def write_rows(rows: Iterable[Mapping[str, Value]], stream: TextIO) -> int:
    """Write each row as one object a line, and return how many there were."""
    encode = msgspec.json.Encoder().encode
    count = 0
    for row in rows:
        stream.write(encode(row).decode() + "\n")
        count += 1
    return count
