"""Loss of quorum as a person at a shell meets it: Slurm's words, within Slurm's patience."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from spur.testing.errands import until
from spur.testing.machine import MachineCluster, Row

MESSAGE_TIMEOUT_S = 10.0
"""Source: slurm.conf(5) MessageTimeout."""

LED = [True, False, False]

WORDS = "Unable to contact slurm controller (connect failure)"

UNKNOWN = "Socket timed out on send/recv operation"

REFUSED = "sbatch: error: Batch job submission failed: "


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineCluster]:
    """Yield three controllers and a node."""
    made = MachineCluster(tmp_path_factory.mktemp("quorum") / "up")
    made.up("--controllers", "3", "--nodes", "1")
    yield made
    made.run("down")


def typed(cluster: MachineCluster, command: str, status: int = 0) -> list[str]:
    """Return the lines that a command prints, which must come in time."""
    began_s = time.monotonic()
    lines = cluster.shell(f"{command} 2>&1", status=status).splitlines()
    assert time.monotonic() - began_s < MESSAGE_TIMEOUT_S
    return lines


def controllers(cluster: MachineCluster) -> list[int]:
    """Return the pids of the three controllers, the leader's first."""

    def rows() -> list[Row]:
        found = [row for row in cluster.processes() if row["role"] == "controller" and row["pid"]]
        return sorted(found, key=lambda row: not row["leader"])

    until("three run and one leads", lambda: [bool(row["leader"]) for row in rows()] == LED)
    return [int(row["pid"]) for row in rows()]


def test_nobody_decides_and_what_is_known_is_shown(cluster: MachineCluster) -> None:
    """Two of three controllers die: a job can't be submitted, the queue is shown with a warning.

    Then the last one dies, and all commands say the same. When they are back, all goes on.
    """
    assert cluster.shell("sbatch --begin=now+1hour --wrap true") == "Submitted batch job 1\n"
    *two, last = controllers(cluster)
    for pid in two:
        os.kill(pid, signal.SIGKILL)
    # What was on its way to the dead leader may yet come to something: that is another sentence.
    [refused, *_] = typed(cluster, "sbatch --begin=now+1hour --wrap true", status=1)
    assert refused in (f"{REFUSED}{WORDS}", f"{REFUSED}{UNKNOWN}")
    [refused, *hint] = typed(cluster, "sbatch --begin=now+1hour --wrap true", status=1)
    assert refused == f"{REFUSED}{WORDS}"
    assert all(line.startswith("hint: ") for line in hint)
    for command, shown in (("squeue -h -o %i", "1"), ("sinfo -h -o %D", "1")):
        warning, line = typed(cluster, command)
        program = command.split()[0]
        assert warning.startswith(f"{program}: warning: no quorum of controllers answers")
        assert line == shown
    os.kill(last, signal.SIGKILL)
    assert f"slurm_load_jobs error: {WORDS}" in typed(cluster, "squeue", status=1)
    assert f"slurm_load_partitions: {WORDS}" in typed(cluster, "sinfo", status=1)
    [refused, *_] = typed(cluster, "sbatch --wrap true", status=1)
    assert refused == f"{REFUSED}{WORDS}"
    cluster.up()
    assert cluster.shell("squeue -h -o %i") == "1\n"
    assert cluster.shell("sbatch --begin=now+1hour --wrap true") == "Submitted batch job 2\n"


def test_frozen_controllers_are_no_quorum_either(cluster: MachineCluster) -> None:
    """Two controllers hang rather than die, whichever leads: words come in time all the same."""
    frozen = controllers(cluster)[:2]
    for pid in frozen:
        os.killpg(pid, signal.SIGSTOP)
    try:
        [refused, *_] = typed(cluster, "sbatch --wrap true", status=1)
        # The leader had taken it when it froze: what becomes of it is not known.
        assert refused in (f"{REFUSED}{WORDS}", f"{REFUSED}{UNKNOWN}")
        *_, line = typed(cluster, "squeue -h -o %i -j 1")
        assert line == "1"
    finally:
        for pid in frozen:
            os.killpg(pid, signal.SIGCONT)
    cluster.wait_for("squeue -h -o %i -j 1 2>/dev/null || true", "1\n")
