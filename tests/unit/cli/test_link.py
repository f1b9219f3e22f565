"""`spur link`: Slurm's names where a person asks for them, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spur.slurm.wording import VERSION
from spur_cli.commands import link
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
            [target / name, "--version"],
            capture_output=True,
            text=True,
            check=True,
            env={"SPUR_WARM": "0"},
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


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, who installs for others")
def test_what_only_root_can_run_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root installed a Python in root's own home and makes names for everybody."""
    with tempfile.TemporaryDirectory(prefix="spur-") as name:
        place = Path(name)
        place.chmod(0o755)
        python = place / "home" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
        monkeypatch.setattr(link, "_paths", lambda: [name])
        assert link.closed_to_others() == ""
        (place / "home").chmod(0o700)
        assert link.closed_to_others() == (
            f"warning: only root can run these commands: {place / 'home'} lets nobody else in, and"
            f" {python} lies in it\nhint: install Spur and its Python where every user may read,"
            " such as /opt/spur, and give the same command from there"
        )
