"""What differs between two configurations, as people read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from spur.values.config import Config, ConfigChange

__all__ = ["compare_configs"]


def compare_configs(before: Config | None, after: Config) -> tuple[ConfigChange, ...]:
    """Return what differs, the cluster's settings first; None stands for no configuration."""
    changes: list[ConfigChange] = []
    old_settings = {} if before is None else msgspec.structs.asdict(before.settings)
    for key, value in msgspec.structs.asdict(after.settings).items():
        if key not in old_settings or old_settings[key] != value:
            former = str(old_settings[key]) if key in old_settings else ""
            changes.append(ConfigChange(f"cluster.{key}", former, str(value)))
    lists: list[tuple[str, Callable[[Any], str], Sequence[Any], Sequence[Any]]] = [
        (
            "roles",
            lambda row: f"uid {row.uid} host {row.host or 'any'}",
            () if before is None else before.roles,
            after.roles,
        ),
        ("nodes", lambda row: row.names, () if before is None else before.nodes, after.nodes),
        (
            "partitions",
            lambda row: row.name,
            () if before is None else before.partitions,
            after.partitions,
        ),
    ]
    for table, name_of, old_rows, new_rows in lists:
        old = {name_of(row): row for row in old_rows}
        new = {name_of(row): row for row in new_rows}
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                changes.append(
                    ConfigChange(f"{table} {name}", _shown(old.get(name)), _shown(new.get(name)))
                )
    return tuple(changes)


def _shown(row: msgspec.Struct | None) -> str:
    """Return a row as people read it: key=value, all on one line."""
    if row is None:
        return ""
    return " ".join(f"{key}={value}" for key, value in msgspec.structs.asdict(row).items())
