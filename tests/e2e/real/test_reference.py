"""The examples of the pages of Slurm's commands: each is typed as it stands."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster

EXAMPLES: dict[str, dict[str, str]] = tomllib.loads(
    (Path(__file__).parents[3] / "docs" / "reference" / "examples.toml").read_text("utf-8")
)


@pytest.fixture(scope="module")
def job(cluster: MachineCluster) -> Iterator[str]:
    """Yield the number of a job that runs."""
    made = cluster.shell("sbatch --parsable -t 9 -o /dev/null --wrap='sleep 500'").strip()
    cluster.wait_for(f"squeue -h -j {made} -o %T", "RUNNING\n")
    yield made
    cluster.shell(f"scancel {made}")


@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_of_the_page_work(
    cluster: MachineCluster, job: str, tmp_path: Path, command: str
) -> None:
    """Somebody opens the page of a command and types what stands there."""
    (tmp_path / "job.sh").write_text("#!/bin/sh\nhostname\n")
    before = f"exec 2>&1; set -e; export JOB={job} USER=$(id -un)\n"
    said = cluster.shell(before + "\n".join(EXAMPLES[command]), cwd=tmp_path)
    assert ": error:" not in said
