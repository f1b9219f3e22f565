"""What an agent reads of its machine: clocks, boots, processors, memory and load."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from spur.server.agentsettings import Settings
from spur.slurm.wording import VERSION
from spur.values.errors import OperatorFault
from spur.values.ids import NodeName
from spur.values.machines import MACHINE_LETTERS_MAX, Machine
from spur.wire.agents import NodeHealth

__all__ = ["HostFacts", "boot_clock_ns", "free_memory_mib", "health_of", "read_facts"]

_MEMINFO = Path("/proc/meminfo")
_STAT = Path("/proc/stat")


class HostFacts(msgspec.Struct, frozen=True, gc=False):
    """What each node of this agent is said to have."""

    boot_id: str
    cpus: int
    memory_mib: int
    gpu_kind: str
    gpus: int
    machine: Machine


def boot_clock_ns() -> int:
    """Return the time since the boot, sleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def read_facts(settings: Settings) -> HostFacts:
    """Return the boot's id and what a node has: as the settings say, or as the machine has.

    Raises: OperatorFault when the machine does not tell its boot.
    """
    try:
        boot_id = Path(settings.boot_id_file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorFault(
            f"the boot's id cannot be read: {error}; nothing was started"
        ) from error
    if not boot_id:
        raise OperatorFault(f"{settings.boot_id_file} is empty; nothing was started")
    return HostFacts(
        boot_id=boot_id,
        cpus=settings.cpus or os.cpu_count() or 1,
        memory_mib=settings.memory_mib or _meminfo_mib("MemTotal"),
        gpu_kind=settings.gpu_kind,
        gpus=settings.gpus,
        machine=_machine(),
    )


def _machine() -> Machine:
    """Return what people want to know of this machine."""
    found = os.uname()
    return Machine(
        arch=found.machine[:MACHINE_LETTERS_MAX],
        system=f"{found.sysname} {found.release} {found.version}"[:MACHINE_LETTERS_MAX],
        version=VERSION.partition(" ")[2],
        booted_ns=_boot_s() * 1_000_000_000,
        started_ns=int(time.time()) * 1_000_000_000,
    )


def _boot_s() -> int:
    """Return when the machine booted, in seconds of its clock; 0 when it does not tell."""
    for line in _STAT.read_text(encoding="ascii").splitlines():
        if line.startswith("btime "):
            return int(line.split()[1])
    return 0


def free_memory_mib() -> int:
    """Return the memory that nobody uses. Source: scontrol(1) show node, FreeMem."""
    return _meminfo_mib("MemFree")


def health_of(nodes: tuple[NodeName, ...]) -> tuple[NodeHealth, ...]:
    """Return how each node is; those of one machine are alike."""
    load_milli = int(os.getloadavg()[0] * 1000)
    free_mib = free_memory_mib()
    return tuple(NodeHealth(node, load_milli, free_mib) for node in nodes)


def _meminfo_mib(key: str) -> int:
    for line in _MEMINFO.read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == key:
            return int(rest.split()[0]) // 1024
    return 0
