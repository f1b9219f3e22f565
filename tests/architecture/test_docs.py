"""The documents tell the truth where a test can know it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from spur_cli.registry import COMMANDS

ROOT = Path(__file__).resolve().parents[2]

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Someone moves a page and forgets who points at it."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_readme_says_works_only_of_what_is_shown() -> None:
    """Someone writes "works" into the table: beside it stands the test that shows it."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text_of("README.md").splitlines()
        if line.startswith("| ") and line.count("|") == 4
    ][1:]
    assert len(rows) > 5
    for what, state, shown in rows:
        assert state in ("works", "not yet"), what
        if state == "works":
            places = re.findall(r"`([^`]+)`", shown)
            assert places, what
            assert [place for place in places if not (ROOT / place).exists()] == [], what
        else:
            assert shown == "-", what


def test_readme_names_only_commands_that_exist() -> None:
    """Someone reads the README and types what stands there."""
    works = [line for line in text_of("README.md").splitlines() if "| works |" in line]
    known = {row.words for row in COMMANDS}
    for line in works:
        for command in re.findall(r"`spur ([a-z ]+)`", line):
            assert tuple(command.split()) in known, command


def test_every_command_with_slurms_name_has_an_example() -> None:
    """Someone adds a command, and its page shows nobody how it is called."""
    examples = tomllib.loads(text_of("docs/reference/examples.toml"))
    assert sorted(row.alias for row in COMMANDS if row.alias) == sorted(examples)


def test_scripts_and_their_list_agree() -> None:
    """Someone adds a script and tells nobody, or names one that is gone."""
    scripts = {file.name for file in (ROOT / "ops").iterdir() if file.is_file() and not file.suffix}
    listed = re.findall(r"^    ops/([\w-]+) ", text_of("CONTRIBUTING.md"), re.MULTILINE)
    assert sorted(scripts) == sorted(listed)


def test_decision_records_are_listed() -> None:
    """Someone writes a decision record: it is in the list, under its own title."""
    listed = dict(
        re.findall(r"\| \[\d{4}\]\(([^)]+)\) \| ([^|]+) \|", text_of("docs/adr/README.md"))
    )
    titles = {}
    for file in sorted((ROOT / "docs" / "adr").glob("0*.md")):
        text = file.read_text(encoding="utf-8")
        titles[file.name] = text.splitlines()[0].partition(": ")[2]
        for part in ("Context", "Decision", "Not meant", "Consequences", "Refused"):
            assert f"\n## {part}\n" in text, f"{file.name} lacks {part}"
    assert listed == titles


def test_reference_is_what_the_code_says() -> None:
    """Someone adds an event, a limit, a setting, an error or a command."""
    tool = ROOT / "ops" / "reference.py"
    run = subprocess.run(
        [sys.executable, str(tool), "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
