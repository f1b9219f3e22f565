"""What an operator sees and does in each failure: the page is typed as it stands.

A comment of the page says what fails before the commands that follow it are typed; a row of
`FAILURES` makes it fail.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster, Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "failures.md"

CONF = """\
ClusterName=hall
SlurmctldHost=c1
SlurmctldHost=c2
SlurmctldHost=c3
SlurmdTimeout=3
ReturnToService=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=n[1-2] CPUs=4 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES
"""

STEPS = re.compile(r"^<!-- test: (.+?) -->$|^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PATIENCE_S = 30.0


class Failing:
    """A cluster, and what can fail of it."""

    def __init__(self, cluster: MachineCluster) -> None:
        self.cluster = cluster

    def controllers(self, *, leading: bool) -> list[str]:
        """Return the names of the controllers that lead, or do not."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            rows = [row for row in self.cluster.processes() if row["role"] == "controller"]
            if any(row["leader"] for row in rows) or time.monotonic() > end_s:
                return [str(row["name"]) for row in rows if row["leader"] is leading]
            time.sleep(0.1)

    def kill(self, test: Callable[[Row], bool]) -> None:
        """Kill processes as a crash would."""
        killed = [int(row["pid"]) for row in self.cluster.processes() if row["pid"] and test(row)]
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    def kill_controllers(self, names: list[str]) -> None:
        """Kill all processes of these controllers."""
        self.kill(lambda row: row["name"] in names)

    def kill_agent(self) -> None:
        """Kill the agent of n1, and none of its supervisors."""
        self.kill(lambda row: row["name"] == "spurd-n1" and row["role"] == "agent")

    def kill_agent_under_a_job(self) -> None:
        """Let a job run on n1, and its agent die."""
        self.cluster.shell("sbatch -w n1 --output=/dev/null --wrap 'sleep 300'")
        self.cluster.wait_for("squeue -h -o %T", "RUNNING\n")
        self.kill(lambda row: row["name"] == "spurd-n1")

    def spoil_the_records(self) -> None:
        """Overwrite the middle of the read model."""
        path = self.cluster.directory / "controllers" / "c1" / "history.db"
        data = bytearray(path.read_bytes())
        data[4096:] = bytes(len(data) - 4096)
        path.write_bytes(data)

    def change_a_byte(self) -> None:
        """Change a byte of a ledger while its controller is down."""
        self.kill_controllers(["c2"])
        path = self.cluster.directory / "controllers" / "c2" / "ledger" / "000000000001.raw"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


FAILURES: dict[str, Callable[[Failing], None]] = {
    "kill a controller that follows": lambda failing: failing.kill_controllers(
        failing.controllers(leading=False)[:1]
    ),
    "kill the controller that leads": lambda failing: failing.kill_controllers(
        failing.controllers(leading=True)
    ),
    "kill two controllers": lambda failing: failing.kill_controllers(["c1", "c2"]),
    "kill the scheduler and the projector": lambda failing: failing.kill(
        lambda row: row["role"] in ("scheduler", "projector")
    ),
    "kill the agent of n1": Failing.kill_agent,
    "kill the agent of n1 under a job": Failing.kill_agent_under_a_job,
    "spoil the read model": Failing.spoil_the_records,
    "change a byte of c2's ledger": Failing.change_a_byte,
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MachineCluster]:
    """Yield a cluster of three controllers and two nodes, which are soon taken for lost."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "spur.toml").write_text('[cluster]\nrequeue_policy = "confirmed"\n')
    made = MachineCluster(tmp_path / "up")
    made.up("--conf", str(tmp_path / "slurm.conf"))
    yield made
    made.run("down")


def test_operator_comes_through_every_failure(cluster: MachineCluster, tmp_path: Path) -> None:
    """One bad day: everything on the page fails, in order, and is mended as the page says."""
    failing = Failing(cluster)
    shown = {"": ""}
    last = ""
    for match in STEPS.finditer(PAGE.read_text()):
        if match[1] is not None:
            last = match[1]
            shown[last] = ""
            FAILURES[last](failing)
            continue
        block = match[2].replace("/tmp/hall", str(cluster.directory))
        shown[last] += cluster.shell(f"exec 2>&1\n{block}", cwd=tmp_path)
    assert shown.keys() == {"", *FAILURES}
    assert shown[""].count("controller") == 3
    assert re.search(r"^c\d +controller +down ", shown["kill a controller that follows"], re.M)
    assert shown["kill the controller that leads"].count(" yes ") == 1
    alone = shown["kill two controllers"]
    assert "no quorum of controllers answers: this is the state at entry " in alone
    assert "Unable to contact slurm controller (connect failure)" in alone
    assert "not submitted" in alone
    assert "COMPLETED" in shown["kill the scheduler and the projector"]
    assert "Not responding" in shown["kill the agent of n1"]
    assert "COMPLETING n1" in shown["kill the agent of n1 under a job"]
    assert "is damaged at byte" in shown["change a byte of c2's ledger"]
