"""`spur link`: Slurm's names where a person asks for them, and nowhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spur.slurm.wording import VERSION
from spur_cli.main import main
from spur_cli.registry import COMMANDS


def test_names_are_made_and_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Someone wants to type squeue instead of spur squeue."""
    target = tmp_path / "new" / "bin"
    assert main(["spur", "link", str(target)]) == 0
    assert main(["spur", "link", str(target)]) == 0
    names = sorted(row.alias for row in COMMANDS if row.alias)
    assert sorted(file.name for file in target.iterdir()) == names
    assert f'export PATH="{target}:$PATH"' in capsys.readouterr().err
    for name in names:
        shown = subprocess.run(
            [target / name, "--version"], capture_output=True, text=True, check=True, env={}
        )
        assert shown.stdout == f"{VERSION}\n"


def test_files_of_others_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Someone names the directory where a real Slurm has its commands."""
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    assert main(["spur", "link", str(tmp_path)]) == 1
    assert "has squeue of another make" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["squeue"]


def test_place_that_cannot_be_made_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Someone names a file."""
    (tmp_path / "file").write_text("")
    assert main(["spur", "link", str(tmp_path / "file" / "bin")]) == 1
    assert "nothing more was made" in capsys.readouterr().err
