"""Scripts that came from another batch system."""

from __future__ import annotations

import pytest

from spur.slurm.foreign import foreign_words


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("#PBS -N oldjob", ["--job-name=oldjob"]),
        ("#PBS -Noldjob -h", ["--job-name=oldjob", "--hold"]),
        ("#PBS -l walltime=00:07:00", ["--time=00:07:00"]),
        (
            "#PBS -l nodes=2:ppn=4:fast,mem=2gb",
            ["--nodes=2", "--ntasks-per-node=4", "--mem=2gb"],
        ),
        ("#PBS -V -j oe", []),
        ("#PBS -o", []),
        ('#BSUB -J "my job" -n 4 -x', ["--job-name=my job", "--ntasks=4", "--exclusive"]),
        ("#BSUB -W 10 -l nodes=3", ["--time=10"]),
    ],
)
def test_line_becomes_options_of_sbatch(line: str, options: list[str]) -> None:
    """A script of another decade is handed in as it is."""
    assert foreign_words(f"#!/bin/sh\n{line}\ntrue\n{line}\n") == options
