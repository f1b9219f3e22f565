"""What scontrol may set of a partition: words with = as they are typed, and their meaning.

Source: scontrol(1), PARTITIONS - SPECIFICATIONS FOR CREATE AND UPDATE COMMANDS; transcripts of
Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from spur.slurm.confreading import table_of
from spur.slurm.grammar import BOOLEAN
from spur.slurm.parameters_partitions import PARTITION_PARAMETERS
from spur.values.config import PartitionBlock, PartitionState, SlurmParameter
from spur.values.configkeys import PARTITION_KEYS, defaults_of
from spur.values.ids import PartitionName

__all__ = [
    "KEYS",
    "BadPartition",
    "Key",
    "changed_partition",
    "fresh_partition",
    "read_partition",
]


class BadPartition(Exception):
    """A word that scontrol does not take of a partition: the lines in which it says so."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


class Key(NamedTuple):
    """A key that may be set."""

    name: str
    """Of a parameter of slurm.conf, mostly."""
    least: int
    """Of how many letters at least it may be cut short."""
    blame: str = "Invalid input {}"
    """What is said of a value that cannot be: {} is the word as typed, {value} its value."""

    def fits(self, text: str) -> bool:
        """Whether a word may stand for this key."""
        least = min(self.least, len(self.name))
        return len(text) >= least and self.name.lower().startswith(text.lower())


KEYS: tuple[Key, ...] = (
    Key("PartitionName", 2),
    Key("MaxTime", 4),
    Key("DefaultTime", 8),
    Key("MaxCPUsPerNode", 4, "Invalid MaxCPUsPerNode value: {value}"),
    Key("MaxNodes", 4),
    Key("MinNodes", 2),
    Key("Default", 7),
    Key("DisableRootJobs", 1),
    Key("ExclusiveUser", 1),
    Key("Hidden", 1),
    Key("LLN", 1),
    Key("RootOnly", 1),
    Key("ReqResv", 1),
    Key("Shared", 2),
    Key("OverSubscribe", 5),
    Key("OverTimeLimit", 5, "Invalid OverTimeLimit value: {value}"),
    Key("PreemptMode", 3, "Invalid input: {}"),
    Key("PriorityJobFactor", 9, "Invalid PriorityJobFactor value: {value}"),
    Key("PriorityTier", 9, "Invalid PriorityTier value: {value}"),
    Key("State", 2, "Invalid input: {}"),
    Key("Nodes", 1),
    Key("AllowGroups", 6),
    Key("AllowAccounts", 6),
    Key("AllowQos", 6),
    Key("DenyAccounts", 5),
    Key("DenyQos", 5),
    Key("AllocNodes", 6),
    Key("Alternate", 3),
    Key("GraceTime", 5, "Invalid GraceTime value: {value}"),
    Key("DefMemPerCPU", 10, "Invalid DefMemPerCPU value: {value}"),
    Key("DefMemPerNode", 10, "Invalid DefMemPerNode value: {value}"),
    Key("MaxMemPerCPU", 10, "Invalid MaxMemPerCPU value: {value}"),
    Key("MaxMemPerNode", 10, "Invalid MaxMemPerNode value: {value}"),
    Key("JobDefaults", 8),
    Key("TRESBillingWeights", 1),
    Key("QOS", 3),
    Key("CpuBind", 7),
)
"""In the order in which they are looked for."""

_TABLE = table_of(PARTITION_PARAMETERS)

_CPU_BINDS = ("none", "sockets", "ldoms", "cores", "threads")

_ACCEPTABLE = {
    "OverSubscribe": "NO, EXCLUSIVE, YES:#, and FORCE:#",
    "Shared": "NO, EXCLUSIVE, YES:#, and FORCE:#",
    "State": "UP, DOWN, DRAIN and INACTIVE",
}

_EMPTIED = {"Alternate": "", "QOS": "", "DenyAccounts": (), "DenyQos": ()}
"""What a key is set to by an empty value; of others that is no value."""

_ALL = {"AllowGroups": (), "AllowAccounts": (), "AllowQos": (), "AllocNodes": ""}
"""What a key is set to by ALL or nothing."""

_EITHER = {
    "memory_per_cpu_mib": "memory_per_node_mib",
    "memory_per_node_mib": "memory_per_cpu_mib",
    "memory_per_cpu_mib_max": "memory_per_node_mib_max",
    "memory_per_node_mib_max": "memory_per_cpu_mib_max",
}
"""Fields of which one is set at most."""


def _key(text: str) -> Key | None:
    """Return the key that a word begins with: one that is cut short is the first that fits."""
    return next((key for key in KEYS if key.fits(text)), None)


def read_partition(
    pairs: Iterable[tuple[str, str]],
) -> tuple[str, tuple[SlurmParameter, ...]]:
    """Return the partition that is named, and what is to be set, by the keys' full names.

    Raises: BadPartition for a key or a value that is none.
    """
    name, found = "", []
    for word, value in pairs:
        key = _key(word)
        typed = f"{word}={value}"
        if key is None:
            # Slurm's sentence ends with a line break of its own.
            unknown = f"Update of this parameter is not supported: {typed}\n"
            raise BadPartition(unknown, "Request aborted")
        if key.name == "PartitionName":
            name = value
            continue
        try:
            _meaning(key.name, value)
        except ValueError as error:
            raise BadPartition(*_blame(key, typed, value)) from error
        found.append(SlurmParameter(key.name, value))
    return name, tuple(found)


def _blame(key: Key, typed: str, value: str) -> tuple[str, ...]:
    acceptable = _ACCEPTABLE.get(key.name)
    parameter = _TABLE.get(key.name.lower())
    if parameter is not None and parameter.grammar is BOOLEAN:
        acceptable = "YES and NO"
    if acceptable is not None:
        word = "OverSubscribe" if key.name == "Shared" else key.name
        return f"Invalid input: {typed}", f"Acceptable {word} values are {acceptable}"
    return (key.blame.format(typed, value=value),)


def _meaning(name: str, value: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields of a partition that a key sets, and what is kept as it was typed.

    Raises: ValueError.
    """
    if name == "JobDefaults":
        return _job_defaults(value), {}
    if name == "CpuBind":
        return {}, {name: _cpu_bind(value)}
    row = _TABLE[name.lower()]
    if not row.field:
        if value and row.grammar.parse(value) is None and value.upper() != "UNLIMITED":
            raise ValueError(value)
        return {}, {row.name: value}
    if name in _EMPTIED and not value:
        return {row.field: _EMPTIED[name]}, {}
    if name in _ALL and value.upper() in ("ALL", ""):
        return {row.field: _ALL[name]}, {}
    if name == "State":
        return {"state": PartitionState(row.grammar.parse(value))}, {}
    if row.field == "over_subscribe":
        kind, count = row.grammar.parse(value)
        return {"over_subscribe": kind, "jobs_per_resource_max": count}, {}
    parsed = row.grammar.parse(value)
    fields = {row.field: parsed}
    if row.field in _EITHER and parsed is not None:
        fields[_EITHER[row.field]] = None
    return fields, {}


def _job_defaults(value: str) -> dict[str, Any]:
    """Read DefCpuPerGPU=3,DefMemPerGPU=1000; what is not there is taken away."""
    fields: dict[str, Any] = {"cpus_per_gpu": None, "memory_per_gpu_mib": None}
    for part in value.split(",") if value else ():
        key, _, number = part.partition("=")
        row = _TABLE.get(key.strip().lower())
        if row is None or row.field not in fields:
            raise ValueError(part)
        fields[row.field] = row.grammar.parse(number)
    return fields


def _cpu_bind(value: str) -> str:
    word = value.lower()
    found = next((each for each in _CPU_BINDS if word and each.startswith(word)), None)
    if word in ("", "off"):
        return ""
    if found is None:
        raise ValueError(value)
    return found


def fresh_partition(name: str) -> PartitionBlock:
    """Return what a partition is that scontrol creates, before anything is set."""
    fields: dict[str, Any] = dict(defaults_of(PARTITION_KEYS))
    fields |= {
        "name": PartitionName(name),
        "nodes": "",
        "nodes_min": 1,
        "state": PartitionState.UP,
    }
    return PartitionBlock(**fields, others=())


def changed_partition(
    block: PartitionBlock, changes: Iterable[SlurmParameter]
) -> tuple[PartitionBlock, dict[str, Any]]:
    """Return a partition after changes, and the fields that they set.

    What `nodes` says is as it was typed: the caller knows which nodes there are.

    Raises: BadPartition for a key or a value that is none.
    """
    fields: dict[str, Any] = {}
    written = {each.name: each.value for each in block.others}
    for change in changes:
        key = next((key for key in KEYS if key.name == change.name), None)
        try:
            if key is None:
                raise ValueError(change.name)
            found, kept = _meaning(key.name, change.value)
        except ValueError as error:
            raise BadPartition(f"{change.name}={change.value} cannot be") from error
        fields |= found
        written |= kept
    others = tuple(SlurmParameter(name, written[name]) for name in sorted(written) if written[name])
    return replace(block, **fields, others=others), fields
