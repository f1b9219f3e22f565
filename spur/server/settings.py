"""A daemon's settings file: TOML, read as a whole or refused with the file, the key and a hint."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from spur.values.errors import OperatorFault

__all__ = ["check_settings", "read_settings"]

S = TypeVar("S", bound=msgspec.Struct)


def read_settings(
    path: Path, cls: type[S], ranges: Mapping[str, tuple[int, int]], *, missing: str
) -> S:
    """Return the settings in a file; `ranges` are least and greatest values of its numbers.

    Raises: OperatorFault that names what is wrong and what would be right; with the sentence
    `missing` when there is no such file.
    """
    try:
        table = tomllib.loads(path.read_text())
    except FileNotFoundError as error:
        raise OperatorFault(missing) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OperatorFault(f"{path} cannot be read: {error}; nothing was started") from error
    try:
        return check_settings(table, cls, ranges)
    except ValueError as error:
        raise OperatorFault(f"{path}: {error}; nothing was started") from error


def check_settings(
    table: Mapping[str, object], cls: type[S], ranges: Mapping[str, tuple[int, int]]
) -> S:
    """Return the settings of a table. Raises: ValueError, saying what would be right."""
    for key in table:
        if key not in cls.__struct_fields__:
            near = difflib.get_close_matches(key, cls.__struct_fields__, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"unknown key {key!r}{hint}")
    settings = msgspec.convert(table, cls)
    for key, (least, most) in ranges.items():
        value = getattr(settings, key)
        if not least <= value <= most:
            raise ValueError(f"{key} is {value}; it must be {least} to {most}")
    return settings
