"""A seal round the pure rooms: inside it every call of a clock, a random source or IO raises.

    with sealed():
        apply(state, entry)

The import contracts keep such modules out of the pure rooms' own imports. This seal also catches
what is reached by another way: a library that reads a clock, `datetime.now`, the builtin `hash`.
It watches each call that the interpreter makes, so it is slow and belongs in tests.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from spur.testing.purity import Impure

__all__ = ["sealed"]

_MODULES = frozenset(
    {
        "_asyncio",
        "_io",
        "_locale",
        "_random",
        "_socket",
        "_sqlite3",
        "_ssl",
        "_thread",
        "fcntl",
        "io",
        "mmap",
        "nt",
        "posix",
        "random",
        "select",
        "socket",
        "time",
    }
)
"""Modules whose compiled functions, and methods of whose compiled types, are refused."""

_PYTHON_MODULES = frozenset(
    {
        "logging",
        "random",
        "secrets",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "uuid",
    }
)
"""Modules whose Python functions are refused."""

_LOCAL_TIMES = frozenset({"astimezone", "fromtimestamp", "now", "today", "utcnow"})
"""What is refused of `datetime`: it reads the clock or the time zone."""

_SEEDED = frozenset({"hash", "id"})
"""Builtins whose results differ from process to process; refused when a pure room calls them."""

_PURE = ("spur.values", "spur.wire", "spur.events", "spur.projections", "spur.commands")


@contextmanager
def sealed() -> Iterator[None]:
    """Raise Impure at any call of a clock, a random source or IO until the block ends.

    The collector rests meanwhile: what hooks into it may read a clock at any moment.
    """
    former, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(_watch)
    try:
        yield
    finally:
        sys.setprofile(former)
        if collects:
            gc.enable()


def _watch(frame: FrameType, kind: str, called: Any) -> None:
    """Look at one call."""
    caller = frame.f_globals.get("__name__", "")
    if kind == "call" and caller in _PYTHON_MODULES:
        _stop(f"{caller}.{frame.f_code.co_name} was called")
    if kind != "c_call":
        return
    owner = getattr(called, "__self__", None)
    module = called.__module__
    if module is None:
        module = (owner if isinstance(owner, type) else type(owner)).__module__
    name = called.__name__
    if (
        (module in _MODULES)
        or (module == "datetime" and name in _LOCAL_TIMES)
        or (module == "builtins" and name in _SEEDED and caller.startswith(_PURE))
    ):
        _stop(f"{caller} called {module}.{name}")


def _stop(what: str) -> None:
    """Break the seal and say why."""
    sys.setprofile(None)
    raise Impure(what)
