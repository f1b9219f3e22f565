"""Every parameter of Slurm's configuration files: one row each.

A row says how its value is written, which field of `values.config` it becomes, and whether Spur
does what the manual says of it. The rows stand in the files `parameters_*.py`, one for each kind
of line. Those without a field are kept as they were written.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from spur.slurm.grammar import Grammar

__all__ = ["Parameter", "Section", "Verdict"]


class Section(StrEnum):
    """Kinds of line, named by the key that begins them."""

    CLUSTER = "slurm.conf"
    """Lines of slurm.conf that stand for themselves."""
    NODE = "NodeName"
    PARTITION = "PartitionName"
    DOWN = "DownNodes"
    NODE_SET = "NodeSet"
    GRES = "gres.conf"
    TOPOLOGY = "topology.conf"


class Verdict(StrEnum):
    """What becomes of a parameter that somebody wrote."""

    HONOURED = "honoured"
    """It does what the manual says."""
    NOT_YET = "not yet honoured"
    """It is read and kept, and nothing follows from it."""
    UNKNOWN = "unknown"
    """No release of Slurm has it: the file is refused."""
    WRONG = "wrong value"
    """The file is refused."""


class Parameter(NamedTuple):
    """One parameter."""

    name: str
    """In the manual's spelling."""
    grammar: Grammar
    doc: str
    """What it says, in a few words."""
    field: str = ""
    """The field that it becomes; empty when it is kept as written."""
    verdict: Verdict = Verdict.NOT_YET
    values: tuple[str, ...] = ()
    """The values that are honoured, when not all are."""
    is_secret: bool = False
    """It never goes into the log."""

    def verdict_of(self, value: str) -> Verdict:
        """Return what becomes of the parameter with this value."""
        if self.values and value.upper() not in self.values:
            return Verdict.NOT_YET
        return self.verdict
