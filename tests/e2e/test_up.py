"""`spur up` as a person meets it: a cluster from nothing, brought back, looked at, ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.machine import ENVIRONMENT, MachineCluster
from spur.testing.small_disk import small_disk

NOBODY = 65534

ROLES = ("primary", "backup1", "backup2")
"""What Slurm calls three controllers."""

BECOME_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MachineCluster]:
    """Yield a place for a cluster, which is ended with all that is in it."""
    made = MachineCluster(tmp_path / "up")
    yield made
    made.run("down")


def test_cluster_comes_up_comes_back_and_ends(cluster: MachineCluster) -> None:
    """Someone tries it: up, a look, a crash, up again, down, and up again with its job there."""
    said = cluster.up("--nodes", "2", "--gpus", "gfx942:8")
    assert "started controller c1" in said
    assert cluster.up() == said.splitlines(keepends=True)[-1]
    assert cluster.shell("sbatch --begin=now+1hour --wrap hostname") == "Submitted batch job 1\n"
    assert cluster.shell("sinfo -h -o '%D %G'") == "2 gpu:gfx942:8\n"
    [row] = [row for row in cluster.processes() if row["role"] == "controller"]
    assert (row["state"], row["leader"]) == ("running", True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(row["certified_until"]))
    os.kill(int(row["pid"]), signal.SIGKILL)
    assert "started controller c1" in cluster.up()
    assert cluster.shell("spur squeue -h -o %i") == "1\n"
    assert "c1" in cluster.run("down").stderr
    assert {row["state"] for row in cluster.processes()} == {"down"}
    assert cluster.run("status").returncode == 1
    assert cluster.run("down").stderr == "nothing ran\n"
    cluster.up()
    assert cluster.shell("squeue -h -o %i") == "1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: mounts a file system")
def test_full_disk_is_the_reason_that_is_given(tmp_path: Path) -> None:
    """Someone brings a cluster up on a disk with little room, and then says that it is enough."""
    with small_disk(tmp_path / "disk", 200) as disk:
        made = MachineCluster(disk.directory / "up")
        try:
            done = made.run("up", "--nodes", "1")
            assert done.returncode == 1
            assert "MiB are free on the disk of" in done.stderr
            assert "with less than 256 a controller acknowledges nothing" in done.stderr
            assert "no leader is known" not in done.stderr
            made.run("down")
            settings = made.directory / "controllers" / "c1" / "spurctld.toml"
            with settings.open("a") as file:
                file.write("disk_first_mark_mib = 40\ndisk_second_mark_mib = 20\n")
            made.up()
        finally:
            made.run("down")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: mounts a file system")
def test_full_spool_is_no_black_hole(cluster: MachineCluster) -> None:
    """A node's disk fills up: the job that was sent there runs on the other, and later there."""
    agent = cluster.directory / "agents" / "spurd-n1"
    agent.mkdir(parents=True, mode=0o711)
    with small_disk(agent / "spool", 100) as disk:
        try:
            cluster.up("--nodes", "2", "--cpus", "2")
            disk.fill(45)
            cluster.shell("for n in 1 2 3; do sbatch --output=/dev/null --wrap true; done")
            cluster.ended("1,2,3")
            seen = "sacct -n -P -X -o state,nodelist | sort -u"
            cluster.wait_for(seen, "COMPLETED|n2\n")
            cluster.wait_for("sinfo -h -N -n n1 -o %t", "drain\n")
            host = os.uname().nodename
            reason = f"spool of {host}: 45 MiB are free, below 64\n"
            assert cluster.shell("sinfo -h -N -n n1 -o %E") == reason
            disk.clear()
            cluster.wait_for("sinfo -h -N -n n1 -o %t", "idle\n")
            cluster.shell("sbatch --output=/dev/null -w n1 --wrap true")
            cluster.ended("4")
            cluster.wait_for("sacct -n -P -X -j 4 -o state,nodelist", "COMPLETED|n1\n")
        finally:
            cluster.run("down")


def test_lone_clock_is_vouched_for_after_a_long_time_down(cluster: MachineCluster) -> None:
    """Someone comes back after the weekend: the one controller's clock is days past its last stamp.

    Nobody else's clock could tell, so the one who stands before the machine vouches for it.
    """
    cluster.up("--nodes", "1")
    cluster.run("down")
    settings = cluster.directory / "controllers" / "c1" / "spurctld.toml"
    with settings.open("a") as file:
        file.write(f"clock_offset_ms = {3 * 86_400_000}\n")
    cluster.up()
    assert cluster.shell("sbatch --begin=now+1hour --wrap true") == "Submitted batch job 1\n"


def test_three_controllers_answer_whoever_leads(cluster: MachineCluster) -> None:
    """Someone asks for three and kills the one that leads: commands go on.

    Then another one is killed: what is known is shown, with one warning.
    """
    cluster.up("--controllers", "3")
    up = [f"Slurmctld({role}) at c{number} is UP\n" for number, role in enumerate(ROLES, 1)]
    cluster.wait_for("scontrol ping", "".join(up))
    [leader] = [row for row in cluster.processes() if row["leader"]]
    os.kill(int(leader["pid"]), signal.SIGKILL)
    assert cluster.shell("sbatch --begin=now+1hour --wrap true") == "Submitted batch job 1\n"
    up[int(str(leader["name"])[1:]) - 1] = up[int(str(leader["name"])[1:]) - 1].replace(
        "UP", "DOWN"
    )
    cluster.wait_for("scontrol ping", "".join(up))
    other = next(row for row in cluster.processes() if row["role"] == "controller" and row["pid"])
    os.kill(int(other["pid"]), signal.SIGKILL)
    warning, job = cluster.shell("squeue -h -o %i 2>&1").splitlines()
    assert warning.startswith("squeue: warning: no quorum of controllers answers")
    assert job == "1"
    refused = cluster.run("up", "--controllers", "2")
    assert refused.returncode == 1
    assert "2 controllers; a cluster has 1, 3 or 5 (--controllers)" in refused.stderr
    assert "removed controller c3\nremoved controller c2\n" in cluster.up("--controllers", "1")
    assert cluster.shell("squeue -h -o %i") == "1\n"


def test_pid_of_another_process_is_left_alone(cluster: MachineCluster) -> None:
    """A machine was started anew, and the pid that is written down is somebody else's now."""
    cluster.up()
    cluster.run("down")
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        mark = {"pid": bystander.pid, "started": 1, "boot": "another"}
        (cluster.directory / "run" / "c1.pid").write_text(json.dumps(mark))
        assert cluster.run("down").stderr == "nothing ran\n"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_supervisor_of_a_job_is_seen(cluster: MachineCluster) -> None:
    """It is a copy of the warm process, and called what it is."""
    cluster.up("--nodes", "1")
    assert cluster.pids("supervisor") == []
    cluster.shell("sbatch --wrap 'sleep 30'")
    seen = "spur status --json | grep -o supervisor | head -n 1"
    cluster.wait_for(seen, "supervisor\n")
    assert len(cluster.pids("forker")) == 1
    cluster.shell("scancel 1")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--controllers", "2"], "2 controllers; a cluster has 1, 3 or 5"),
        (["--nodes", "0"], "0 nodes; it takes 1 to 5000"),
        (["--cpus", "0"], "0 CPUs; a node has 1 to 4096"),
        (["--gpus", "many"], "GPUs 'many'; it takes kind and number"),
        (["--conf", "/nowhere/slurm.conf"], "can't be read"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    cluster: MachineCluster, words: list[str], sentence: str
) -> None:
    """Someone mistypes an option: nothing was made, and the right one works after it."""
    refused = cluster.run("up", *words)
    assert refused.returncode == 1
    assert sentence in refused.stderr
    assert not (cluster.directory / "controllers").exists()
    assert "there is no cluster in" in cluster.run("status").stderr


def _python_for_everybody() -> str | None:
    """Return an interpreter of this version that an ordinary user may start, if there is one."""
    for python in (sys.executable, "/usr/bin/python{}.{}".format(*sys.version_info)):
        trial = f"{python} -c 'import msgspec, spur.up.tool'"
        words = [*BECOME_NOBODY, "sh", "-c", trial]
        if not subprocess.run(words, capture_output=True, check=False, env=ENVIRONMENT).returncode:
            return python
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: becomes another user")
def test_ordinary_user_has_a_cluster_without_root() -> None:
    """A person without any rights on a machine tries it: they are its administrator, root is not.

    Nothing was listed by hand: the kernel names the user, and the cluster is that user's.
    """
    python = _python_for_everybody()
    if python is None:
        pytest.skip("no interpreter, or none of the sources, is for every user to read")
    with tempfile.TemporaryDirectory(prefix="spur-") as name:
        os.chown(name, NOBODY, NOBODY)
        cluster = MachineCluster(Path(name) / "up", python, BECOME_NOBODY)
        try:
            cluster.up("--nodes", "2")
            conf = cluster.directory / "conf" / "slurm.conf"
            conf.write_text(conf.read_text().replace("MaxTime=INFINITE", "MaxTime=60"))
            assert "1:00:00" in cluster.shell("spur reconfigure $SLURM_CONF 2>/dev/null; sinfo")
            assert cluster.shell("sbatch -o out --wrap 'id -un'") == "Submitted batch job 1\n"
            cluster.wait_for("squeue -h", "")
            assert (cluster.directory / "out").read_text() == "nobody\n"
            assert cluster.shell("sacct -n -P -X -o user,state") == "nobody|COMPLETED\n"
            assert cluster.shell("srun -N2 id -un") == "nobody\nnobody\n"
        finally:
            cluster.run("down")


def test_jobs_end_with_the_cluster_unless_they_are_to_go_on(
    cluster: MachineCluster, tmp_path: Path
) -> None:
    """Someone ends the cluster under a running job: first it goes on, then nothing is left."""
    cluster.up("--nodes", "1")
    (tmp_path / "job.sh").write_text("#!/bin/sh\nsetsid sleep 1000 &\necho $! $$ > pids\nwait\n")
    cluster.shell("sbatch --requeue job.sh", cwd=tmp_path)
    cluster.wait_for(f"test -s {tmp_path}/pids && echo yes || true", "yes\n")
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert "parts of jobs" not in cluster.run("down", "--keep-jobs").stderr
    assert all(map(_lives, pids))
    cluster.up()
    assert cluster.shell("squeue -h -o '%i %T'") == "1 RUNNING\n"
    assert "ended 1 parts of jobs" in cluster.run("down").stderr
    assert not any(map(_lives, pids))
    cluster.up()
    cluster.wait_for("scontrol show job 1 | grep -o Restarts=1 || true", "Restarts=1\n")


def _lives(pid: int) -> bool:
    """Return whether a process is there that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
