"""Variables of a step about the binding and the frequency of its CPUs, as Slurm 22.05 sets them."""

from __future__ import annotations

from typing import Any

import pytest

from spur.slurm.bindenv import bind_environment


@pytest.mark.parametrize(
    ("values", "bind", "kind", "listed", "verbosity"),
    [
        ({"cpu_bind": "none"}, "quiet,none", "none", "", "quiet"),
        ({"cpu_bind": "verbose,cores"}, "verbose,cores", "cores", "", "verbose"),
        ({"cpu_bind": "v"}, "verbose", "", "", "verbose"),
        ({"cpu_bind": "q,map_cpu:0,2"}, "quiet,map_cpu:0,2", "map_cpu:", "0,2", "quiet"),
        ({"hint": "nomultithread"}, "quiet,threads", "threads", "", "quiet"),
        ({"hint": "nomultithread", "cpu_bind": "none"}, "quiet,none", "none", "", "quiet"),
    ],
)
def test_a_binding_is_told(
    values: dict[str, Any], bind: str, kind: str, listed: str, verbosity: str
) -> None:
    """Scripts and MPI libraries look at what was asked."""
    found = bind_environment(values)
    assert found["SLURM_CPU_BIND"] == bind
    assert found["SLURM_CPU_BIND_TYPE"] == kind
    assert found["SLURM_CPU_BIND_LIST"] == listed
    assert found["SLURM_CPU_BIND_VERBOSE"] == verbosity
    assert found.get("SLURM_THREADS_PER_CORE") == ("1" if "hint" in values else None)


@pytest.mark.parametrize(
    ("asked", "told"),
    [("low", "Low"), ("2400000", "2400000"), ("low-HIGHM1:ondemand", "Low-HighM1:OnDemand")],
)
def test_a_frequency_is_told_as_slurm_spells_it(asked: str, told: str) -> None:
    """Srun --cpu-freq takes any case."""
    assert bind_environment({"cpu_freq": asked}) == {"SLURM_CPU_FREQ_REQ": told}


def test_nothing_is_told_of_what_was_not_asked() -> None:
    """Srun without any of these options."""
    assert bind_environment({"tasks": 2}) == {}
