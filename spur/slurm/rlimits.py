"""Resource limits of the shell that submits, on their way to the job.

They travel as variables, SLURM_RLIMIT_NOFILE=1024, and the job does not see them. A U before the
number says that the user asked for this limit; without it the cluster says which limits go along.

Source: sbatch(1) --propagate; slurm.conf(5) PropagateResourceLimits; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LIMIT_NAMES", "is_limit", "limits_of_site", "propagated", "submitted_limits"]

LIMIT_NAMES = (
    "AS",
    "CORE",
    "CPU",
    "DATA",
    "FSIZE",
    "MEMLOCK",
    "NOFILE",
    "NPROC",
    "RSS",
    "STACK",
)

_PREFIX = b"SLURM_RLIMIT_"

UNLIMITED = (1 << 64) - 1
"""How no limit is spelled."""


def _names(text: str) -> frozenset[str]:
    """Return the limits of a list; ALL has each of them and NONE none."""
    words = {word.strip().upper().removeprefix("RLIMIT_") for word in text.split(",")}
    if "ALL" in words:
        return frozenset(LIMIT_NAMES)
    return frozenset(words).intersection(LIMIT_NAMES)


def submitted_limits(soft: Mapping[str, int], propagate: str | None) -> dict[bytes, bytes]:
    """Return the variables that carry soft limits, by name; a negative one is none.

    `propagate` is the option's value: None when it was not given, and empty for all.
    """
    asked = None if propagate is None else _names(propagate or "ALL")
    mark = b"" if asked is None else b"U"
    return {
        _PREFIX + name.encode(): mark + b"%d" % (UNLIMITED if limit < 0 else limit)
        for name, limit in soft.items()
        if asked is None or name in asked
    }


def limits_of_site(limits: str, excepted: str) -> str:
    """Return which limits go along at a site, as a list, from its two parameters as written."""
    if excepted:
        return ",".join(name for name in LIMIT_NAMES if name not in _names(excepted))
    return ",".join(name for name in LIMIT_NAMES if name in _names(limits or "ALL"))


def is_limit(variable: bytes) -> bool:
    """Return whether a variable carries a limit."""
    return variable.startswith(_PREFIX)


def propagated(environment: Mapping[bytes, bytes], site: str) -> dict[str, int]:
    """Return the soft limits to set, by name; -1 is none."""
    found: dict[str, int] = {}
    of_site = _names(site)
    for name in LIMIT_NAMES:
        value = environment.get(_PREFIX + name.encode(), b"")
        digits = value.removeprefix(b"U")
        if not (digits.isdigit() and len(digits) < 21):
            continue
        if name in of_site or digits is not value:
            limit = int(digits)
            found[name] = -1 if limit >= 1 << 63 else limit
    return found
