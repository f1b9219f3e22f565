"""srun, as people use it who know it well: several programs, a terminal, what runs beside."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster
from spur.testing.terminals import INTERRUPT, SUSPEND, Terminal

HOOK = "print said\nexport WORD=found\n"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("srun -n4 -l --multi-prog mp.conf | sort", "0: c01\n1: 1 of 0\n2: 2 of 1\n3: rest 3\n"),
        ("srun -l --multi-prog mp.conf more | sort", "0: c01\n1: 1 of 0 more\n2: 2 of 1 more\n"),
        ("srun -N2 -n3 -l --multi-prog mp.conf | sort", "0: c01\n1: 1 of 0\n2: 2 of 1\n"),
        ("srun --multi-prog nosuch", "Could not open multi_prog config file nosuch\n"),
        ("srun -n2 --multi-prog few.conf", "few.conf invalid, no record for task id 1\n"),
        ("srun --task-prolog=$PWD/hook printenv WORD", "said\nfound\n"),
        ("srun --prolog=./hook --epilog=./hook echo main", f"{HOOK}main\n{HOOK}"),
        ("srun -Z true", "srun: error: must specify a node list with -Z, --no-allocate.\n"),
        ("srun --pty -o x true", "error: --error/--input/--output are incompatible with --pty\n"),
        ("srun --pty echo tty", "srun: error: Not using a pseudo-terminal, disreg"),
    ],
)
def test_what_tasks_execute_and_what_runs_beside_them(
    cluster: MachineCluster, tmp_path: Path, command: str, told: str
) -> None:
    """A file of programs that is well, cut short or missing; scripts before and after."""
    rows = "# two kinds\n0 printenv SLURMD_NODENAME\n1-2 echo %t of %o\n* echo rest %t\n"
    (tmp_path / "mp.conf").write_text(rows)
    (tmp_path / "few.conf").write_text("0 true\n")
    (tmp_path / "hook").write_text("#!/bin/sh\necho print said\necho export WORD=found\n")
    (tmp_path / "hook").chmod(0o755)
    said = cluster.shell(f"{{ {command}; }} 2>&1 || true", cwd=tmp_path)
    assert told in said.replace("printenv: more: No such file\n", "")


def test_shell_of_a_node_at_a_terminal(cluster: MachineCluster, tmp_path: Path) -> None:
    """--pty: the window's size goes along, keys stop and interrupt, the terminal comes back."""
    shell = "srun --pty env 'PS1=ready> ' bash --norc"
    command = f"{cluster.exports}\n{shell}; echo left $?; stty -a | grep -wo '.icanon\\|icanon'"
    with Terminal(command, environment={"PATH": "/usr/bin:/bin"}, cwd=tmp_path) as terminal:
        terminal.until("ready> ")
        terminal.type("echo $SLURMD_NODENAME $(stty size).\n")
        terminal.until("c01 24 80.\nready> ")
        terminal.type("trap 'stty size' WINCH; echo se''t\n")
        terminal.until("set\nready> ")
        terminal.resize(33, 99)
        terminal.until("33 99\n")
        terminal.type("\n")
        terminal.until("ready> ")
        terminal.type("sh -c 'echo u''p; cat; exit 5'\n")
        terminal.until("\nup\n")
        terminal.type(SUSPEND)
        terminal.until("Stopped")
        terminal.until("ready> ")
        terminal.type("fg; echo status $?.\n")
        terminal.until("status $?.\n")
        terminal.type("heard\n")
        terminal.until("heard\nheard\n")
        terminal.type(INTERRUPT)
        terminal.until("ready> ")
        terminal.type("exit 7\n")
        terminal.until("task 0: Exited with exit code 7\nleft 7\nicanon\n")
        assert terminal.ended() == 0
