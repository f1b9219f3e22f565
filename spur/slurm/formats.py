"""The two output formats of squeue and sinfo, and lines made by them.

    -o "%.18i %.9P %R"       %[[.]size]letter: cut or padded to size; a dot puts it to the right
    -O "JobID:.8,Name:20"    name[:[.]size[suffix]]: 20 wide when no size is given

Whatever stands before the first % of an -o format begins each line, and whatever follows a letter
is copied. A letter or name that is unknown is reported and the rest is shown.

Source: squeue(1) --format, --Format; sinfo(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

__all__ = [
    "LONG_SIZE",
    "Cell",
    "Column",
    "Layout",
    "pad",
    "parse_format",
    "parse_long_format",
    "plain",
    "shape_of",
]

T = TypeVar("T")

LONG_SIZE = 20
"""Width of a field of -O when it names none."""

SIZE_MAX = 65_535
"""The widest field; more is cut to it, so that a format can't ask for endless memory."""


class Column(NamedTuple, Generic[T]):
    """One column that a listing can show."""

    name: str
    """What -O calls it, as the manual page spells it; case does not matter."""
    letter: str
    """What -o calls it; empty for none."""
    header: str
    value: Callable[[T], str]
    json: str
    """Its name in JSON; empty when JSON has no such field."""
    source: str
    cuts: bool = True
    """Whether a value that is wider than its size is cut; lengths of time are not."""
    is_text: bool = False
    """Whether it shows what only some may read, and what is therefore asked for apart."""
    is_own: bool = False
    """Whether rows that are equal but for their number and their times differ in it."""


class Cell(NamedTuple, Generic[T]):
    """One column in a layout."""

    column: Column[T] | None
    """None for text alone."""
    size: int
    """0 is as wide as the value is."""
    is_right: bool
    suffix: str


class Layout(NamedTuple, Generic[T]):
    """What a format comes to."""

    prefix: str
    cells: tuple[Cell[T], ...]
    unknown: tuple[str, ...]
    """Letters or names that no column has, in the order found."""

    def header(self) -> str:
        """Return the line of headings."""
        parts = [self.prefix]
        for column, size, is_right, suffix in self.cells:
            if column is not None:
                parts.append(pad(column.header, size, is_right=is_right))
            parts.append(suffix)
        return "".join(parts)

    def line(self, row: T) -> str:
        """Return the line of one row."""
        return next(self.lines((row,)))

    def lines(self, rows: Iterable[T]) -> Iterator[str]:
        """Yield the line of each row."""
        shape = "".join([plain(self.prefix), *map(shape_of, self.cells)])
        values = [cell.column.value for cell in self.cells if cell.column is not None]
        for row in rows:
            yield shape % tuple([value(row) for value in values])


def shape_of(cell: Cell[T]) -> str:
    """Return a cell for the operator %, which pads and cuts by itself."""
    column, size, is_right, suffix = cell
    if column is None:
        return plain(suffix)
    width = f"{'' if is_right else '-'}{size}" if size else ""
    cut = f".{size}" if size and column.cuts else ""
    return f"%{width}{cut}s{plain(suffix)}"


def plain(text: str) -> str:
    """Return a text that the operator % leaves as it is."""
    return text.replace("%", "%%")


def pad(text: str, size: int, *, is_right: bool) -> str:
    """Return the text at exactly this width, cut at its end; size 0 leaves it as it is."""
    if not size:
        return text
    text = text[:size]
    return text.rjust(size) if is_right else text.ljust(size)


def parse_format(text: str, columns: Mapping[str, Column[T]]) -> Layout[T]:
    """Read an -o format; `columns` are keyed by letter."""
    if text.lower() == "%all":
        letters = sorted(columns, key=lambda letter: (letter.isupper(), letter))
        text = "|".join(f"%{letter}" for letter in letters)
    prefix, _, rest = text.partition("%")
    cells: list[Cell[T]] = []
    unknown: list[str] = []
    for token in rest.split("%"):
        if not token:
            continue
        is_right, size, after = _size(token)
        letter, suffix = _first(after), after[1:]
        column = columns.get(letter)
        if column is None:
            unknown.append(letter)
            cells.append(Cell(None, 0, False, f"%{token}"))
        else:
            cells.append(Cell(column, size, is_right, suffix))
    return Layout(prefix, tuple(cells), tuple(unknown))


def parse_long_format(text: str, columns: Mapping[str, Column[T]]) -> Layout[T]:
    """Read an -O format; `columns` are keyed by name in small letters."""
    cells: list[Cell[T]] = []
    unknown: list[str] = []
    for token in text.split(","):
        name, colon, shape = token.partition(":")
        if not name:
            continue
        is_right, size, suffix = _size(shape) if colon else (False, LONG_SIZE, "")
        column = columns.get(name.lower())
        if column is None:
            unknown.append(name)
        else:
            cells.append(Cell(column, size, is_right, suffix))
    return Layout("", tuple(cells), tuple(unknown))


def _first(text: str) -> str:
    """Return the letter of a column: the first byte, as Slurm reads it."""
    letter = text[:1]
    if letter.isascii():
        return letter
    return letter.encode("utf-8", "surrogateescape")[:1].decode("ascii", "surrogateescape")


def _size(text: str) -> tuple[bool, int, str]:
    """Take an optional dot and digits off the beginning."""
    is_right = text.startswith(".")
    rest = text[is_right:]
    after = rest.lstrip("0123456789")
    digits = rest[: len(rest) - len(after)]
    size = min(int(digits[:9]), SIZE_MAX) if digits else 0
    return is_right, size, after
