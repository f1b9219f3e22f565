"""Replacing an attribute for a while: smaller limits, or a fault planted on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["replaced"]


@contextmanager
def replaced(owner: object, **values: object) -> Iterator[None]:
    """Give a module or class other attributes; the former ones come back at the end.

    Raises: AttributeError for a name that the owner lacks, so that a rename is noticed.
    """
    own = vars(owner)
    missing = sorted(values.keys() - own.keys())
    if missing:
        raise AttributeError(f"{owner!r} has no {', '.join(missing)} of its own to replace")
    former = {name: own[name] for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in former.items():
            setattr(owner, name, value)
