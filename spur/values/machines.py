"""What an agent tells of the machine that it runs on, for people."""

from __future__ import annotations

import msgspec

__all__ = ["MACHINE_LETTERS_MAX", "UNKNOWN_MACHINE", "Machine"]

MACHINE_LETTERS_MAX = 256
"""Of each text."""


class Machine(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A machine and the agent on it. Source: scontrol(1) show node."""

    arch: str
    """Such as "x86_64"; empty when nobody told."""
    system: str
    """Kernel, release and version, as uname(2) has them."""
    version: str
    """Of Slurm's that the agent stands for."""
    booted_ns: int
    started_ns: int
    """When the agent started."""


UNKNOWN_MACHINE = Machine("", "", "", 0, 0)
