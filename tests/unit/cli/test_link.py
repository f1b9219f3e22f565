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
from spur_cli.commands.link import ENTRIES
from spur_cli.main import main
from spur_cli.registry import COMMANDS
from spur_cli.warm import native
from spur_cli.warm.knock import WORDS


def test_names_are_made_and_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Someone wants to type squeue instead of spur squeue."""
    target = tmp_path / "new" / "bin"
    assert main(["spur", "link", str(target)]) == 0
    assert main(["spur", "link", str(target)]) == 0
    names = sorted(row.alias for row in COMMANDS if row.alias)
    assert sorted(file.name for file in target.iterdir() if file.name != ENTRIES) == names
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


def test_native_launchers_are_made_for_what_may_run_warm(tmp_path: Path) -> None:
    """A machine has a C compiler, or its user wants none of it."""
    if native.compiled() is None:
        pytest.skip("takes a C compiler")
    target = tmp_path / "bin"
    assert main(["spur", "link", str(target)]) == 0
    assert _natives(target) == set(WORDS)
    assert sorted(file.name for file in (target / ENTRIES).iterdir()) == sorted(WORDS)
    assert main(["spur", "link", "--python", str(target)]) == 0
    assert _natives(target) == set()


def test_native_launcher_compiles_without_a_warning(tmp_path: Path) -> None:
    """Another compiler looks closer."""
    if native.compiled() is None:
        pytest.skip("takes a C compiler")
    strict = ["-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, "-o", tmp_path / "a", native.SOURCE], check=True)


def test_native_launcher_without_its_interpreter_says_so(tmp_path: Path) -> None:
    """Somebody removed the Python that these names were made with."""
    python = tmp_path / "bin" / "python"
    made = native.native_launcher("squeue", entry="x", install=[], mark="m", python=str(python))
    if made is None:
        pytest.skip("takes a C compiler")
    launcher = tmp_path / "squeue"
    launcher.write_bytes(made)
    launcher.chmod(0o755)
    environment = {"XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run([launcher], capture_output=True, text=True, check=False, env=environment)
    told = f"squeue: error: {python}: No such file or directory\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_without_a_compiler_all_launchers_are_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine has none, or what it has does not work, or the paths are too long to be held."""
    (tmp_path / "launcher.c").write_text("no C at all\n")
    monkeypatch.setattr(native, "SOURCE", tmp_path / "launcher.c")
    for compilers in ((), ("cc", "gcc")):
        native.compiled.cache_clear()
        monkeypatch.setattr(native, "COMPILERS", compilers)
        assert main(["spur", "link", str(tmp_path / "bin")]) == 0
        assert "no C compiler is here" in capsys.readouterr().err
        assert _natives(tmp_path / "bin") == set()
    native.compiled.cache_clear()
    (tmp_path / "launcher.c").write_text(f'char c[] = "{native.PLACE.decode()}"; int main(){{}}\n')
    entry = "/" * native.CONFIG_BYTES
    assert native.native_launcher("squeue", entry=entry, install=[], mark="m") is None
    native.compiled.cache_clear()


def _natives(directory: Path) -> set[str]:
    files = (file for file in directory.iterdir() if file.is_file())
    return {file.name for file in files if file.read_bytes().startswith(b"\x7fELF")}


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
