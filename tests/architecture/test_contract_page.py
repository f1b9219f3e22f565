"""docs/contract.md tells for every rule of the log where it is kept and what shows it."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

NOT_THERE = "not there yet"
"""What a row may say instead of a place in the code."""


class Row(NamedTuple):
    rule: str
    kept: str
    shown: str


def rules(text: str) -> list[str]:
    """Return the numbers of the rules that a page of sections and numbered items holds."""
    numbers: list[str] = []
    section = ""
    for line in text.splitlines():
        if match := re.match(r"## (\d+)\. ", line):
            section = match[1]
        elif section and (match := re.match(r"(\d+)\. ", line)):
            numbers.append(f"{section}.{match[1]}")
    return numbers


def rows(text: str) -> list[Row]:
    """Return the rows of the page's tables."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"\d+\.\d+", cells[0]):
            found.append(Row(cells[0], cells[2], cells[3]))
    return found


@functools.cache
def names_in(file: Path) -> set[str]:
    """Return the names that a Python file defines, those of its classes' members included."""
    defined = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
    return defined


def faults_of(row: Row) -> list[str]:
    """Return what is wrong with one row."""
    if row.kept == NOT_THERE:
        return [] if row.shown == "-" else [f"{row.rule}: {row.kept}, so nothing can show it"]
    faults = []
    for column, cell in (("kept by", row.kept), ("shown by", row.shown)):
        places = re.findall(r"`([^`]+)`", cell)
        if not places:
            faults.append(f"{row.rule}: {column} names nothing: {cell!r}")
        for place in places:
            file, _, name = place.partition("::")
            if not (ROOT / file).is_file():
                faults.append(f"{row.rule}: {column} names {file}, which is not there")
            elif name and name not in names_in(ROOT / file):
                faults.append(f"{row.rule}: {column} names {name}, which is not in {file}")
            elif column == "shown by" and not (file.startswith("tests/") and name[:5] == "test_"):
                faults.append(f"{row.rule}: {place} is no test")
    return faults


def page() -> str:
    return (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")


def test_every_rule_has_a_row() -> None:
    """Someone adds a rule to the contract and forgets to say where it is kept."""
    wanted = rules((ROOT / "docs" / "log-contract.md").read_text(encoding="utf-8"))
    assert len(wanted) == 44
    told = [row.rule for row in rows(page())]
    assert [rule for rule in wanted if rule not in told] == []
    assert [rule for rule in told if rule not in wanted] == []
    assert told == sorted(told, key=lambda rule: [int(part) for part in rule.split(".")])


def test_every_place_is_there() -> None:
    """Someone renames a function or a test that the page names."""
    assert [fault for row in rows(page()) for fault in faults_of(row)] == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row("1.1", "-", "-"), "kept by names nothing"),
        (Row("1.1", "comes some day", "-"), "kept by names nothing"),
        (Row("1.1", "not there yet", "`tests/x.py::test_x`"), "nothing can show it"),
        (Row("1.1", "`spur/gone.py`", "-"), "which is not there"),
        (Row("1.1", "`spur/events/envelope.py::Gone`", "-"), "Gone, which is not in"),
        (Row("1.1", "`pyproject.toml`", "`spur/events/envelope.py::Entry`"), "is no test"),
    ],
)
def test_bad_row_is_found(row: Row, fault: str) -> None:
    """Someone writes a row that promises what is not there."""
    assert any(fault in text for text in faults_of(row))
