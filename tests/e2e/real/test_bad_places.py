"""What a node can't do for a job: open its files, become its user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spur.testing.machine import ENVIRONMENT, MachineCluster


@pytest.mark.parametrize(
    "options",
    ["-o file/x", "-o .", "-o ok -e file/x", "-o ok -i nosuch"],
    ids=["below a file", "a directory", "errors", "input"],
)
def test_file_that_cannot_be_opened(cluster: MachineCluster, tmp_path: Path, options: str) -> None:
    """The script never begins; the job has failed, with a signal's number that no signal has."""
    (tmp_path / "file").touch()
    submit = f"sbatch --parsable {options} --wrap='touch ran'"
    job = cluster.shell(submit, cwd=tmp_path).strip()
    cluster.ended(job)
    shown = cluster.shell(f"scontrol show job {job}")
    assert "JobState=FAILED Reason=JobLaunchFailure " in shown
    assert " ExitCode=0:53\n" in shown
    assert cluster.shell(f"squeue -h -t all -j {job} -o '%T %r'") == "FAILED JobLaunchFailure\n"
    lines = [f"{job}|FAILED|0:53", f"{job}.batch|CANCELLED|0:53", f"{job}.extern|COMPLETED|0:0"]
    steps = f"sacct -n -P -j {job} -o JobID,State,ExitCode"
    cluster.wait_for(steps, "".join(f"{line}\n" for line in lines))
    assert not (tmp_path / "ran").exists()


GONE = 64_999
"""A user that no machine knows."""

# Root submits first: then everything is imported, which the user need not be able to read.
SUBMIT = """
import os, sys
from spur_cli.main import main
uid = int(sys.argv[1])
main(["sbatch", *sys.argv[2:]])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
sys.exit(main(["sbatch", *sys.argv[2:]]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: becomes another user")
def test_user_who_vanished(cluster: MachineCluster) -> None:
    """Somebody left the site while their job waited: it is held, and never runs."""
    exports = cluster.run("env").stdout
    with tempfile.TemporaryDirectory(prefix="spur-") as place:
        Path(place).chmod(0o1777)
        output = f"{place}/%j"
        words = [sys.executable, "-c", SUBMIT, str(GONE), "--parsable", "-o", output, "--wrap=id"]
        done = subprocess.run(
            ["sh", "-c", f'{exports}\nexec "$@"', "sh", *words],
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT,
            cwd="/tmp",
        )
        assert (done.returncode, done.stderr) == (0, "")
        roots, job = done.stdout.split()
        cluster.wait_for(f"squeue -h -j {job} -o '%T %r %u'", "PENDING JobLaunchFailure nobody\n")
        cluster.ended(roots)
        assert [file.name for file in Path(place).iterdir()] == [roots]
    cluster.shell(f"scancel {job}")
