"""Resource limits on their way from the shell that submits to the job."""

from __future__ import annotations

import pytest

from spur.slurm.rlimits import (
    LIMIT_NAMES,
    is_limit,
    limits_of_site,
    propagated,
    submitted_limits,
)

SOFT = {"NOFILE": 777, "STACK": 4_194_304, "CORE": -1}


@pytest.mark.parametrize(
    ("propagate", "site", "arrives"),
    [
        (None, "ALL", {"NOFILE": 777, "STACK": 4_194_304, "CORE": -1}),
        (None, "NONE", {}),
        (None, "NOFILE", {"NOFILE": 777}),
        ("", "NONE", {"NOFILE": 777, "STACK": 4_194_304, "CORE": -1}),
        ("ALL", "NONE", {"NOFILE": 777, "STACK": 4_194_304, "CORE": -1}),
        ("NONE", "ALL", {}),
        ("NOFILE", "ALL", {"NOFILE": 777}),
        ("STACK,RLIMIT_CORE", "NONE", {"STACK": 4_194_304, "CORE": -1}),
    ],
)
def test_what_is_asked_or_usual_arrives(
    propagate: str | None, site: str, arrives: dict[str, int]
) -> None:
    """Someone sets limits in their shell; the option goes before what the site says."""
    variables = submitted_limits(SOFT, propagate)
    assert all(is_limit(name) for name in variables)
    assert propagated(variables, site) == arrives


@pytest.mark.parametrize(
    ("limits", "excepted", "names"),
    [
        ("", "", ",".join(LIMIT_NAMES)),
        ("ALL", "", ",".join(LIMIT_NAMES)),
        ("NONE", "", ""),
        ("CORE,NOFILE", "", "CORE,NOFILE"),
        ("", "MEMLOCK,NPROC", "AS,CORE,CPU,DATA,FSIZE,NOFILE,RSS,STACK"),
        ("", "NONE", ",".join(LIMIT_NAMES)),
    ],
)
def test_a_site_names_limits_or_exceptions(limits: str, excepted: str, names: str) -> None:
    """PropagateResourceLimits and PropagateResourceLimitsExcept of slurm.conf."""
    assert limits_of_site(limits, excepted) == names


@pytest.mark.parametrize("value", [b"", b"U", b"unlimited", b"-5", b"1e9", b"9" * 30])
def test_what_is_no_number_sets_nothing(value: bytes) -> None:
    """Somebody sets the variable by hand."""
    assert propagated({b"SLURM_RLIMIT_NOFILE": value}, "ALL") == {}
