"""Every declaration has its other half: what is missing is named."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

import spur.commands
import spur.events
import spur.projections
import spur.wire
from spur.commands.decide import COMMANDS
from spur.commands.history import HISTORY
from spur.controller.settings import RANGES, Settings
from spur.events.declare import EVENTS
from spur.projections.apply import APPLIERS
from spur.projections.react import EFFECTS, OWERS
from spur.values.errors import ERROR_CODES
from spur.wire.declare import REQUESTS, name_of
from spur.wire.registry import SUBJECTS
from spur_cli.registry import COMMANDS as CLI_COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("spur", "cli/spur_cli", "cloud/spur_cloud")

for room in (spur.events, spur.projections, spur.commands, spur.wire):
    for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        importlib.import_module(found.name)


@functools.cache
def parsed() -> dict[str, ast.Module]:
    """Return the parsed sources of the product, without the shipped test kit, by path."""
    trees = {}
    for folder in PRODUCT:
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = file.relative_to(ROOT).as_posix()
            if not name.startswith("spur/testing/"):
                trees[name] = ast.parse(file.read_text(encoding="utf-8"))
    return trees


def product_files(*but: str) -> Iterator[ast.Module]:
    """Yield the parsed sources of the product, without those whose path begins so."""
    for name, tree in parsed().items():
        if not name.startswith(but):
            yield tree


def called_names(trees: Iterator[ast.Module]) -> set[str]:
    """Return the last part of every name that is called somewhere."""
    called = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called.add(ast.unparse(node.func).rpartition(".")[2])
    return called


def literals(trees: Iterator[ast.Module]) -> set[str]:
    """Return every string constant."""
    found = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_event_is_applied() -> None:
    """Someone declares an event and forgets what it does to the state."""
    missing = [name for name, row in EVENTS.items() if not row.flags and row.cls not in APPLIERS]
    assert missing == []


def test_ignorable_events_touch_no_table() -> None:
    """Someone flags an event ignorable and gives it an arm: old readers would differ."""
    assert [name for name, row in EVENTS.items() if row.flags and row.cls in APPLIERS] == []


def test_every_event_is_made_somewhere() -> None:
    """Someone declares an event that no command ever comes to."""
    called = called_names(product_files("spur/events/", "spur/projections/apply.py"))
    names = {row.cls.__name__ for row in EVENTS.values()}
    assert sorted(names - called - aliases(names)) == []


def aliases(names: set[str]) -> set[str]:
    """Return those of the names that some file imports under another name and calls by it."""
    found = set()
    called = called_names(product_files())
    for tree in product_files():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name in names and alias.asname in called:
                        found.add(alias.name)
    return found


def test_event_names_follow_their_grammar() -> None:
    """Someone names an event in another way than the rest: noun, dot, past tense in kebab case."""
    parts = [name.split(".") for name in EVENTS]
    odd = [
        ".".join(words)
        for words in parts
        if len(words) != 2 or not all(word.replace("-", "").isalpha() for word in words)
    ]
    assert odd == []


def test_every_request_has_a_command() -> None:
    """Someone declares a request and forgets who judges it."""
    judged = {*COMMANDS, *HISTORY}
    assert sorted(name_of(cls) for cls in REQUESTS.values() if cls not in judged) == []
    assert [row.name for row in COMMANDS.values() if row.name not in REQUESTS] == []


def test_every_subject_of_the_wire_is_in_the_union() -> None:
    """Someone adds a file of requests and forgets the line that makes them decodable."""
    subjects = {subject.__name__ for subject in SUBJECTS}
    declaring = {cls.__module__ for cls in REQUESTS.values()}
    assert declaring - subjects == set()


def test_every_effect_is_owed_or_done_at_most_once() -> None:
    """Someone adds an effect that a new leader would forget."""
    unowed = [cls.__name__ for cls, row in EFFECTS.items() if row.table and cls not in OWERS]
    assert unowed == []
    assert [cls.__name__ for cls in OWERS if not EFFECTS[cls].table] == []


def test_every_error_code_is_used() -> None:
    """Someone removes the last place that answers with a code and leaves its row."""
    used = literals(product_files("spur/values/errors.py"))
    assert [code for code in ERROR_CODES if code not in used] == []


def test_every_rejection_has_a_declared_code() -> None:
    """Someone answers with a code that no table knows."""
    unknown = []
    for tree in product_files():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Rejection"):
                code = next((word.value for word in node.keywords if word.arg == "code"), None)
                first = code or (node.args[0] if node.args else None)
                if isinstance(first, ast.Constant) and first.value not in ERROR_CODES:
                    unknown.append(first.value)
    assert unknown == []


def test_every_cli_command_has_its_module() -> None:
    """Someone adds a row and forgets the module, or names a tool that is not there."""
    for row in CLI_COMMANDS:
        module = importlib.import_module(f"spur_cli.commands.{row.module}")
        assert callable(module.run), row.words
        if row.executes:
            assert importlib.util.find_spec(row.executes) is not None, row.words
    words = [row.words for row in CLI_COMMANDS]
    assert len(set(words)) == len(words)
    names = [row.alias for row in CLI_COMMANDS if row.alias]
    assert len(set(names)) == len(names)


def test_every_number_of_a_controllers_settings_has_a_range() -> None:
    """Someone adds a timer or a mark and any number is taken for it."""
    fields = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    assert {name for name, kind in fields.items() if kind is int} == set(RANGES)
