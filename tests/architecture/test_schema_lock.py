"""The lock of shapes: what was written stays readable, and a change cannot slip in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spur.testing.schema_lock import LOCKS, read_lock

ROOT = Path(__file__).resolve().parents[2]


def lock(tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tool that writes the locks on a tree of the sources."""
    return subprocess.run(
        [sys.executable, "-m", "spur.testing.schema_lock", *options],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "spur", tmp_path / "spur", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("name", LOCKS)
def test_locks_are_complete(name: str) -> None:
    """Someone added an event or a table, or changed one, and hands in the change."""
    _, locked = read_lock(ROOT / "spur" / name)
    assert locked == LOCKS[name](), f"run ops/schema-lock ({name})"


def swap(old: str, new: str) -> Callable[[str], str]:
    """Return a change of a source; it fails when there is nothing to change."""

    def change(text: str) -> str:
        assert text.count(old) == 1
        return text.replace(old, new)

    return change


PLANTED = [
    (
        "spur/events/cluster.py",
        swap("    why: str\n", "    why: str\n    who: str\n"),
        "cluster.restored 1 has changed",
    ),
    (
        "spur/events/cluster.py",
        swap("    why: str\n", '    why: str\n    who: str = ""\n'),
        "ClusterRestored.who must not have a default",
    ),
    (
        "spur/events/cluster.py",
        swap("    fork_index: int\n", "    fork_index: str\n"),
        "cluster.restored 1 has changed",
    ),
    (
        "spur/events/cluster.py",
        swap('@event("cluster.restored")', '@event("cluster.forked")'),
        "cluster.restored 1 was written by a release and can no longer be read",
    ),
    (
        "spur/values/states.py",
        swap('RESUME = "resume"', 'RESUME = "resumed"'),
        "node.updated 1 has changed",
    ),
    (
        "spur/projections/cluster.py",
        swap("    incarnation: int\n", ""),
        "cluster 1 has changed",
    ),
]


@pytest.mark.parametrize(("file", "change", "sentence"), PLANTED)
def test_lock_catches_a_planted_change(
    copied: Path, file: str, change: Callable[[str], str], sentence: str
) -> None:
    """Someone changes a released shape in place: the tool refuses, and writes nothing."""
    spoiled = copied / file
    spoiled.write_text(change(spoiled.read_text(encoding="utf-8")), encoding="utf-8")
    run = lock(copied)
    assert run.returncode == 1, run.stdout + run.stderr
    assert sentence in run.stderr
    kept = [name for name in LOCKS if f"{name}: " in run.stderr] or list(LOCKS)
    for name in kept:
        assert (copied / "spur" / name).read_bytes() == (ROOT / "spur" / name).read_bytes()


def test_lock_is_left_alone_when_nothing_changed(copied: Path) -> None:
    """Someone runs the tool for no reason: the files stay as they are."""
    before = {name: (copied / "spur" / name).read_bytes() for name in LOCKS}
    run = lock(copied)
    assert run.returncode == 0, run.stderr
    assert {name: (copied / "spur" / name).read_bytes() for name in LOCKS} == before
