"""What a controller is told outside the log: directory, addresses, timers, disk marks.

None of it may change what is decided (LOG-CONTRACT 6.2). The file is `spurctld.toml` in the
controller's directory; an unknown key is an error that names the nearest known one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from spur.server.settings import check_settings, read_settings
from spur.values.errors import OperatorFault

__all__ = ["RANGES", "SETTINGS_FILE", "Settings", "check_controller_settings", "load_settings"]

SETTINGS_FILE = "spurctld.toml"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one controller; all take effect at its start."""

    node_id: int
    """Id of this controller in the membership of the cluster."""
    rpc_address: str
    """host:port that clients and agents reach with TLS."""
    raft_address: str
    """host:port that the other controllers reach with TLS."""
    socket: str = "spurctld.sock"
    """Unix socket for commands on this host, in the controller's directory unless absolute."""
    tick_ms: int = 30
    """Length of a tick: a heartbeat; an election times out after 10 to 20 of them."""
    clock_offset_ms: int = 0
    """Added to this machine's wall clock: shows what a wrong clock does, without setting one."""
    clock_offset_file: str = ""
    """A test aid: a file of 8 bytes whose nanoseconds are added as well, read each time, so that a
    clock can be stepped under a controller that runs. Empty for none."""
    snapshot_entries: int = 100_000
    """Entries after which another snapshot is written."""
    certificate_life_s: int = 365 * 86_400
    """How long the certificates hold that it gives to hosts, and its own; each is renewed two
    thirds into its life."""
    disk_first_mark_mib: int = 1024
    """Free space below which submits and reconfigurations are refused."""
    disk_second_mark_mib: int = 256
    """Free space below which this controller stops acknowledging."""


RANGES = {
    "node_id": (1, 1 << 62),
    "tick_ms": (5, 10_000),
    "clock_offset_ms": (-(1 << 42), 1 << 42),
    "snapshot_entries": (100, 1 << 40),
    "certificate_life_s": (3, 3650 * 86_400),
    "disk_first_mark_mib": (0, 1 << 40),
    "disk_second_mark_mib": (0, 1 << 40),
}
"""Least and greatest value of each number."""


def load_settings(directory: Path) -> Settings:
    """Read a controller's settings.

    Raises: OperatorFault that names the file, the key and what would be right.
    """
    path = directory / SETTINGS_FILE
    settings = read_settings(
        path,
        Settings,
        RANGES,
        missing=f"{directory} holds no controller (it has no {SETTINGS_FILE}); make one with"
        " `spurctld create`",
    )
    try:
        _check(settings)
    except ValueError as error:
        raise OperatorFault(f"{path}: {error}; nothing was started") from error
    return settings


def check_controller_settings(chosen: Mapping[str, object]) -> None:
    """See that a controller can be set up with these keys. Raises: ValueError that names one."""
    for key in _GIVEN:
        if key in chosen:
            raise ValueError(f"{key!r} is no key to choose: it follows from how the host is set up")
    _check(check_settings({**_GIVEN, **chosen}, Settings, RANGES))


_GIVEN: Mapping[str, object] = MappingProxyType(
    {"node_id": 1, "rpc_address": "", "raft_address": ""}
)
"""Keys that are found out or have an option of their own, with values that are right."""


def _check(settings: Settings) -> None:
    """See what types and ranges do not say. Raises: ValueError."""
    if settings.disk_second_mark_mib > settings.disk_first_mark_mib:
        raise ValueError(
            f"disk_second_mark_mib is {settings.disk_second_mark_mib}, above"
            f" disk_first_mark_mib {settings.disk_first_mark_mib}; the second mark is the lower"
            " one"
        )
