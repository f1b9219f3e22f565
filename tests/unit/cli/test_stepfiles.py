"""Where srun's output goes, and what is left for the nodes to open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spur.slurm.wording import SlurmError
from spur.testing.hall import SPEC, STEP, Hall
from spur.wire.jobs import JobView
from spur.wire.steps import StepView
from spur_cli.slurm.stepfiles import DEV_NULL, StepFiles, local_files


def rows() -> tuple[JobView, StepView]:
    """Return a running job and its step."""
    hall = Hall(checked=False)
    job_id = hall.start(hall.submit(replace(SPEC, name="fit")), hall.share("n1", cpus=2))
    hall.start_step(job_id, STEP)
    return hall.view(job_id), hall.steps(job_id)[0]


def files(values: dict[str, Any]) -> StepFiles:
    """Open what these options ask for."""
    job, step = rows()
    return local_files(values, job=job, step=step, user="ada")


def test_everything_is_here_unless_said_otherwise() -> None:
    """Srun hostname: input and output are those of srun itself."""
    found = files({})
    assert (found.stdin_fd, found.stdout_fd, found.stderr_fd) == (0, 1, 2)
    assert (found.stdin_pattern, found.stdout_pattern, found.stderr_pattern) == (b"", b"", b"")


def test_a_file_for_all_tasks_is_opened_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Srun -o out-%j.%s-%x: one file, which stderr goes to as well."""
    monkeypatch.chdir(tmp_path)
    found = files({"stdout": "out-%j.%s-%u-%x"})
    assert found.stdout_fd is not None
    assert found.stderr_fd == found.stdout_fd
    os.write(found.stdout_fd, b"x")
    os.close(found.stdout_fd)
    assert (tmp_path / "out-1.0-ada-fit").read_bytes() == b"x"


def test_files_are_cut_or_appended_to(tmp_path: Path) -> None:
    """Srun --open-mode=append goes on where the file ends."""
    path = tmp_path / "out"
    for values, expected in (({}, b"new"), ({"open_mode": "append"}, b"oldnew")):
        path.write_bytes(b"old")
        found = files({"stdout": str(path), "stderr": "none", **values})
        assert found.stdout_fd is not None
        os.write(found.stdout_fd, b"new")
        os.close(found.stdout_fd)
        assert path.read_bytes() == expected
        assert found.stderr_pattern == DEV_NULL


def test_a_file_for_each_task_is_left_to_its_node() -> None:
    """Srun -o out-%4j-%t.txt: the node fills in the task, srun the rest."""
    found = files({"stdout": "out-%4j-%2t-%%.txt"})
    assert (found.stdout_fd, found.stdout_pattern) == (None, b"out-0001-%2t-%%.txt")
    assert (found.stderr_fd, found.stderr_pattern) == (None, b"")


@pytest.mark.parametrize(("text", "task"), [("all", None), ("3", 3)])
def test_one_task_may_be_chosen(text: str, task: int | None) -> None:
    """Srun -i 3: only task 3 reads; all is everybody."""
    found = files({"stdin": text, "stdout": text})
    assert (found.stdin_fd, found.stdin_task) == (0, task)
    assert (found.stdout_fd, found.stdout_task) == (1, task)


def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    """Srun -o into a directory that is not there, and -i from a file that is not."""
    with pytest.raises(SlurmError) as caught:
        files({"stdout": str(tmp_path / "none" / "out")})
    assert caught.value.lines == (
        "srun: error: Could not open stdout file: No such file or directory",
    )
    with pytest.raises(SlurmError, match="Could not open stdin file"):
        files({"stdin": str(tmp_path / "none")})
