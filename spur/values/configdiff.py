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
            former = _value(old_settings[key]) if key in old_settings else ""
            changes.append(ConfigChange(f"cluster.{key}", former, _value(value)))
    old_rows, new_rows = {} if before is None else _rows(before), _rows(after)
    for name in sorted(old_rows.keys() | new_rows.keys()):
        old, new = old_rows.get(name), new_rows.get(name)
        if old != new:
            table, what = name
            left = None if old is None or new is None else _differing(old, new)
            changes.append(ConfigChange(f"{table} {what}", _shown(old, left), _shown(new, left)))
    return tuple(changes)


def _rows(config: Config) -> dict[tuple[str, str], Any]:
    """Return every row of every list by its table and name."""
    lists: list[tuple[str, Callable[[Any], str], Sequence[Any]]] = [
        ("roles", lambda row: f"uid {row.uid} host {row.host or 'any'}", config.roles),
        ("nodes", lambda row: row.names, config.nodes),
        ("partitions", lambda row: row.name, config.partitions),
        ("topology", lambda row: f"{row.kind} {row.name}", config.topology),
        ("parameters", lambda row: row.name, config.parameters),
    ]
    return {(table, name_of(row)): row for table, name_of, rows in lists for row in rows}


def _differing(old: msgspec.Struct, new: msgspec.Struct) -> frozenset[str]:
    """Return the fields that two rows of one kind differ in."""
    return frozenset(key for key in old.__struct_fields__ if getattr(old, key) != getattr(new, key))


def _shown(row: msgspec.Struct | None, fields: frozenset[str] | None) -> str:
    """Return a row as people read it: key=value on one line, what is not set left out.

    Of a row that has changed, `fields` are shown alone, set or not.
    """
    if row is None:
        return ""
    pairs = msgspec.structs.asdict(row).items()
    return " ".join(
        f"{key}={_value(value)}"
        for key, value in pairs
        if (key in fields if fields is not None else value not in (None, "", ()))
    )


def _value(value: Any) -> str:
    """Return one field as people read it."""
    if isinstance(value, tuple):
        return ",".join(_value(item) for item in value) or "none"
    if isinstance(value, msgspec.Struct):
        shown = (_value(field) for field in msgspec.structs.astuple(value) if field not in ("", ()))
        return ":".join(shown)
    return "none" if value is None or value == "" else str(value)
