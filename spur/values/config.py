"""Configuration as values: what `reconfigure` parses, the log holds, and the state is made of.

No field has a default here, since events hold these; defaults stand in `configfile.py`, once.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from spur.values.ids import PartitionName

__all__ = [
    "ClusterSettings",
    "Config",
    "ConfigChange",
    "ConfigFile",
    "GrantedRole",
    "NodeBlock",
    "PartitionBlock",
    "PartitionState",
    "RequeuePolicy",
    "RoleGrant",
]


class RequeuePolicy(StrEnum):
    """When a cut-off node's requeueable jobs go back into the queue (LOG-CONTRACT 7.7)."""

    SLURM = "slurm"
    """At once, when SlurmdTimeout has passed; the former run is recorded as unfenced."""
    CONFIRMED = "confirmed"
    """After the node reports the attempt dead, reboots, or is fenced."""


class PartitionState(StrEnum):
    """Source: scontrol(1) update PartitionName State."""

    UP = "UP"
    DOWN = "DOWN"
    """Jobs queue and do not start."""
    DRAIN = "DRAIN"
    """No new jobs; those queued start."""
    INACTIVE = "INACTIVE"
    """No new jobs, and none starts."""


class GrantedRole(StrEnum):
    """A role that configuration gives to a user."""

    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


class ClusterSettings(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """The table [cluster]."""

    name: str
    min_job_age_s: int
    """How long an ended job stays in memory. Source: slurm.conf(5) MinJobAge."""
    slurmd_timeout_s: int
    """How long an agent may be silent. Source: slurm.conf(5) SlurmdTimeout."""
    kill_wait_s: int
    """Between SIGTERM and SIGKILL at a time limit. Source: slurm.conf(5) KillWait."""
    requeue_policy: RequeuePolicy
    array_size_max: int
    """One more than the highest task index. Source: slurm.conf(5) MaxArraySize."""
    job_count_max: int
    """Jobs and array tasks in memory. Source: slurm.conf(5) MaxJobCount."""


class RoleGrant(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One row of [[roles]]: what a user may be, from which host (LOG-CONTRACT 6.1)."""

    uid: int
    host: str
    """Name of the host that may vouch for it; empty for any but compute hosts."""
    role: GrantedRole


class NodeBlock(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One row of [[nodes]]: nodes that are alike."""

    names: str
    """A host list."""
    cpus: int
    memory_mib: int
    gpu_kind: str
    """Such as "gfx942"; empty when there is none."""
    gpus: int
    """Devices of each node."""
    features: tuple[str, ...]
    agent: str
    """Name of the host whose agent serves all of them; empty when each node is its own host."""


class PartitionBlock(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """One row of [[partitions]]."""

    name: PartitionName
    nodes: str
    """A host list of configured nodes."""
    default: bool
    """Whether a job that names no partition goes here."""
    default_time_s: int | None
    """Time limit of a job that names none; None is `max_time_s`."""
    max_time_s: int | None
    """None is no limit."""
    state: PartitionState


class Config(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """All that the files say."""

    parser_version: int
    settings: ClusterSettings
    roles: tuple[RoleGrant, ...]
    nodes: tuple[NodeBlock, ...]
    partitions: tuple[PartitionBlock, ...]


class ConfigChange(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """One difference between two configurations, as people read it."""

    what: str
    """Such as "cluster.min_job_age_s" or "nodes n[1-4]"."""
    before: str
    """Empty when it is new."""
    after: str
    """Empty when it is gone."""


class ConfigFile(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A file as it is handed in; it goes over the wire, never into the log."""

    name: str
    text: str
