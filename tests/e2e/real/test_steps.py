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


def test_guest_listens_to_a_step_and_types(cluster: MachineCluster, tmp_path: Path) -> None:
    """Sattach from another shell: what the tasks write, filtered and labelled, and their input."""
    (tmp_path / "task.sh").write_text(
        "echo begun; echo odd >&2; touch up.$SLURM_PROCID; read word; echo heard $word; exit 3\n"
    )
    step = "until [ -e go ]; do sleep 0.1; done | srun -l -n2 bash task.sh"
    job = cluster.shell(f"sbatch --parsable -n2 -o out --wrap '{step}'", cwd=tmp_path).strip()
    cluster.wait_for(f"cd {tmp_path}; echo up*", "up.0 up.1\n")
    layout = cluster.shell(f"sattach --layout {job}.0")
    assert layout == (
        "Job step layout:\n\t2 tasks, 1 nodes (c01)\n\n\tNode 0 (c01), 2 task(s): 0 1 \n"
    )
    command = f"{{ (sleep 1; echo you) | sattach -l {job}.0; }} 2>&1"
    said = cluster.shell(command, status=3).splitlines()
    for task in (0, 1):
        lines = [f"{task}: {word}" for word in ("begun", "heard you")]
        assert [line for line in said if line.startswith(f"{task}:") and "odd" not in line] == lines
        assert f"{task}: odd" in said
        assert f"sattach: error: task {task} exited with exit code 3" in said
    (tmp_path / "go").touch()
    cluster.ended(job)
    assert "1: heard you" in (tmp_path / "out").read_text().splitlines()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "sattach: error: too many parameters\nUsage: sattach [options] <jobid.stepid>\n"),
        ("5", "sattach: error: Failed to parse stepid from command line options\nUsage: sattach"),
        ("99999.0", "sattach: error: Could not get job step info: Invalid job id specified\n"),
        ("x.y", "sattach: fatal: Bad step specified: x\n"),
        ("--output-filter=x 1.0", 'sattach: error: Invalid numeric value "x" for output-filter.\n'),
    ],
)
def test_guest_who_names_no_step_is_told(cluster: MachineCluster, words: str, told: str) -> None:
    """Sattach without a step, with a job alone, with what is not there."""
    said = cluster.shell(f"sattach {words} 2>&1", status=1)
    assert all(line in said for line in told.splitlines())


def test_file_is_sent_to_all_nodes_of_a_job(cluster: MachineCluster, tmp_path: Path) -> None:
    """Nodes of one machine have one disk: whoever comes second finds the file there."""
    (tmp_path / "big").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "big").chmod(0o750)
    there = "sbcast: error: REQUEST_FILE_BCAST(c0"
    said = cluster.shell(
        "salloc -Q -N1 sh -c 'sbcast -p big sent; echo $?; cmp big sent; stat -c %a sent;"
        " sbcast big sent; echo $?; sbcast -f -C big sent; echo $?; sbcast big no/such; echo $?;"
        " sbcast nosuch x; echo $?; sbcast big; echo $?' 2>&1",
        cwd=tmp_path,
    )
    lines = said.splitlines()
    assert lines[:2] == ["0", "750"]
    assert lines[2].startswith(there)
    assert lines[2].endswith("): File exists")
    assert lines[3:5] == ["17", "0"]
    assert lines[5].endswith("): No such file or directory")
    assert lines[6:] == [
        "2",
        "sbcast: error: Can't open `nosuch`: No such file or directory",
        "255",
        "Need two file names, have 1 names",
        'Try "sbcast --help" for more information',
        "1",
    ]
    assert (tmp_path / "sent").read_bytes() == (tmp_path / "big").read_bytes()
    need = "sbcast: error: Need a job id to run this command.  Run from within a Slurm job or use "
    assert cluster.shell("sbcast big x 2>&1", cwd=tmp_path, status=1).startswith(need)
    gone = cluster.shell("sbcast -j 99999 big x 2>&1", cwd=tmp_path, status=255)
    assert gone == "sbcast: error: Slurm job 99999 lookup error: Invalid job id specified\n"


def test_program_is_sent_before_it_runs(cluster: MachineCluster, tmp_path: Path) -> None:
    """Srun --bcast: to a name, to a directory, and where it can't be."""
    (tmp_path / "prog").write_text("#!/bin/sh\necho ran as $0\n")
    (tmp_path / "prog").chmod(0o755)
    (tmp_path / "there").mkdir()
    run = "srun -n1"
    assert cluster.shell(f"{run} --bcast=copy ./prog", cwd=tmp_path) == f"ran as {tmp_path}/copy\n"
    said = cluster.shell(f"{run} --bcast=there/ ./prog", cwd=tmp_path)
    assert said.startswith(f"ran as {tmp_path}/there/slurm_bcast_")
    assert "REQUEST_FILE_BCAST(c01): No such file or directory" in cluster.shell(
        f"{run} --bcast=no/such ./prog 2>&1", cwd=tmp_path, status=1
    )
