"""salloc: an allocation as long as a command, a shell at a terminal, or nobody's."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster
from spur.testing.terminals import INTERRUPT, Terminal

GRANTED = "salloc: Granted job allocation N\n"
OVER = "salloc: Relinquishing job allocation N\n"
REVOKED = "salloc: Job allocation N has been revoked.\n"


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("salloc true", 0, GRANTED + OVER),
        ("salloc -n1 bash -c 'exit 5'", 5, GRANTED + OVER),
        ("salloc bash -c 'kill -TERM $$'", 1, GRANTED + OVER),
        ("salloc bash -c 'kill -KILL $$'", 0, GRANTED + OVER),
        (
            "salloc nosuch",
            1,
            f'{GRANTED}salloc: error: _fork_command: Unable to find command "nosuch"\n{OVER}',
        ),
        ("salloc -Q -N2 srun -l bash -c 'echo $SLURM_NODEID' | sort", 0, "0: 0\n1: 1\n"),
        (
            "salloc bash -c 'scancel $SLURM_JOB_ID; sleep 3; echo alive'",
            0,
            f"{GRANTED}{REVOKED}alive\n",
        ),
        (
            "salloc -K9 bash -c 'trap \"\" TERM; scancel $SLURM_JOB_ID; exec sleep 60'",
            0,
            GRANTED + REVOKED,
        ),
        (
            "salloc sh -c 'kill -INT $PPID; sleep 1; echo alive'",
            0,
            f"{GRANTED}{REVOKED}alive\n",
        ),
        ("salloc -K sh -c 'kill -TERM $PPID; exec sleep 60'", 1, GRANTED + REVOKED),
        ("salloc -p nosuch true", 1, "salloc: error: invalid partition specified: nosuch\n"),
        ("SLURM_EXIT_ERROR=44 salloc -p nosuch true", 44, "salloc: error: Job submit/allocate"),
        ("salloc -D /nosuch true", 1, "salloc: error: chdir(/nosuch): No such file or directory"),
    ],
)
def test_what_it_says_and_how_it_ends(
    cluster: MachineCluster, command: str, status: int, told: str
) -> None:
    """A command that ends well, badly, by a signal or not at all; one whose allocation goes."""
    said = cluster.shell(f"{{ {command}; }} 2>&1", status=status)
    assert told in re.sub(r"(allocation) \d+", r"\1 N", said)


def test_who_waits_is_told_and_may_give_up(cluster: MachineCluster) -> None:
    """The only node that fits is taken: Ctrl-C, or no patience, leave nothing in the queue."""
    job = cluster.shell("sbatch --parsable -w c01 --exclusive -o /dev/null --wrap 'sleep 60'")
    cluster.wait_for(f"squeue -h -j {job.strip()} -o %t", "R\n")
    ask = "salloc -w c01 --exclusive"
    said = cluster.shell(f"{{ timeout -s INT 2 {ask} true; }} 2>&1", status=124)
    pending = "salloc: Pending job allocation N\nsalloc: job N queued and waiting for resources\n"
    plain = re.sub(r"(allocation|job) \d+", r"\1 N", said)
    assert plain == f"{pending}{REVOKED}salloc: Job aborted due to signal\n"
    said = cluster.shell(f"{{ SLURM_EXIT_IMMEDIATE=7 {ask} -I1 true; }} 2>&1", status=7)
    assert said.endswith("salloc: error: Unable to allocate resources: Requested nodes are busy\n")
    said = cluster.shell(
        "{ (sleep 1; scancel -n gone) & srun -J gone -w c01 --exclusive true; } 2>&1", status=1
    )
    assert said.endswith(
        "srun: Job has been cancelled\n"
        "srun: error: Unable to allocate resources: Job/step already completing or completed\n"
    )
    cluster.shell(f"scancel {job.strip()}")
    assert cluster.shell("squeue -h -n interactive -t PD") == ""


def test_allocation_without_a_shell_is_there_until_it_is_cancelled(cluster: MachineCluster) -> None:
    """--no-shell; who has the job's number gives it steps."""
    said = cluster.shell("salloc --no-shell -J kept 2>&1")
    job = re.sub(r"\D", "", said)
    assert cluster.shell(f"squeue -h -j {job} -o '%j %t'") == "kept R\n"
    assert cluster.shell(f"srun --jobid={job} printenv SLURM_JOB_ID") == f"{job}\n"
    cluster.shell(f"scancel {job}")


def test_allocation_ends_with_an_salloc_that_is_killed(cluster: MachineCluster) -> None:
    """It had no time to give anything back."""
    cluster.shell(
        "salloc -J orphan sh -c 'kill -9 $PPID; exec sleep 60' >/dev/null 2>&1 & wait", status=0
    )
    cluster.wait_for("squeue -h -n orphan -o %t", "")


def test_shell_at_a_terminal(cluster: MachineCluster, tmp_path: Path) -> None:
    """A person works in it: interrupts a command, leaves; the terminal is then as it was."""
    command = f"{cluster.exports}\nsalloc -N2 env 'PS1=ready> ' bash --norc; echo left $?; sleep 60"
    environment = {"PATH": "/usr/bin:/bin"}
    with Terminal(command, environment=environment, cwd=tmp_path) as terminal:
        terminal.until("ready> ")
        terminal.type("echo nodes $SLURM_JOB_NUM_NODES.\n")
        terminal.until("nodes 2.\nready> ")
        terminal.type("sh -c 'echo u''p; exec sleep 60'\n")
        terminal.until("\nup\n")
        terminal.type(INTERRUPT)
        terminal.until("ready> ")
        terminal.type("echo status $?.\n")
        terminal.until("status 130.\nready> ")
        terminal.type("exit 3\n")
        said = terminal.until("left 3\n")
        assert "salloc: Relinquishing job allocation " in said
        terminal.type(INTERRUPT)
        assert terminal.ended() == -signal.SIGINT
