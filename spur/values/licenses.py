"""Licences: counts of things that a cluster has as a whole, on no node."""

from __future__ import annotations

import re

__all__ = ["LICENSE_COUNT_MAX", "parse_licenses"]

LICENSE_COUNT_MAX = (1 << 31) - 1
"""Of one licence. What Slurm keeps in 32 bits."""

_WORD = re.compile(r"([^:=\s]+)(?:[:=]\+?([0-9]{0,10}))?\Z")


def parse_licenses(text: str) -> dict[str, int]:
    """Read `matlab:4,ansys`, of a job or of the configuration: how many of each licence.

    A colon or an equals sign parts a licence and its count, which is 1 where none is given. One
    that is named twice counts in sum.
    Raises: ValueError when it is no such list. Source: sbatch(1) --licenses.
    """
    found: dict[str, int] = {}
    for word in re.split("[,;]", text):
        if not word:
            continue
        match = _WORD.match(word)
        if match is None:
            raise ValueError(f"{word!r} is no licence with its count, such as matlab:4")
        count = found.get(match[1], 0) + int(match[2] or 1)
        if count > LICENSE_COUNT_MAX:
            raise ValueError(f"{count} of licence {match[1]!r} is more than {LICENSE_COUNT_MAX}")
        found[match[1]] = count
    return found
