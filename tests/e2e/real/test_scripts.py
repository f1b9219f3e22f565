"""Where a script comes from, what it is given, where it works and where its output goes."""

from __future__ import annotations

from pathlib import Path

from spur.testing.machine import MachineCluster


def test_script_from_a_here_document(cluster: MachineCluster, tmp_path: Path) -> None:
    """What stands in it is expanded on the node; the job is named for the command."""
    body = '#!/bin/bash\n#SBATCH -t 1\necho "job $SLURM_JOB_ID $SLURM_JOB_NAME on $(hostname)"'
    said = cluster.shell(f"sbatch --wait <<'EOT'\n{body}\nEOT", cwd=tmp_path)
    job = said.split()[-1]
    found = (tmp_path / f"slurm-{job}.out").read_text()
    assert found.startswith(f"job {job} sbatch on ")


def test_wrapped_command(cluster: MachineCluster, tmp_path: Path) -> None:
    """A command without a script: it is a script of sh, and says where it comes from."""
    wrap = '"hostname; echo rc=\\$?"'
    job = cluster.shell(f"sbatch -H --parsable -n1 -o w.log --wrap={wrap}", cwd=tmp_path).strip()
    assert cluster.shell(f"squeue -h -j {job} -o %j") == "wrap\n"
    wrapped = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\nhostname; echo rc=$?\n"
    assert cluster.shell(f"scontrol write batch_script {job} -") == wrapped
    cluster.shell(f"scontrol release {job}")
    cluster.ended(job)
    assert (tmp_path / "w.log").read_text().endswith("\nrc=0\n")


def test_script_is_read_back(cluster: MachineCluster, tmp_path: Path) -> None:
    """Somebody asks what exactly was handed in."""
    job = cluster.shell("sbatch -H --parsable --comment=note --wrap='echo a'", cwd=tmp_path).strip()
    said = cluster.shell(f"scontrol write batch_script {job}", cwd=tmp_path)
    assert said == f"batch script for job {job} written to slurm-{job}.sh\n"
    assert (tmp_path / f"slurm-{job}.sh").read_text().endswith("\necho a\n")
    shown = cluster.shell(f"scontrol show job {job}")
    assert f"StdOut={tmp_path}/slurm-{job}.out\n" in shown
    assert f"WorkDir={tmp_path}\n" in shown
    assert "Comment=note " in shown
    assert cluster.shell(f"squeue -h -j {job} -o '%k %Z'") == f"note {tmp_path}\n"
    cluster.shell(f"scancel {job}")


def test_words_behind_a_script_are_its_own(cluster: MachineCluster, tmp_path: Path) -> None:
    """Even one like an option, one with a blank and an empty one; the script is a copy."""
    (tmp_path / "args.sh").write_text('#!/bin/bash\n#SBATCH -n1\nprintf "%s|" "$0" "$@"; echo\n')
    cluster.shell(
        "sbatch --wait -o args.log args.sh --mem=1G 'two words' '' >/dev/null", cwd=tmp_path
    )
    name, rest = (tmp_path / "args.log").read_text().split("|", 1)
    assert rest == "--mem=1G|two words||\n"
    assert name.startswith("/")
    assert name.endswith("/slurm_script")
    assert not Path(name).is_relative_to(tmp_path)


def test_errors_follow_the_output(cluster: MachineCluster, tmp_path: Path) -> None:
    """Only -o is given, or nothing; an array has a file for each task."""
    wrap = "--wrap='echo out; echo err >&2'"
    cluster.shell(f"sbatch --wait -o both.log {wrap} >/dev/null", cwd=tmp_path)
    one = cluster.shell(f"sbatch --wait --parsable {wrap}", cwd=tmp_path).strip()
    many = cluster.shell(f"sbatch --wait --parsable -a 1-2 {wrap}", cwd=tmp_path).strip()
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    names = ["both.log", f"slurm-{one}.out", f"slurm-{many}_1.out", f"slurm-{many}_2.out"]
    assert found == dict.fromkeys(names, "out\nerr\n")


def test_all_variables_and_more(cluster: MachineCluster, tmp_path: Path) -> None:
    """A shell's variables come along, with others, one of them empty; steps get the same list."""
    show = 'echo "$A|$B|[$C]|$SLURM_EXPORT_ENV"'
    cluster.shell(
        f"export A=1; sbatch --wait -o all.log --export=ALL,B=two,C= --wrap='{show}' >/dev/null",
        cwd=tmp_path,
    )
    assert (tmp_path / "all.log").read_text() == "1|two|[]|ALL,B=two,C=\n"


def test_named_variables_alone(cluster: MachineCluster, tmp_path: Path) -> None:
    """A list without ALL keeps all others out, but for what the job is told of itself."""
    show = 'echo "$A|$B|$X|${SLURM_JOB_ID:+known}"'
    cluster.shell(
        f"export A=1 B=2; sbatch --wait -o named.log --export=A,X=9 --wrap='{show}' >/dev/null",
        cwd=tmp_path,
    )
    assert (tmp_path / "named.log").read_text() == "1||9|known\n"


def test_directory_of_the_job(cluster: MachineCluster, tmp_path: Path) -> None:
    """The job works elsewhere, and its output is there; it knows whence it was submitted."""
    run = tmp_path / "run"
    run.mkdir()
    cluster.shell(
        f"sbatch --wait -D {run} -o here.log --wrap='pwd; echo $SLURM_SUBMIT_DIR' >/dev/null",
        cwd=tmp_path,
    )
    assert (run / "here.log").read_text() == f"{run}\n{tmp_path}\n"
