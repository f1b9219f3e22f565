"""The format of sacct: fields with widths, lines in columns or with a delimiter.

    -o jobid,jobname%30,state%-20    ALL or % alone mean every field

Source: sacct(1) --format, --parsable, --parsable2, --delimiter.
"""

from __future__ import annotations

from typing import NamedTuple

from spur.slurm.columns.recordline import RecordLine
from spur.slurm.columns.records import BY_NAME, FIELDS, Cut, Field

__all__ = ["Cell", "Shape", "Table", "UnknownField", "help_format", "parse_fields"]

WIDTH_MAX = 65_535
"""The widest field: a format can't ask for endless memory."""


class UnknownField(ValueError):
    """A name that no field has."""


class Cell(NamedTuple):
    """One field in a format."""

    field: Field
    width: int
    is_left: bool

    def head(self) -> str:
        """Return its heading, cut to the width."""
        return _pad(self.field.name[: self.width], self.width, is_left=self.is_left)

    def text(self, value: str) -> str:
        """Return a value at its width."""
        width = self.width
        if len(value) > width and self.field.cut is not Cut.NEVER:
            plus = self.field.cut is Cut.WITH_PLUS and width > 0
            value = f"{value[: width - 1]}+" if plus else value[:width]
        return _pad(value, width, is_left=self.is_left)


class Shape(NamedTuple):
    """How lines are written."""

    delimiter: str = ""
    """Between fields; empty for columns."""
    ends_with_delimiter: bool = False


class Table(NamedTuple):
    """Fields and shape: what makes lines of records."""

    cells: tuple[Cell, ...]
    shape: Shape

    def header(self) -> str:
        """Return the headings, in columns with a line under them."""
        if self.shape.delimiter:
            return self._joined([cell.field.name for cell in self.cells])
        heads = "".join(f"{cell.head()} " for cell in self.cells)
        rules = "".join(f"{'-' * cell.width} " for cell in self.cells)
        return f"{heads}\n{rules}\n"

    def line(self, line: RecordLine) -> str:
        """Return the line of a job or a step."""
        values = [
            cell.field.job(line) if line.step is None else cell.field.step(line)
            for cell in self.cells
        ]
        if self.shape.delimiter:
            return self._joined(values)
        cells = zip(self.cells, values, strict=True)
        return "".join(f"{cell.text(value)} " for cell, value in cells) + "\n"

    def _joined(self, values: list[str]) -> str:
        end = self.shape.delimiter if self.shape.ends_with_delimiter else ""
        return f"{self.shape.delimiter.join(values)}{end}\n"


def parse_fields(text: str) -> tuple[Cell, ...]:
    """Read a format; a name may be cut short. Raises: UnknownField with the name."""
    cells: list[Cell] = []
    for word in text.split(","):
        name, percent, size = word.partition("%")
        if not name:
            continue
        if name.lower() == "all":
            cells += [_cell(field, "") for field in FIELDS if field.is_listed]
        else:
            cells.append(_cell(_field(name), size if percent else ""))
    return tuple(cells)


def _field(name: str) -> Field:
    wanted = name.lower()
    found = BY_NAME.get(wanted)
    if found is None:
        found = next((field for known, field in BY_NAME.items() if known.startswith(wanted)), None)
    if found is None:
        raise UnknownField(name)
    return found


def _cell(field: Field, size: str) -> Cell:
    sign = -1 if size.startswith("-") else 1
    digits = size.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        width = sign * min(int(digits[:9]), WIDTH_MAX)
    else:
        width = field.width
    return Cell(field, abs(width), width < 0)


def _pad(text: str, width: int, *, is_left: bool) -> str:
    return text.ljust(width) if is_left else text.rjust(width)


HELP_COLUMNS = 4
HELP_WIDTH = 19


def help_format() -> str:
    """Return what --helpformat prints."""
    names = [field.name.ljust(HELP_WIDTH) for field in FIELDS if field.is_listed]
    rows = [names[first : first + HELP_COLUMNS] for first in range(0, len(names), HELP_COLUMNS)]
    return "".join(f"{' '.join(row)}\n" for row in rows)
