"""Binding processes to the CPUs that their job was given."""

from __future__ import annotations

import contextlib
import os

from spur.values.tres import cpu_mask

__all__ = ["bound_cpus", "machine_order"]

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/{}"


def bound_cpus(cpu_set: bytes, task_plugin: str) -> frozenset[int]:
    """Return the machine's CPUs that processes are bound to; empty where they are not.

    Binding is for a TaskPlugin that does it, and for a machine that has the CPUs: nodes that are
    only declared share what there is. Source: slurm.conf(5) TaskPlugin.
    """
    mask = cpu_mask(cpu_set)
    if not mask or ("affinity" not in task_plugin and "cgroup" not in task_plugin):
        return frozenset()
    order = machine_order(sorted(os.sched_getaffinity(0)))
    if mask.bit_length() > len(order):
        return frozenset()
    return frozenset(cpu for place, cpu in enumerate(order) if mask >> place & 1)


def machine_order(cpus: list[int]) -> list[int]:
    """Return the machine's CPUs as jobs count them: socket by socket, core by core."""
    return sorted(cpus, key=lambda cpu: (*_place(cpu), cpu))


def _place(cpu: int) -> tuple[int, int]:
    """Return a CPU's socket and core; all the same where the kernel does not say."""
    found = []
    for name in ("physical_package_id", "core_id"):
        number = 0
        path = _TOPOLOGY.format(cpu, name)
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            number = int(file.read())
        found.append(number)
    return found[0], found[1]
