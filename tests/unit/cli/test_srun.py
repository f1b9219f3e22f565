"""srun: which run of a job it is a part of."""

from __future__ import annotations

import pytest

from spur_cli.commands.srun import own_run


@pytest.mark.parametrize(
    ("environment", "run"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "5"}, None),
        ({"SLURM_JOB_ID": "6", "SLURMD_NODENAME": "n1"}, None),
        ({"SLURM_JOB_ID": "5", "SLURMD_NODENAME": "n1"}, 0),
        ({"SLURM_JOB_ID": "5", "SLURMD_NODENAME": "n1", "SLURM_RESTART_COUNT": "2"}, 2),
        ({"SLURM_JOB_ID": "5", "SLURMD_NODENAME": "n1", "SLURM_RESTART_COUNT": "x"}, None),
    ],
)
def test_srun_knows_the_run_that_it_is_a_part_of(
    environment: dict[str, str], run: int | None
) -> None:
    """It is called from outside, from another job's script, from this job's first or third run."""
    assert own_run(environment, 5) == run
