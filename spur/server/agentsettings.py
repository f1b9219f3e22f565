"""What an agent is told outside the log: whom it serves, where controllers are, what it has.

The file is `spurd.toml` in the agent's directory; an unknown key is an error that names the nearest
known one. Credentials lie in `tls` beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from spur.client.address import parse_address, parse_tcp_address
from spur.server.settings import check_settings, read_settings
from spur.values.errors import OperatorFault
from spur.values.ids import NAME_GRAMMAR, is_name
from spur.wire.calls import CLUSTER_ID_SIZE

__all__ = [
    "RANGES",
    "SETTINGS_FILE",
    "TLS_DIRECTORY",
    "Settings",
    "check_agent_settings",
    "load_settings",
]

SETTINGS_FILE = "spurd.toml"
TLS_DIRECTORY = "tls"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one agent; all take effect at its start."""

    cluster_id: str
    """Id of the cluster, 32 hex digits: no other is spoken with."""
    controllers: tuple[str, ...]
    """host:port of controllers' calls, or unix:/path of one on this host. Others that these tell
    of are kept in the file `controllers` beside this one, and asked first."""
    nodes: tuple[str, ...] = ()
    """Names of the nodes that it serves; with none it only passes commands on."""
    address: str = ""
    """host:port that streams of steps are brought to; empty takes none."""
    socket: str = "spurd.sock"
    """Unix socket for commands on this host, in the agent's directory unless absolute."""
    spool: str = "spool"
    """Directory of what runs, in the agent's directory unless absolute."""
    slurm_conf: str = ""
    """Path of slurm.conf on this host, for the environment of jobs."""
    own_host_names: bool = False
    """Whether each node has a host name of its own, in a UTS namespace; takes root."""
    cpus: int = 0
    """Logical CPUs of each node; 0 is what the machine has."""
    memory_mib: int = 0
    """Memory of each node; 0 is what the machine has."""
    gpu_kind: str = ""
    """Kind of each node's GPUs."""
    gpus: int = 0
    """GPUs of each node."""
    attend_ms: int = 5000
    """How long a controller may wait for orders before it says that there are none."""
    disk_mark_mib: int = 64
    """Free space of the spool below which nothing is launched."""
    boot_id_file: str = "/proc/sys/kernel/random/boot_id"
    """Where the machine says which boot this is; another file shows what a boot does."""


RANGES = {
    "cpus": (0, 1 << 20),
    "memory_mib": (0, 1 << 40),
    "gpus": (0, 64),
    "attend_ms": (100, 60_000),
    "disk_mark_mib": (0, 1 << 40),
}
"""Least and greatest value of each number."""


def load_settings(directory: Path) -> Settings:
    """Read an agent's settings.

    Raises: OperatorFault that names the file, the key and what would be right.
    """
    path = directory / SETTINGS_FILE
    settings = read_settings(
        path,
        Settings,
        RANGES,
        missing=f"{directory} holds no agent (it has no {SETTINGS_FILE}); make one with"
        " `spurctld issue`",
    )
    try:
        _check(settings)
    except ValueError as error:
        raise OperatorFault(f"{path}: {error}; nothing was started") from error
    return settings


def check_agent_settings(chosen: Mapping[str, object]) -> None:
    """See that an agent can be set up with these keys. Raises: ValueError that names one."""
    for key in _GIVEN:
        if key in chosen:
            raise ValueError(f"{key!r} is no key to choose: it follows from how the host is set up")
    _check(check_settings({**_GIVEN, **chosen}, Settings, RANGES))


_GIVEN: Mapping[str, object] = MappingProxyType(
    {
        "cluster_id": "0" * 2 * CLUSTER_ID_SIZE,
        "controllers": ("unix:/",),
        "nodes": (),
        "address": "",
    }
)
"""Keys that are found out or have an option of their own, with values that are right."""


def _check(settings: Settings) -> None:
    """See what types and ranges do not say. Raises: ValueError."""
    if len(bytes.fromhex(settings.cluster_id)) != CLUSTER_ID_SIZE:
        raise ValueError(f"cluster_id {settings.cluster_id!r} is not 32 hex digits")
    if not settings.controllers:
        raise ValueError("controllers names none; give at least one address")
    for address in settings.controllers:
        parse_address(address)
    if settings.address:
        parse_tcp_address(settings.address)
    for node in settings.nodes:
        if not is_name(node):
            raise ValueError(f"{node!r} is no node name: it takes {NAME_GRAMMAR}")
    if len(set(settings.nodes)) != len(settings.nodes):
        raise ValueError("nodes names one twice")
