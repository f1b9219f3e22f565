"""Results as JSON: a record is one object; a listing is one object a line, written as it comes."""

from __future__ import annotations

import sys

import msgspec

from spur_cli.output.result import Listing, Record

__all__ = ["write_json"]


def write_json(result: Listing | Record) -> None:
    """Write a record as one indented object, or a listing as JSON lines in column order."""
    if isinstance(result, Record):
        encoded = msgspec.json.format(msgspec.json.encode(result.fields), indent=2)
        print(encoded.decode())
        return
    encode = msgspec.json.Encoder().encode
    for row in result.rows:
        line = encode({column.name: row[column.name] for column in result.columns})
        sys.stdout.write(line.decode() + "\n")
