"""Executing a tool that a row of the registry names.

A tool's module is run under its own name and entered nowhere: it is no import of this package, and
two runs in one process share nothing.
"""

from __future__ import annotations

import importlib.util
from typing import Any

__all__ = ["Tool", "execute"]

Tool = dict[str, Any]
"""The names that an executed module defines."""


def execute(name: str) -> Tool:
    """Run a module and return what it defines.

    Raises: ModuleNotFoundError when there is no such module.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)
