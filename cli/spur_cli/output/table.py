"""Results for people: tables by rich on a terminal, and the same columns, unwrapped, off one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from spur_cli.output.result import Column, Listing, Record, Value

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["write_table"]

_BATCH_COUNT = 1000
"""Rows whose widths are settled together; a long listing is shown as it comes."""

_WIDTH_UNLIMITED = 100_000
"""Off a terminal nothing is wrapped or cut: another program or a pager reads it."""


def write_table(result: Listing | Record) -> None:
    """Write a listing as a table, or a record as its line or as `name  value` lines."""
    if isinstance(result, Listing):
        _write_listing(result)
        return
    if result.line:
        print(result.line)
        return
    width = max(len(name) for name in result.fields)
    for name, value in result.fields.items():
        print(f"{name:<{width}}  {_format_cell(value) or '-'}")


def _write_listing(listing: Listing) -> None:
    rows = iter(listing.rows)
    is_first = True
    while batch := list(islice(rows, _BATCH_COUNT)):
        _write_batch(listing.columns, batch, has_header=is_first)
        is_first = False
    if is_first:
        print(listing.empty)


def _write_batch(
    columns: tuple[Column, ...], batch: list[Mapping[str, Value]], *, has_header: bool
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=has_header, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(
            column.header,
            justify="right" if column.is_right else "left",
            overflow="fold",
            no_wrap=not sys.stdout.isatty(),
        )
    for row in batch:
        # Text, not str: a value is never read as markup.
        table.add_row(*(_text(column, row[column.name]) for column in columns))
    if sys.stdout.isatty():
        Console(file=sys.stdout, highlight=False).print(table)
        return
    console = Console(file=sys.stdout, highlight=False, width=_WIDTH_UNLIMITED, color_system=None)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def _text(column: Column, value: Value) -> Text:
    from rich.text import Text

    shown = _format_cell(value)
    return Text(shown, style=dict(column.styles).get(shown, ""))


def _format_cell(value: Value) -> str:
    return "".join(_printable(_plain(value)))


def _plain(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={_plain(item)}" for name, item in value.items())
    return str(value)


def _printable(text: str) -> Iterator[str]:
    """Yield the text with control characters as escapes: a job's name must not steer a terminal."""
    for character in text:
        yield character if character.isprintable() else repr(character)[1:-1]
