"""Documents as text: JSON, and YAML of the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from spur.slurm.dataparser.parts import Document

__all__ = ["to_json", "to_yaml"]


def to_json(document: Document) -> str:
    """Return a document as Slurm indents it."""
    return f"{json.dumps(document, indent=2)}\n"


def to_yaml(document: Document) -> str:
    """Return a document as YAML; texts are quoted, so that none is read as something else."""
    return "---\n" + "".join(f"{line}\n" for line in _lines(document, ""))


def _lines(value: Any, indent: str) -> Iterator[str]:  # what JSON can say
    if isinstance(value, dict):
        for key, each in value.items():
            if _is_empty(each):
                yield f"{indent}{key}: {_plain(each)}"
            else:
                yield f"{indent}{key}:"
                yield from _lines(each, f"{indent}  ")
        return
    for each in value:
        if _is_empty(each):
            yield f"{indent}- {_plain(each)}"
            continue
        first, *rest = _lines(each, f"{indent}  ")
        yield f"{indent}- {first[len(indent) + 2 :]}"
        yield from rest


def _is_empty(value: Any) -> bool:  # what JSON can say
    return not isinstance(value, dict | list | tuple) or not value


def _plain(value: Any) -> str:  # a scalar, or an empty list or table
    return json.dumps(value)
