"""What documents of the data_parser are made of: numbers that may be unset, ends, the frame.

Source: the OpenAPI schema v0.0.41 that slurmrestd serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from spur.slurm.wording import VERSION

__all__ = ["PLUGIN", "Document", "document", "ended", "number", "seconds", "unset"]

Document: TypeAlias = dict[str, Any]  # what JSON can say

PLUGIN = "data_parser/v0.0.41"

_NS = 1_000_000_000

_SIGNALS = {1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 11: "SEGV", 15: "TERM"}


def number(value: float) -> Document:
    """Return a number that is set."""
    return {"set": True, "infinite": False, "number": value}


def unset(*, infinite: bool = False) -> Document:
    """Return a number that nobody set, or that has no end."""
    return {"set": False, "infinite": infinite, "number": 0}


def seconds(time_ns: int) -> Document:
    """Return a point in time; 0 is one that is not known."""
    return number(time_ns // _NS)


def ended(exit_code: int, signal: int, *, is_over: bool = True) -> Document:
    """Return how something ended, or that it has not."""
    status = "SUCCESS" if not exit_code else "ERROR"
    if signal:
        status = "SIGNALED"
    return {
        "status": [status if is_over else "PENDING"],
        "return_code": number(exit_code),
        "signal": {
            "id": number(signal) if signal else unset(),
            "name": _SIGNALS.get(signal, str(signal)) if signal else "",
        },
    }


def document(
    body: Document,
    *,
    command: Sequence[str],
    user: str,
    group: str,
    cluster: str = "",
) -> Document:
    """Return a whole document: what was asked for, and who asks whom."""
    release = VERSION.partition(" ")[2]
    major, minor, micro = release.split(".")
    return {
        **body,
        "meta": {
            "plugin": {
                "type": "",
                "name": "",
                "data_parser": PLUGIN,
                "accounting_storage": "",
            },
            "client": {"source": "", "user": user, "group": group},
            "command": list(command),
            "slurm": {
                "version": {"major": major, "micro": micro, "minor": minor},
                "release": release,
                "cluster": cluster,
            },
        },
        "errors": [],
        "warnings": [],
    }
