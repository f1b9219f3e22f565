"""Licences as configuration and submissions list them: matlab:4,ansys:2."""

from __future__ import annotations

__all__ = ["parse_licenses"]

COUNT_MAX = (1 << 31) - 1
"""Source: sbatch(1) --licenses; Slurm counts them in 32 bits."""


def parse_licenses(text: str) -> tuple[tuple[str, int], ...] | None:
    """Return names and counts, 1 where none is said; None when it is no such list.

    A colon or an equals sign parts a name and its count.

    Source: sbatch(1) --licenses; slurm.conf(5) Licenses.
    """
    found = []
    for part in text.replace(";", ",").split(","):
        if not part:
            continue
        name, _, digits = part.replace("=", ":").partition(":")
        if not digits:
            digits = "1"
        if not name or not (digits.isascii() and digits.isdigit()):
            return None
        count = int(digits[:12])
        if not 0 < count <= COUNT_MAX:
            return None
        found.append((name, count))
    return tuple(found)
