"""`spur surface`: what somebody reads before they move their scripts."""

from __future__ import annotations

import json

import pytest

from spur.slurm.options import NOT_YET, OPTIONS
from spur_cli.main import main
from spur_cli.registry import COMMANDS


def test_counts_are_shown_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    """An administrator asks how much of Slurm there is."""
    assert main(["spur", "surface", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["command"] for row in rows] == [*OPTIONS, "all"]
    assert rows[-1]["options"] == sum(row["options"] for row in rows[:-1])
    assert all(row["percent"] == row["honoured"] * 100 // row["options"] for row in rows)


def test_names_of_a_command_are_shown_with_what_becomes_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Somebody's scripts call squeue, and they want to know which of its options work."""
    assert main(["spur", "surface", "squeue", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_name = {(row["kind"], row["name"]): row for row in rows}
    assert by_name["option", "--format"]["letter"] == "-o"
    assert by_name["column", "JobID"]["letter"] == "%A"
    assert by_name["variable", "SQUEUE_FORMAT"]["effect"] == "honoured"
    assert by_name["option", "--sibling"]["why"] == "there is one cluster"


def test_only_what_lacks_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody looks for what would not survive the move."""
    assert main(["spur", "surface", "--lacking", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows
    assert all(row["why"] and row["effect"] != "honoured" for row in rows)


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody asks for what is none of Slurm's commands."""
    assert main(["spur", "surface", "qsub"]) == 2
    assert "qsub" in capsys.readouterr().err


def test_commands_that_are_not_there_are_named() -> None:
    """Somebody adds a command, and `spur migrate` goes on to say that it is not there."""
    assert {name for name in OPTIONS if all(row.alias != name for row in COMMANDS)} == NOT_YET
