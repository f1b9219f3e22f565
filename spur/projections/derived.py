"""What is worked out from rows that seldom change, kept until one of them does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

__all__ = ["Derived"]

T = TypeVar("T")


class Derived:
    """An index that keeps values which others derive from the rows of its tables.

    A value may only depend on those rows and its key. Who changes a table pays for it: all is
    dropped, and made again when it is asked for.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def change(self, key: object, old: object, new: object) -> None:
        """Follow one row: nothing of what is known may hold any more."""
        self._known.clear()

    def fill(self, rows: Mapping[Any, Any]) -> None:
        """Follow every row at once."""
        self._known.clear()

    def fresh(self) -> Derived:
        """Return an empty index."""
        return Derived()

    def contents(self) -> object:
        """Return what must equal that of a fresh index: nothing is there before it is asked for."""
        return ()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made now if it is not known."""
        try:
            known: T = self._known[key]
        except KeyError:
            known = self._known[key] = make()
        return known
