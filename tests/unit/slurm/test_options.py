"""The table of options: whole, and in agreement with itself."""

from __future__ import annotations

import pytest

from spur.slurm.options import OPTIONS, Effect, Option, Takes

ROWS = [option for options in OPTIONS.values() for option in options]


@pytest.mark.parametrize("command", OPTIONS)
def test_each_name_is_there_once(command: str) -> None:
    """Someone adds an option whose letter another one has."""
    names = [name for row in OPTIONS[command] for name in (row.long, *row.aliases) if name]
    letters = [row.short for row in OPTIONS[command] if row.short]
    assert sorted(set(names)) == sorted(names)
    assert sorted(set(letters)) == sorted(letters)
    assert all(row.command == command for row in OPTIONS[command])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.command}--{row.long}")
def test_row_is_whole(row: Option) -> None:
    """Someone adds a row and leaves half of it out."""
    assert row.field.isidentifier()
    assert len(row.short) <= 1
    assert row.long or row.short
    own = (f"{row.command.upper()}_", "SLURM_", "SLURMD_", "SCONTROL_")
    assert all(name.startswith(own) for name in row.environment)
    if row.takes is Takes.NOTHING:
        assert row.parse is None or row.field in ("requeue", "sharing")


def test_honoured_options_have_a_field_of_their_own() -> None:
    """Two options set the same thing: only where Slurm says so."""
    for command, options in OPTIONS.items():
        fields = [row.field for row in options if row.effect is Effect.HONOURED]
        twice = {field for field in fields if fields.count(field) > 1}
        shared = {"sbatch": {"requeue", "sharing"}, "salloc": {"sharing"}, "srun": {"sharing"}}
        assert twice == shared.get(command, set())
