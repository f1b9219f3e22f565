"""What happens to the cluster as a whole: its configuration, version, hosts, and its own checks."""

from __future__ import annotations

from spur.events.declare import Event, event
from spur.values.config import (
    ClusterSettings,
    ConfigChange,
    NodeBlock,
    PartitionBlock,
    RoleGrant,
    SlurmParameter,
    TopologyUnit,
)
from spur.values.ids import HostId

__all__ = [
    "ClockAccepted",
    "ClusterCheckpointed",
    "ClusterConfigured",
    "ClusterRestored",
    "ClusterVersionRaised",
    "HostAdded",
    "HostRemoved",
    "ParameterSet",
]


@event("cluster.configured")
class ClusterConfigured(Event, frozen=True):
    """New configuration files were taken, as a whole (LOG-CONTRACT 6.2)."""

    parser_version: int
    settings: ClusterSettings
    roles: tuple[RoleGrant, ...]
    nodes: tuple[NodeBlock, ...]
    partitions: tuple[PartitionBlock, ...]
    topology: tuple[TopologyUnit, ...]
    parameters: tuple[SlurmParameter, ...]
    changes: tuple[ConfigChange, ...]
    """What differs from the configuration before, for people."""


@event("cluster.version")
class ClusterVersionRaised(Event, frozen=True):
    """Every member can read events of this version, so they may be written (LOG-CONTRACT 1.4)."""

    version: int


@event("cluster.checkpoint")
class ClusterCheckpointed(Event, frozen=True):
    """What the leader's state was; who differs stops (LOG-CONTRACT 5.8)."""

    index: int
    """The entry before this one."""
    chain: bytes
    digest: bytes
    version: int
    """Names the shapes of all tables; a digest over other shapes is not compared."""


@event("cluster.restored")
class ClusterRestored(Event, frozen=True):
    """The log goes on from a backup or a minority: what was behind the fork is not in it."""

    incarnation: int
    fork_index: int
    """The last entry that this history shares with the former."""
    fork_chain: bytes
    why: str


@event("cluster.clock-accepted")
class ClockAccepted(Event, frozen=True):
    """An administrator vouched for a clock that stepped (LOG-CONTRACT 4.1)."""

    before_ns: int
    """The last stamp before; the entry's own stamp is the first after."""


@event("host.added")
class HostAdded(Event, frozen=True):
    """A host may have a certificate; its id is the index of this entry."""

    name: str
    role: str
    """controller | admin | login | compute."""


@event("host.removed")
class HostRemoved(Event, frozen=True):
    """A host's certificate vouches for nothing any more."""

    host_id: HostId


@event("cluster.parameter-set")
class ParameterSet(Event, frozen=True):
    """An administrator set a parameter, until the next configuration."""

    name: str
    """In the manual's spelling."""
    value: str
    """As it would be written; empty takes it away."""
