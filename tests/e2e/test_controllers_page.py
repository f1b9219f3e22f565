"""The page about controllers that come and go is typed as it stands, on a real cluster."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.damage import flip_bit, wal_segments
from spur.testing.machine import MachineCluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "controllers.md"

STEPS = re.compile(r"^<!-- test: (.+?) -->$|^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MachineCluster]:
    """Yield a cluster of one controller."""
    made = MachineCluster(tmp_path / "hall")
    made.up("--nodes", "2")
    yield made
    made.run("down")


def end_controller(cluster: MachineCluster, name: str) -> Path:
    """Kill all processes of a controller, the parent first; return its directory."""
    rows = [row for row in cluster.processes() if row["name"] == name and row["pid"]]
    assert rows
    for row in rows:
        os.kill(int(row["pid"]), signal.SIGKILL)
    return cluster.directory / "controllers" / name


def lose_disk(cluster: MachineCluster) -> None:
    """Lose the disk of c2 for good."""
    shutil.rmtree(end_controller(cluster, "c2"))


def damage_wal(cluster: MachineCluster) -> None:
    """Flip a bit in the header of c3's write-ahead log."""
    flip_bit(wal_segments(end_controller(cluster, "c3"))[0], 20)


FAILURES = {
    "kill c2 and lose its disk": lose_disk,
    "end c3 and damage its write-ahead log": damage_wal,
}


@pytest.mark.timeout(300)
def test_commands_of_the_page_work(cluster: MachineCluster) -> None:
    """An operator grows a cluster, loses disks, repairs it, and shrinks it again."""
    jobs = 0
    shown: list[str] = []
    for failure, block in STEPS.findall(PAGE.read_text()):
        if failure:
            FAILURES[failure](cluster)
            continue
        script = block.replace("/tmp/hall", str(cluster.directory))
        shown.append(cluster.shell(f"exec 2>&1\n{script}"))
        cluster.shell("sbatch --hold --output=/dev/null --wrap true")
        jobs += 1
        assert cluster.shell("squeue -h -o %i | wc -l").strip() == str(jobs)
    text = "\n".join(shown)
    assert text.count("controller c2 votes") == 2
    assert "controller c2 has lost its directory" in shown[3]
    assert "`spur controller repair c2` removes it and adds it anew" in shown[3]
    assert "remove this controller and add it again" in shown[5]
    assert "controller c3 votes" in shown[5]
    assert "is the only voter; nothing was changed" in shown[6]
    names = re.findall(r"^ *[0-9]+ +(c[0-9])", cluster.shell("spur controller list"), re.MULTILINE)
    assert names == ["c3"]
    refused = cluster.run("controller", "repair", "c3")
    assert refused.returncode == 1
    assert "controller c3 has its directory, and takes part; nothing was changed" in refused.stderr
