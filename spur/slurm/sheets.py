"""Formats that sshare, sstat and sreport have in common: names with widths, in columns or parted.

    -o account%30,user%-5,fairshare    a width puts a value to the right, a negative one to the left

A name that comes twice counts where it comes last. Source: sshare(1) --format; sstat(1) --format;
transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

__all__ = ["Sheet", "SheetCell", "SheetField", "UnknownName", "helped", "parse_sheet"]

T = TypeVar("T")

WIDTH_MAX = 65_535
"""The widest field: a format can't ask for endless memory."""


class UnknownName(ValueError):
    """A name that no field has."""


class SheetField(NamedTuple, Generic[T]):
    """One field."""

    name: str
    """As --helpformat spells it; case does not matter, and it may be cut short."""
    width: int
    """Negative puts it to the left."""
    value: Callable[[T], str]
    heading: str = ""
    """When it is another than the name."""

    @property
    def head(self) -> str:
        """Return what stands above it."""
        return self.heading or self.name


class SheetCell(NamedTuple, Generic[T]):
    """A field at a width."""

    field: SheetField[T]
    width: int
    is_left: bool

    def text(self, value: str) -> str:
        """Return a value at the width; one that is cut ends in a plus."""
        if len(value) > self.width > 0:
            value = f"{value[: self.width - 1]}+"
        return value.ljust(self.width) if self.is_left else value.rjust(self.width)

    def heading(self) -> str:
        """Return the heading at the width."""
        head = self.field.head[: self.width]
        return head.ljust(self.width) if self.is_left else head.rjust(self.width)


class Sheet(NamedTuple, Generic[T]):
    """What makes lines."""

    cells: tuple[SheetCell[T], ...]
    delimiter: str = ""
    """Between fields; empty for columns."""
    ends: bool = False
    """Whether a delimiter stands behind the last field too."""

    def header(self) -> str:
        """Return the headings, in columns with a line under them."""
        if self.delimiter:
            return self._joined([cell.field.head for cell in self.cells])
        heads = "".join(f"{cell.heading()} " for cell in self.cells)
        rules = "".join(f"{'-' * cell.width} " for cell in self.cells)
        return f"{heads}\n{rules}\n"

    def line(self, row: T) -> str:
        """Return the line of a row."""
        values = [cell.field.value(row) for cell in self.cells]
        if self.delimiter:
            return self._joined(values)
        cells = zip(self.cells, values, strict=True)
        return "".join(f"{cell.text(value)} " for cell, value in cells) + "\n"

    def _joined(self, values: list[str]) -> str:
        end = self.delimiter if self.ends else ""
        return f"{self.delimiter.join(values)}{end}\n"


def parse_sheet(
    text: str, fields: Sequence[SheetField[T]], *, delimiter: str = "", ends: bool = False
) -> Sheet[T]:
    """Read a format. Raises: UnknownName."""
    by_name = {field.name.lower(): field for field in fields}
    cells: dict[str, SheetCell[T]] = {}
    for word in text.split(","):
        name, percent, size = word.strip().partition("%")
        if not name:
            continue
        field = by_name.get(name.lower()) or _begun(name.lower(), fields)
        if field is None:
            raise UnknownName(name)
        cells.pop(field.name, None)
        cells[field.name] = _cell(field, size if percent else "")
    return Sheet(tuple(cells.values()), delimiter, ends)


def _begun(name: str, fields: Sequence[SheetField[T]]) -> SheetField[T] | None:
    return next((field for field in fields if field.name.lower().startswith(name)), None)


def _cell(field: SheetField[T], size: str) -> SheetCell[T]:
    digits = size.removeprefix("-")
    width = field.width
    if digits.isascii() and digits.isdigit():
        width = min(int(digits[:9]), WIDTH_MAX) * (-1 if size.startswith("-") else 1)
    return SheetCell(field, abs(width), width < 0)


def helped(names: Iterable[str], *, columns: int = 4, width: int = 19, gap: str = " ") -> str:
    """Return what --helpformat prints."""
    padded = [name.ljust(width) for name in names]
    rows = [padded[first : first + columns] for first in range(0, len(padded), columns)]
    return "".join(f"{gap.join(row)}\n" for row in rows)
