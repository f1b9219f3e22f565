"""Text that is its owner's alone never leaves by `spur log` or by what a controller says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spur.testing.errands import SECRET, submit_many
from spur.testing.past import Past

CODE = "import sys; from spur_cli.main import main; sys.exit(main())"

VERBS = (
    ("show",),
    ("show", "--json"),
    ("show", "--events"),
    ("verify", "--replay"),
    ("head",),
    ("export",),
)


def spur_log(directory: Path) -> list[bytes]:
    """Run every verb of `spur log`, all at once; return all that each wrote."""
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, "log", verb, str(directory), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for verb, *options in VERBS
    ]
    written = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0] * len(VERBS), written
    return written


@pytest.mark.parametrize("is_running", [False, True])
def test_scripts_are_in_no_output(lone_past: Past, tmp_path: Path, is_running: bool) -> None:
    """Somebody sends the output of every verb to a forum, from a directory at rest or in use."""
    past = lone_past.copy(tmp_path)
    [member] = past.controllers.members
    assert SECRET in (member.directory / "blobs" / "000001.pack").read_bytes()
    if is_running:
        past.controllers.start()
        with past.controllers.blocking() as client:
            submit_many(client, 3)
    try:
        for written in spur_log(member.directory):
            assert written
            assert SECRET not in written
    finally:
        past.controllers.stop()
    assert SECRET.decode() not in member.words()
    for name in ("ledger", "snapshots"):
        for path in (member.directory / name).rglob("*"):
            assert path.is_dir() or SECRET not in path.read_bytes()
