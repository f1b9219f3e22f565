"""Every name of Slurm's commands has a row: options, letters, columns and variables.

`names.json` has the names of the manual pages of a current Slurm, by command.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from spur.slurm.optionrows import Effect
from spur.slurm.options import OPTIONS
from spur.slurm.surface import counts_of, shown_by
from spur.slurm.variables import VARIABLES, variables_of

NAMES = msgspec.json.decode(
    (Path(__file__).parents[2] / "data" / "surface" / "names.json").read_bytes()
)


def test_every_command_has_a_table() -> None:
    """A site calls a command that nobody thought of."""
    assert sorted(NAMES) == sorted(OPTIONS)


@pytest.mark.parametrize("command", NAMES)
def test_every_option_has_a_row(command: str) -> None:
    """A script gives an option that the manual page has, long or short."""
    rows = OPTIONS[command]
    known = [
        {f"--{name}" for name in (row.long, *row.aliases) if name}
        | ({f"-{row.short}"} if row.short else set())
        for row in rows
    ]
    missing = [
        names for names in NAMES[command]["options"] if not any(set(names) <= row for row in known)
    ]
    assert missing == []


@pytest.mark.parametrize("command", [name for name in NAMES if "letters" in NAMES[name]])
def test_every_letter_has_a_row(command: str) -> None:
    """A dashboard's -o format names a letter of the manual page."""
    letters = {row.letter for row in shown_by(command)}
    assert [letter for letter in NAMES[command]["letters"] if letter not in letters] == []


@pytest.mark.parametrize("command", [name for name in NAMES if "names" in NAMES[name]])
def test_every_column_has_a_row(command: str) -> None:
    """A dashboard's -O or --format names a column of the manual page."""
    names = {row.name.lower() for row in shown_by(command)}
    assert [name for name in NAMES[command]["names"] if name.lower() not in names] == []


@pytest.mark.parametrize("command", NAMES)
def test_every_variable_has_a_row(command: str) -> None:
    """A profile of the site sets a variable that the manual page has."""
    assert [name for name in NAMES[command]["variables"] if name not in variables_of(command)] == []


def test_what_is_not_honoured_says_why() -> None:
    """Somebody reads the table to learn what to do instead."""
    rows = [row for options in OPTIONS.values() for row in options]
    mute = [
        f"{row.command} --{row.long}"
        for row in rows
        if (row.effect is Effect.HONOURED) == bool(row.why)
    ]
    assert mute == []
    assert [row.name for row in VARIABLES if not row.what] == []


def test_a_variable_has_one_row() -> None:
    """Two rows say different things of a variable."""
    pairs = [(row.name, command) for row in VARIABLES for command in row.commands]
    assert len(set(pairs)) == len(pairs)
    given = {
        (name, option.command)
        for options in OPTIONS.values()
        for option in options
        for name in option.environment
    }
    assert given & set(pairs) == set()


@pytest.mark.parametrize("command", OPTIONS)
def test_counts_add_up(command: str) -> None:
    """The share that is honoured is quoted: it must come from all rows."""
    counts = counts_of(command)
    assert counts.options == counts.honoured + counts.accepted + counts.refused
    assert 0 < counts.variables_read <= counts.variables
