"""What is installed is pinned, and what is promised is there."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import spur

ROOT = Path(__file__).resolve().parents[2]


def project() -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table: dict[str, Any] = settings["project"]
    return table


def pins(text: str) -> dict[str, int]:
    """Return how many hashes each pinned package has, by name."""
    found: dict[str, int] = {}
    name = ""
    for line in text.splitlines():
        if match := re.match(r"([a-z0-9-]+)==[\w.]+", line):
            name = match[1]
            found[name] = 0
        elif re.match(r"    --hash=sha256:[0-9a-f]{64}", line):
            found[name] += 1
    return found


def test_lock_pins_every_dependency_by_hash() -> None:
    """Someone adds a dependency and forgets the lock, or a mirror serves another file."""
    table = project()
    wanted = [*table["dependencies"], *table["optional-dependencies"]["dev"]]
    pinned = pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    names = [re.split(r"[<>=;\[ ]", text)[0].lower() for text in wanted]
    assert [name for name in names if not pinned.get(name)] == []
    assert [name for name, count in pinned.items() if count == 0] == []


def test_lock_names_no_index() -> None:
    """Someone makes the lock with an index of their own: it must install from any mirror."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert "index" not in re.sub(r"^[a-z0-9-]+==.*$", "", text, flags=re.MULTILINE)


def test_programs_have_their_modules() -> None:
    """Someone renames an entry point's module: the installed program would not start."""
    for program, place in project()["scripts"].items():
        module, _, name = place.partition(":")
        spec = importlib.util.find_spec(module)
        assert spec is not None, program
        assert spec.origin is not None
        assert f"def {name}(" in Path(spec.origin).read_text(encoding="utf-8"), program


def test_changelog_begins_with_this_version() -> None:
    """Someone raises the version and tells nobody what is new."""
    headings = re.findall(r"^## (\S+),", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == spur.__version__
