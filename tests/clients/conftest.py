"""Tools of others, as they come from the package index, at work on a cluster of Spur.

Each is in a virtual environment of its own, which `ops/test-clients` makes from the client's lock;
what it does there is a driver, a program in its own words that prints what it saw as JSON. Without
those environments these tests are not collected: `ops/test` knows nothing of them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spur.testing.clients import PATIENCE_S, Client, run_driver
from spur.testing.machine import MachineCluster

HERE = Path(__file__).parent
ENVIRONMENTS = os.environ.get("SPUR_CLIENTS", "")

if not ENVIRONMENTS:
    collect_ignore_glob = ["test_*.py"]

SITE = """\
ClusterName=demo
SlurmctldHost=ctl(127.0.0.1)
SlurmdTimeout=60
KillWait=1
MinJobAge=300
MaxArraySize=1001
ReturnToService=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
NodeName=c[1-2] CPUs=8 RealMemory=64000 Feature=intel State=UNKNOWN
NodeName=g1 CPUs=8 RealMemory=64000 Gres=gpu:a100:2 State=UNKNOWN
PartitionName=main Nodes=c[1-2] Default=YES MaxTime=1-00:00:00 State=UP
PartitionName=gpu Nodes=g1 MaxTime=1-00:00:00 State=UP
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each client its time."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(PATIENCE_S + 60))


@pytest.fixture(scope="session")
def cluster() -> Iterator[MachineCluster]:
    """Yield a cluster of two nodes for all and one with GPUs, where every user can reach it."""
    with tempfile.TemporaryDirectory(prefix="spur-clients-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "slurm.conf").write_text(SITE)
        made = MachineCluster(directory / "up")
        made.up("--conf", str(directory / "slurm.conf"))
        yield made
        made.run("down")


@pytest.fixture
def client(cluster: MachineCluster, tmp_path: Path) -> Client:
    """Return what runs a driver in the environment of its client, in a directory of its own."""

    def run(name: str) -> dict[str, Any]:
        driver = HERE / "drivers" / f"{name.replace('-', '_')}_driver.py"
        return run_driver(cluster, Path(ENVIRONMENTS) / name, driver, tmp_path)

    return run
