"""Requests about the cluster as a whole, and what is answered."""

from __future__ import annotations

import msgspec

from spur.values.config import (
    ClusterSettings,
    ConfigChange,
    ConfigFile,
    RoleGrant,
    SlurmParameter,
    TopologyUnit,
)
from spur.values.ids import HostId
from spur.wire.declare import Answer, Request, answer, request

__all__ = [
    "AcceptClock",
    "AddHost",
    "Checkpoint",
    "ClusterInfo",
    "ConfigInfo",
    "Configured",
    "HostAdded",
    "HostInfo",
    "ProcessInfo",
    "RaiseVersion",
    "Reconfigure",
    "RecordRestore",
    "RemoveHost",
    "ReplicaInfo",
    "SetParameter",
    "ShowCluster",
    "ShowConfig",
    "ShowReplica",
    "Tick",
]


@request
class Tick(Request, frozen=True, tag="clock.tick"):
    """Turn what has fallen due into events; the cluster asks this of itself."""


@request
class AcceptClock(Request, frozen=True, tag="clock.accept"):
    """Vouch for the controller's clock after it stepped (LOG-CONTRACT 4.1)."""


@request
class Checkpoint(Request, frozen=True, tag="cluster.checkpoint"):
    """Put the state's digest into the log; the cluster asks this of itself."""


@request
class RaiseVersion(Request, frozen=True, tag="cluster.raise-version"):
    """Let events of a newer version be written; the cluster asks this of itself."""

    version: int


@request
class RecordRestore(Request, frozen=True, tag="cluster.record-restore"):
    """Begin a new incarnation after a restore; the cluster asks this of itself."""

    incarnation: int
    why: str


@request
class Reconfigure(Request, frozen=True, tag="cluster.reconfigure"):
    """Take new configuration files, as a whole or not at all."""

    files: tuple[ConfigFile, ...]
    """Either spur.toml alone, or slurm.conf first and then what belongs to it: gres.conf,
    topology.conf, included files under the names of their Include lines, and a spur.toml that says
    what Slurm has no word for."""


@answer
class Configured(Answer, frozen=True, tag="configured"):
    """The files are in force."""

    changes: int
    """How many differences there were; 0 when nothing had to be done."""
    index: int
    """The entry that took them, or the one that took what is in force already."""


@request
class SetParameter(Request, frozen=True, tag="cluster.set-parameter"):
    """Set a parameter of slurm.conf until the next configuration. Source: scontrol(1) setdebug."""

    name: str
    """SlurmctldDebug, DebugFlags or FairShareDampeningFactor."""
    value: str


@request
class ShowConfig(Request, frozen=True, tag="cluster.show-config"):
    """Ask for the configuration that is in force, and what its last change was."""


@answer
class ConfigInfo(Answer, frozen=True, tag="cluster.config"):
    """The configuration but its nodes and partitions, which have rows of their own."""

    index: int
    """The entry that took it; 0 before the first."""
    configured_ns: int
    uid: int
    """Who handed it in."""
    changes: tuple[ConfigChange, ...]
    """What was different from the configuration before."""
    settings: ClusterSettings | None
    """None before the first configuration."""
    topology: tuple[TopologyUnit, ...]
    parameters: tuple[SlurmParameter, ...]
    next_job_id: int = 0
    """What the next job gets."""
    node_count: int = 0


@request
class AddHost(Request, frozen=True, tag="host.add"):
    """Let a host have a certificate."""

    name: str
    role: str
    """controller | admin | login | compute."""
    key: bytes = b""
    """SHA-256 of the public key that its certificate is for; empty when none is issued yet."""
    ends_ns: int = 0
    """When that certificate ends."""


@answer
class HostAdded(Answer, frozen=True, tag="host.added"):
    """The host's id, for its certificate."""

    host_id: HostId


@request
class RemoveHost(Request, frozen=True, tag="host.remove"):
    """Let a host's certificate vouch for nothing any more."""

    name: str


@request
class ShowCluster(Request, frozen=True, tag="cluster.show"):
    """Ask what the cluster is and how it is configured."""


class HostInfo(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A host, as people are shown it."""

    host_id: HostId
    name: str
    role: str
    ends_ns: int = 0
    """When its newest certificate ends; 0 for one of which the cluster was not told."""


@answer
class ClusterInfo(Answer, frozen=True, tag="cluster.info"):
    """What the cluster is."""

    cluster_id: bytes
    incarnation: int
    version: int
    index: int
    checkpoint_index: int
    clock_accepted_ns: int
    settings: ClusterSettings | None
    """None before the first configuration."""
    roles: tuple[RoleGrant, ...]
    hosts: tuple[HostInfo, ...]


@request
class ShowReplica(Request, frozen=True, tag="replica.show"):
    """Ask the controller that is called what it knows of itself, quorum or not."""


class ProcessInfo(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A process of a controller."""

    name: str
    """front, scheduler, projector, snapshotter."""
    pid: int
    """0 while it is down."""
    reached: int
    """The entry up to which it has taken in the log, as far as known."""
    starts: int
    """How often it was started since the front was."""


@answer
class ReplicaInfo(Answer, frozen=True, tag="replica.info"):
    """One controller, as it sees itself at this moment."""

    node_id: int
    leads: bool
    leader: int
    """Id of the controller that leads as far as this one knows; 0 for nobody."""
    term: int
    last: int
    """Last index of its log."""
    commit: int
    recorded: int
    """Last index in its ledger."""
    history_from: int
    """First index from which on its ledger is whole."""
    snapshot_index: int
    """Index of its newest snapshot; 0 for none."""
    erased_to: int
    """What entries up to here erased is gone from its blobs, WAL and snapshots; 0 until a snapshot
    has been written since its start (LOG-CONTRACT 2.4)."""
    stall_ns_max: int
    """Longest time in the last minute that its loop was busy with one thing."""
    processes: tuple[ProcessInfo, ...] = ()
    """The front and what follows it."""
    authority: bytes = b""
    """SHA-256 of the certificate of the cluster's authority."""
    certified_until_ns: int = 0
    """When this controller's certificate ends, unless it is renewed."""
