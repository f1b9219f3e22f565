"""The keys of a configuration's tables: how each is checked, and its default, once.

A row of these tables is a key of spur.toml and a field of `values.config`. What Slurm's files say
ends in the same fields, and takes from here what they leave out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from spur.values.config import (
    ControllerHost,
    GrantedRole,
    GresPool,
    NodeStart,
    OverSubscribe,
    PartitionState,
    RequeuePolicy,
)
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.ids import NAME_GRAMMAR, is_name
from spur.values.tres import GPUS_PER_NODE_MAX

__all__ = [
    "CLUSTER_KEYS",
    "CPUS_MAX",
    "MEMORY_MIB_MAX",
    "NODE_KEYS",
    "PARTITION_KEYS",
    "REQUIRED",
    "ROLE_KEYS",
    "SECONDS_MAX",
    "Check",
    "Keys",
    "cpu_shape",
    "defaults_of",
    "gpu_summary",
]

SECONDS_MAX = 1_000_000_000
"""The longest time that a configuration may name, in seconds."""

MEMORY_MIB_MAX = 1 << 40
"""The most memory or disk of a node, in MiB."""

CPUS_MAX = 65_536
"""The most CPUs, sockets, cores or threads of a node."""

_UID_MAX = (1 << 32) - 2
_COUNT_MAX = (1 << 32) - 3
_JOB_ID_MAX = (1 << 62) - 1
_TEXT_LENGTH_MAX = 1_024

REQUIRED = object()
"""Stands for the default of a key that has none."""

Check = Callable[[Any], Any]
"""Returns the value as it is kept. Raises ValueError saying what would be right."""

Keys = Mapping[str, tuple[Check, Any]]
"""Key of a table: its check, and its default or `REQUIRED`."""

_GPUS = re.compile(r"(?:([A-Za-z0-9._-]{1,64}):)?([0-9]{1,3})\Z")
_GRES = re.compile(r"([A-Za-z0-9._-]{1,64}):(?:([A-Za-z0-9._-]{1,64}):)?([0-9]{1,10})\Z")


def _whole(lowest: int, highest: int) -> Check:
    def check(value: Any) -> int:
        if type(value) is not int or not lowest <= value <= highest:
            raise ValueError(f"it takes a whole number from {lowest} to {highest}")
        return value

    return check


def _name(value: Any) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise ValueError(f"it takes {NAME_GRAMMAR}")
    return value


def _name_or_empty(value: Any) -> str:
    return "" if value == "" else _name(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_LENGTH_MAX or not value.isprintable():
        raise ValueError(f"it takes a text of one line, up to {_TEXT_LENGTH_MAX} letters")
    return value


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("it takes true or false")
    return value


def _one_of(choices: type[StrEnum]) -> Check:
    def check(value: Any) -> StrEnum:
        try:
            return choices(value)
        except ValueError:
            raise ValueError(f"it takes {' or '.join(choices)}") from None

    return check


def _hosts(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('it takes a host list such as "n[1-4]"')
    names = parse_hostlist(value)
    if not names:
        raise ValueError('it takes at least one name, such as "n[1-4]"')
    return format_hostlist(names)


def _hosts_or_empty(value: Any) -> str:
    return "" if value == "" else _hosts(value)


def _gpus(value: Any) -> tuple[str, int]:
    match = _GPUS.match(value) if isinstance(value, str) else None
    if match is None or int(match.group(2)) > GPUS_PER_NODE_MAX:
        raise ValueError(f'it takes kind and number up to {GPUS_PER_NODE_MAX}: "gfx942:8"')
    count = int(match.group(2))
    return (match.group(1) or "", count) if count else ("", 0)


def _gres(value: Any) -> tuple[GresPool, ...]:
    pools = []
    for item in value if isinstance(value, list) else [None]:
        match = _GRES.match(item) if isinstance(item, str) else None
        if match is None:
            raise ValueError('it takes a list such as ["gpu:a100:4", "shard:16"]')
        pools.append(GresPool(match[1], match[2] or "", int(match[3]), "", "", ()))
    return tuple(pools)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError('it takes a list such as ["infiniband"]')
    return tuple(sorted({_name(item) for item in value}))


def _controllers(value: Any) -> tuple[ControllerHost, ...]:
    if not isinstance(value, list):
        raise ValueError('it takes a list such as ["ctl1", "ctl2"]')
    names = [_name(item) for item in value]
    return tuple(ControllerHost(name, name) for name in dict.fromkeys(names))


_MEMORY = (_whole(1, MEMORY_MIB_MAX), None)

CLUSTER_KEYS: Keys = {
    "name": (_name, REQUIRED),
    "min_job_age_s": (_whole(0, SECONDS_MAX), 300),
    "slurmd_timeout_s": (_whole(1, SECONDS_MAX), 300),
    "kill_wait_s": (_whole(0, SECONDS_MAX), 30),
    "requeue_policy": (_one_of(RequeuePolicy), RequeuePolicy.SLURM),
    "array_size_max": (_whole(1, 4_000_001), 1001),
    "job_count_max": (_whole(1, 10_000_000), 1_000_000),
    "controllers": (_controllers, ()),
    "first_job_id": (_whole(1, _JOB_ID_MAX), 1),
    "memory_per_cpu_mib": _MEMORY,
    "memory_per_node_mib": _MEMORY,
    "memory_per_cpu_mib_max": _MEMORY,
    "memory_per_node_mib_max": _MEMORY,
}

ROLE_KEYS: Keys = {
    "uid": (_whole(0, _UID_MAX), REQUIRED),
    "host": (_name_or_empty, ""),
    "role": (_one_of(GrantedRole), REQUIRED),
}

NODE_KEYS: Keys = {
    "names": (_hosts, REQUIRED),
    "cpus": (_whole(1, CPUS_MAX), None),
    "memory_mib": (_whole(1, MEMORY_MIB_MAX), 1),
    "gpus": (_gpus, ("", 0)),
    "features": (_names, ()),
    "agent": (_name_or_empty, ""),
    "boards": (_whole(1, CPUS_MAX), 1),
    "sockets": (_whole(1, CPUS_MAX), None),
    "cores_per_socket": (_whole(1, CPUS_MAX), 1),
    "threads_per_core": (_whole(1, CPUS_MAX), 1),
    "core_spec_count": (_whole(0, CPUS_MAX), 0),
    "memory_spec_mib": (_whole(0, MEMORY_MIB_MAX), 0),
    "disk_mib": (_whole(0, MEMORY_MIB_MAX), 0),
    "weight": (_whole(0, _COUNT_MAX), 1),
    "address": (_text, ""),
    "port": (_text, ""),
    "start": (_one_of(NodeStart), NodeStart.UNKNOWN),
    "reason": (_text, ""),
    "gres": (_gres, ()),
}

PARTITION_KEYS: Keys = {
    "name": (_name, REQUIRED),
    "nodes": (_hosts, REQUIRED),
    "default": (_truth, False),
    "default_time_s": (_whole(1, SECONDS_MAX), None),
    "max_time_s": (_whole(1, SECONDS_MAX), None),
    "state": (_one_of(PartitionState), PartitionState.UP),
    "priority_tier": (_whole(0, 65_533), 1),
    "priority_job_factor": (_whole(0, 65_533), 1),
    "over_subscribe": (_one_of(OverSubscribe), OverSubscribe.NO),
    "jobs_per_resource_max": (_whole(1, 32_767), 1),
    "nodes_min": (_whole(0, _COUNT_MAX), 0),
    "nodes_max": (_whole(0, _COUNT_MAX), None),
    "cpus_per_node_max": (_whole(0, _COUNT_MAX), None),
    "cpus_per_socket_max": (_whole(0, _COUNT_MAX), None),
    "memory_per_cpu_mib": _MEMORY,
    "memory_per_node_mib": _MEMORY,
    "memory_per_cpu_mib_max": _MEMORY,
    "memory_per_node_mib_max": _MEMORY,
    "cpus_per_gpu": (_whole(1, CPUS_MAX), None),
    "memory_per_gpu_mib": _MEMORY,
    "grace_time_s": (_whole(0, SECONDS_MAX), 0),
    "preempt_mode": (_text, ""),
    "hidden": (_truth, False),
    "root_only": (_truth, False),
    "exclusive_user": (_truth, False),
    "least_loaded": (_truth, False),
    "needs_reservation": (_truth, False),
    "allow_accounts": (_names, ()),
    "deny_accounts": (_names, ()),
    "allow_qos": (_names, ()),
    "deny_qos": (_names, ()),
    "allow_groups": (_names, ()),
    "alloc_nodes": (_hosts_or_empty, ""),
    "alternate": (_name_or_empty, ""),
    "qos": (_name_or_empty, ""),
}


def defaults_of(keys: Keys) -> dict[str, Any]:
    """Return what the keys stand for that are left out; keys that can't be are left out here."""
    return {key: default for key, (_, default) in keys.items() if default is not REQUIRED}


def cpu_shape(
    *, cpus: int | None, boards: int, sockets: int | None, cores_per_socket: int, threads: int
) -> tuple[int, int]:
    """Return CPUs and sockets of a node, where one of them may be left to the rest.

    Source: slurm.conf(5) CPUs, Sockets. Raises: ValueError when they contradict each other.
    """
    per_socket = cores_per_socket * threads
    if sockets is None:
        whole = cpus is not None and cpus % per_socket == 0
        sockets = cpus // per_socket if cpus is not None and whole else boards
    cores = sockets * cores_per_socket
    fitting = sorted({sockets, cores, cores * threads})
    if cpus is not None and cpus not in fitting:
        words = " or ".join(str(count) for count in fitting)
        raise ValueError(
            f"{cpus} CPUs don't fit sockets, cores and threads; they make {words} CPUs"
        )
    if sockets < boards:
        raise ValueError(f"{boards} boards have {sockets} sockets; each needs one")
    if cores * threads > CPUS_MAX:
        raise ValueError(f"a node has at most {CPUS_MAX} CPUs")
    return (cores * threads if cpus is None else cpus), sockets


def gpu_summary(pools: tuple[GresPool, ...]) -> tuple[str, int]:
    """Return the one kind of a node's GPUs, empty when there are several, and how many.

    Raises: ValueError when there are more than a node may have.
    """
    gpus = [pool for pool in pools if pool.name == "gpu" and pool.count]
    count = sum(pool.count for pool in gpus)
    if count > GPUS_PER_NODE_MAX:
        raise ValueError(f"a node has at most {GPUS_PER_NODE_MAX} GPUs, and these are {count}")
    kinds = sorted({pool.kind for pool in gpus})
    return (kinds[0] if len(kinds) == 1 else ""), count
