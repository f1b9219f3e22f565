"""Lists that are given in several options of one name, as submitit names its jobs."""

from __future__ import annotations

import pytest

from spur.slurm.getopt import parse_arguments
from spur.slurm.layers import layer_of
from spur.slurm.options import OPTIONS


@pytest.mark.parametrize(
    ("program", "words", "field", "value"),
    [
        ("sacct", ["-j", "1", "-j", "4,5"], "jobs", "1,4,5"),
        ("sacct", ["-u", "ada", "--user=bob"], "users", "ada,bob"),
        ("sacct", ["-o", "jobid", "-o", "state"], "format", "jobid,state"),
        ("sacct", ["-N", "n1", "-N", "n2"], "nodes", "n2"),
        ("squeue", ["-j", "1", "-j", "4"], "jobs", "4"),
    ],
)
def test_a_list_goes_on_or_is_replaced(
    program: str, words: list[str], field: str, value: str
) -> None:
    """Someone gives an option twice; sacct gathers most of its lists, squeue takes the last."""
    given, _ = parse_arguments(words, OPTIONS[program], program=program)
    assert layer_of(given, program).values[field] == value
