"""Who may import whom: the contracts hold, and each of them catches what it is meant to catch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("spur", "cli", "cloud", "migrations")


def lint(tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the import contracts over a tree of the sources."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        str(tree / folder) for folder in ("", "cli", "cloud", "migrations")
    )
    code = "import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run())"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache", *options],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def copy_of_the_sources(where: Path) -> Path:
    """Return a copy of the sources that a test may spoil."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, where / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", where)
    return where


def contracts() -> dict[str, str]:
    """Return the contracts' names by id."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = settings["tool"]["importlinter"]["contracts"]
    return {row["id"]: row["name"] for row in rows}


def test_contracts_are_kept() -> None:
    """Someone runs the tests after adding an import."""
    run = lint(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.rstrip().endswith(f"Contracts: {len(contracts())} kept, 0 broken.")


PLANTED = [
    ("front-ends", "spur/controller/__init__.py", "import spur_cli.registry"),
    ("front-ends", "cloud/spur_cloud/settings.py", "import spur_cli.registry"),
    ("layers", "spur/values/errors.py", "import spur.events.envelope"),
    ("layers", "spur/wire/__init__.py", "import spur.events.envelope"),
    ("layers", "spur/kitchen/__init__.py", ""),
    ("pure", "spur/projections/tables.py", "import os"),
    ("pure", "spur/values/errors.py", "from datetime import timezone\nimport random"),
    ("pure", "spur/commands/__init__.py", "def later() -> None:\n    import time"),
    ("pure", "spur/consensus/messages.py", "import socket"),
    ("pure", "spur/agent/machine.py", "import os"),
    ("layers", "spur/agent/machine.py", "import spur.controller.birth"),
    ("front-ends-use-the-client", "cli/spur_cli/registry.py", "import spur.projections.tables"),
    ("front-ends-use-the-client", "cloud/spur_cloud/settings.py", "import spur.testing"),
    ("consensus-is-the-controllers", "spur/client/__init__.py", "import spur.consensus"),
    ("store-is-the-controllers", "spur/client/__init__.py", "import spur.store.tables"),
    ("event-shapes", "spur/events/declare.py", "import spur.wire"),
    (
        "no-cycles",
        "cli/spur_cli/output/result.py",
        "def show() -> None:\n    import spur_cli.output.table",
    ),
]


@pytest.mark.parametrize(("contract", "file", "text"), PLANTED)
def test_contract_catches_a_planted_import(
    tmp_path: Path, contract: str, file: str, text: str
) -> None:
    """Someone adds an import that the design forbids: the contract meant for it breaks."""
    tree = copy_of_the_sources(tmp_path)
    spoiled = tree / file
    spoiled.parent.mkdir(exist_ok=True)
    before = spoiled.read_text(encoding="utf-8") if spoiled.exists() else ""
    spoiled.write_text(f"{before}\n{text}\n", encoding="utf-8")
    run = lint(tree, "--contract", contract)
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"{contracts()[contract]} BROKEN" in run.stdout


def test_every_contract_has_a_planted_import() -> None:
    """Someone adds a contract: it must be shown to catch something."""
    assert {contract for contract, _, _ in PLANTED} == set(contracts())
