"""The cluster itself: identity, version, configuration, hosts and roles, and its checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from spur.events.cluster import (
    ClockAccepted,
    ClusterCheckpointed,
    ClusterConfigured,
    ClusterRestored,
    ClusterVersionRaised,
    HostAdded,
    HostRemoved,
    ParameterSet,
)
from spur.projections.apply import At, applies
from spur.projections.counters import JOB_ID_COUNTER, counter, raise_counter
from spur.projections.digest import digest_version, state_digest
from spur.projections.nodes import NodeBlockRow, configure_nodes
from spur.projections.partitions import PartitionRow, configure_partitions
from spur.projections.tables import Row, replace_rows
from spur.values.config import (
    ClusterSettings,
    Config,
    ConfigChange,
    GrantedRole,
    RoleGrant,
    SlurmParameter,
    TopologyUnit,
)
from spur.values.errors import InvariantBroken
from spur.values.ids import HostId

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "RESTORE_JOB_ID_STEP",
    "ClusterRow",
    "ConfigRow",
    "HostRow",
    "RoleKey",
    "RoleRow",
    "config_of",
    "newborn",
    "parameter_of",
    "scheduler_parameters",
    "settings_of",
]

RESTORE_JOB_ID_STEP = 1_000_000
"""How far a restore moves the job counter on, past ids that the lost part may have given out.
Source: LOG-CONTRACT 1.8."""


class ClusterRow(Row, frozen=True):
    """The one row of what the cluster is; its key is 1."""

    cluster_id: bytes
    incarnation: int
    version: int
    """Newest version of events that may be written (LOG-CONTRACT 1.4)."""
    checkpoint_index: int
    """The entry of the last checkpoint; 0 before the first."""
    clock_accepted_ns: int
    """Stamp of the last clock that was vouched for; 0 when none was."""


class ConfigRow(Row, frozen=True):
    """The configuration but its nodes, partitions and roles; its key is 1."""

    parser_version: int
    settings: ClusterSettings
    topology: tuple[TopologyUnit, ...]
    parameters: tuple[SlurmParameter, ...]
    configured_ns: int
    index: int
    """The entry that it came with."""
    uid: int
    """Who handed it in."""
    changes: tuple[ConfigChange, ...]
    """What was different from the configuration before."""


class HostRow(Row, frozen=True):
    """A host that may have a certificate; its key is its id."""

    name: str
    role: str
    key: bytes = b""
    """SHA-256 of its public key; empty while its certificate was issued on a controller's host."""
    certified_ns: int = 0
    """When it was last given a certificate over the network; 0 for never."""
    ends_ns: int = 0
    """When that certificate ends."""


RoleKey = tuple[int, str]
"""uid, and the host's name; an empty name stands for controller and admin hosts."""


class RoleRow(Row, frozen=True):
    """More than a user's host alone vouches for."""

    role: GrantedRole


B = TypeVar("B", NodeBlockRow, PartitionRow)


def newborn(cluster_id: bytes, incarnation: int) -> ClusterRow:
    """Return what a cluster is before its first entry."""
    return ClusterRow(
        cluster_id=cluster_id,
        incarnation=incarnation,
        version=1,
        checkpoint_index=0,
        clock_accepted_ns=0,
    )


def settings_of(state: State) -> ClusterSettings:
    """Return the cluster's settings. Raises: KeyError before the first configuration."""
    return state.config[1].settings


def parameter_of(state: State, name: str) -> str:
    """Return a parameter of slurm.conf that has no field, as written; empty when it is not there.

    Raises: KeyError before the first configuration.
    """
    for parameter in state.config[1].parameters:
        if parameter.name == name:
            return parameter.value
    return ""


def scheduler_parameters(state: State) -> dict[str, str]:
    """Return the words of SchedulerParameters in small letters, with what stands behind their =.

    Raises: KeyError before the first configuration.
    """
    words = parameter_of(state, "SchedulerParameters").lower().split(",")
    pairs = (word.strip().partition("=") for word in words)
    return {name: value for name, _, value in pairs if name}


def config_of(state: State) -> Config | None:
    """Return the present configuration as one value; None before the first."""
    row = state.config.get(1)
    if row is None:
        return None
    return Config(
        parser_version=row.parser_version,
        settings=row.settings,
        roles=tuple(
            RoleGrant(uid, host, state.roles[uid, host].role)
            for uid, host in state.roles.sorted_keys()
        ),
        nodes=tuple(row.block for row in _by_number(state.node_blocks.rows.values())),
        partitions=tuple(row.block for row in _by_number(state.partitions.rows.values())),
        topology=row.topology,
        parameters=row.parameters,
    )


def _by_number(rows: Iterable[B]) -> list[B]:
    """Return configured rows in the order of the file."""
    return sorted(rows, key=lambda row: row.number)


@applies(ClusterConfigured)
def apply_cluster_configured(state: State, at: At, event: ClusterConfigured) -> None:
    """Replace the configuration; what it does not mention keeps its present state."""
    row = ConfigRow(
        parser_version=event.parser_version,
        settings=event.settings,
        topology=event.topology,
        parameters=event.parameters,
        configured_ns=at.time_ns,
        index=at.index,
        uid=at.actor.uid,
        changes=event.changes,
    )
    state.config.put(1, row)
    before_first = event.settings.first_job_id - 1
    if before_first > counter(state, JOB_ID_COUNTER):
        raise_counter(state, JOB_ID_COUNTER, before_first)
    roles = {(grant.uid, grant.host): RoleRow(grant.role) for grant in event.roles}
    replace_rows(state.roles, roles)
    configure_nodes(state, event.nodes)
    configure_partitions(state, event.partitions)


@applies(ParameterSet)
def apply_parameter_set(state: State, at: At, event: ParameterSet) -> None:
    """Keep the parameter beside those of the files."""
    row = state.config[1]
    kept = {each.name: each.value for each in row.parameters}
    kept[event.name] = event.value
    parameters = tuple(SlurmParameter(name, kept[name]) for name in sorted(kept) if kept[name])
    state.config.put(1, replace(row, parameters=parameters))


@applies(ClusterVersionRaised)
def apply_cluster_version(state: State, at: At, event: ClusterVersionRaised) -> None:
    """Let events of a newer version be written."""
    row = state.cluster[1]
    if event.version <= row.version:
        raise ValueError(f"the cluster is at version {row.version} already")
    state.cluster.put(1, replace(row, version=event.version))


@applies(ClusterCheckpointed)
def apply_cluster_checkpoint(state: State, at: At, event: ClusterCheckpointed) -> None:
    """Compare this state with the leader's; raise when they differ."""
    if event.index != state.index or event.chain != state.chain:
        raise InvariantBroken(
            f"the checkpoint is of entry {event.index} with chain {event.chain.hex()}; "
            f"here is entry {state.index} with chain {state.chain.hex()}"
        )
    if event.version == digest_version(state) and event.digest != state_digest(state):
        raise InvariantBroken(
            f"the state after entry {state.index} differs from the leader's: "
            f"digest {state_digest(state).hex()}, not {event.digest.hex()}"
        )
    state.cluster.put(1, replace(state.cluster[1], checkpoint_index=at.index))


@applies(ClusterRestored)
def apply_cluster_restored(state: State, at: At, event: ClusterRestored) -> None:
    """Begin a new incarnation, with job ids that the lost part cannot have given out."""
    row = state.cluster[1]
    if event.incarnation <= row.incarnation:
        raise ValueError(f"the cluster is at incarnation {row.incarnation} already")
    if event.fork_index != state.index or event.fork_chain != state.chain:
        raise ValueError(f"the fork is at entry {event.fork_index}; here is {state.index}")
    state.cluster.put(1, replace(row, incarnation=event.incarnation))
    newest = counter(state, JOB_ID_COUNTER)
    raise_counter(state, JOB_ID_COUNTER, newest + RESTORE_JOB_ID_STEP)


@applies(ClockAccepted)
def apply_clock_accepted(state: State, at: At, event: ClockAccepted) -> None:
    """Remember that this stamp was vouched for by a person."""
    state.cluster.put(1, replace(state.cluster[1], clock_accepted_ns=at.time_ns))


@applies(HostAdded)
def apply_host_added(state: State, at: At, event: HostAdded) -> None:
    """Give the host the index of its entry as id; it is never used twice."""
    host_id = HostId(at.index)
    if host_id in state.hosts:
        raise ValueError("an entry adds one host")
    state.hosts.put(host_id, HostRow(event.name, event.role))


@applies(HostRemoved)
def apply_host_removed(state: State, at: At, event: HostRemoved) -> None:
    """Forget the host."""
    state.hosts.delete(event.host_id)
