"""A guard against hidden clocks: while it stands, reading time, chance or a network fails.

The import contracts keep such modules out of the pure rooms. This catches what reaches them at run
time all the same, through a library or an argument. Clocks that are part of C types, such as
`datetime.now`, are banned by the linter instead.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["Impure", "no_clock_chance_or_network"]

_FORBIDDEN: tuple[tuple[Any, str], ...] = (
    (time, "time"),
    (time, "time_ns"),
    (time, "monotonic"),
    (time, "monotonic_ns"),
    (time, "sleep"),
    (random, "random"),
    (random, "randrange"),
    (random, "choice"),
    (secrets, "token_bytes"),
    (os, "urandom"),
    (os, "getenv"),
    (uuid, "uuid4"),
    (socket, "socket"),
)


class Impure(AssertionError):
    """A pure room reached for the world outside of its arguments."""


@contextmanager
def no_clock_chance_or_network() -> Iterator[None]:
    """Make clocks, random sources and sockets raise `Impure` for as long as the block runs."""
    saved = [(module, name, getattr(module, name)) for module, name in _FORBIDDEN]
    for module, name, _ in saved:
        setattr(module, name, _refusal(f"{module.__name__}.{name}"))
    try:
        yield
    finally:
        for module, name, original in saved:
            setattr(module, name, original)


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise Impure(f"{name} was called where everything must arrive as an argument")

    return refuse
