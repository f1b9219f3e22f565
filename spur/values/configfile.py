"""Reading spur.toml: text in, `Config` out, or every error with its line.

    [cluster]
    name = "hall"

    [[nodes]]
    names = "n[1-4]"
    cpus = 64
    memory_mib = 515000
    gpus = "gfx942:8"

    [[partitions]]
    name = "gpu"
    nodes = "n[1-4]"
    default = true

One row of the tables below is one key: how it is checked, and its default. A file with errors is
refused as a whole. What a text means may change from one `PARSER_VERSION` to the next; the log
holds what was meant when it was read.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from spur.values.config import (
    ClusterSettings,
    Config,
    ConfigFile,
    GrantedRole,
    NodeBlock,
    PartitionBlock,
    PartitionState,
    RequeuePolicy,
    RoleGrant,
)
from spur.values.hostlist import HOSTS_MAX, format_hostlist, parse_hostlist
from spur.values.ids import NAME_GRAMMAR, is_name
from spur.values.tres import GPUS_PER_NODE_MAX

__all__ = ["CONFIG_FILE", "PARSER_VERSION", "ConfigErrors", "parse_config"]

CONFIG_FILE = "spur.toml"
"""The name that the file must be handed in under."""

PARSER_VERSION = 1

_UID_MAX = (1 << 32) - 2
_SECONDS_MAX = 1_000_000_000
_MEMORY_MIB_MAX = 1 << 40
_CPUS_MAX = 65_536
_REQUIRED = object()

Check = Callable[[Any], Any]
"""Returns the value as it is kept. Raises ValueError saying what would be right."""

_GPUS = re.compile(r"(?:([A-Za-z0-9._-]{1,64}):)?([0-9]{1,3})\Z")


class ConfigErrors(Exception):
    """All that is wrong with a configuration, one sentence each, in the order of the file."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)

    def __reduce__(self) -> tuple[type[ConfigErrors], tuple[tuple[str, ...]]]:
        return (ConfigErrors, (self.sentences,))


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


def _gpus(value: Any) -> tuple[str, int]:
    match = _GPUS.match(value) if isinstance(value, str) else None
    if match is None or int(match.group(2)) > GPUS_PER_NODE_MAX:
        raise ValueError(f'it takes kind and number up to {GPUS_PER_NODE_MAX}: "gfx942:8"')
    count = int(match.group(2))
    return (match.group(1) or "", count) if count else ("", 0)


def _features(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError('it takes a list such as ["infiniband"]')
    return tuple(sorted({_name(item) for item in value}))


Keys = Mapping[str, tuple[Check, Any]]
"""Key of a table: its check, and its default or `_REQUIRED`."""

_CLUSTER: Keys = {
    "name": (_name, _REQUIRED),
    "min_job_age_s": (_whole(0, _SECONDS_MAX), 300),
    "slurmd_timeout_s": (_whole(1, _SECONDS_MAX), 300),
    "kill_wait_s": (_whole(0, _SECONDS_MAX), 30),
    "requeue_policy": (_one_of(RequeuePolicy), RequeuePolicy.SLURM),
    "array_size_max": (_whole(1, 4_000_001), 1001),
    "job_count_max": (_whole(1, 10_000_000), 1_000_000),
}

_ROLES: Keys = {
    "uid": (_whole(0, _UID_MAX), _REQUIRED),
    "host": (_name_or_empty, ""),
    "role": (_one_of(GrantedRole), _REQUIRED),
}

_NODES: Keys = {
    "names": (_hosts, _REQUIRED),
    "cpus": (_whole(1, _CPUS_MAX), 1),
    "memory_mib": (_whole(1, _MEMORY_MIB_MAX), 1),
    "gpus": (_gpus, ("", 0)),
    "features": (_features, ()),
    "agent": (_name_or_empty, ""),
}

_PARTITIONS: Keys = {
    "name": (_name, _REQUIRED),
    "nodes": (_hosts, _REQUIRED),
    "default": (_truth, False),
    "default_time_s": (_whole(1, _SECONDS_MAX), None),
    "max_time_s": (_whole(1, _SECONDS_MAX), None),
    "state": (_one_of(PartitionState), PartitionState.UP),
}

_TABLES: Mapping[str, tuple[bool, Keys]] = {
    "cluster": (False, _CLUSTER),
    "roles": (True, _ROLES),
    "nodes": (True, _NODES),
    "partitions": (True, _PARTITIONS),
}
"""Each table of the file: whether it is a list of tables, and its keys."""


class _Reader:
    """One reading of one text; collects errors with their lines."""

    def __init__(self, file: ConfigFile) -> None:
        self._file = file
        self._lines = _lines_of(file.text)
        self._errors: list[tuple[int, str]] = []

    def blame(self, table: str, number: int, key: str, sentence: str) -> None:
        """Note an error at the line of a key, or of its table."""
        line = self._lines.get((table, number, key)) or self._lines.get((table, number, ""), 1)
        self._errors.append((line, sentence))

    def finish(self) -> None:
        """Raise ConfigErrors when anything was noted."""
        if self._errors:
            errors = sorted(self._errors)
            raise ConfigErrors([f"{self._file.name}:{line}: {text}" for line, text in errors])

    def rows(self, document: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
        """Return the rows of one table with every key checked or defaulted."""
        many, keys = _TABLES[table]
        if not many and table not in document:
            self.blame(table, 0, "", f"the table [{table}] is missing")
            return []
        found = document.get(table, [] if many else {})
        rows = found if many else [found]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            written = f"[[{table}]]" if many else f"[{table}]"
            self.blame(table, 0, "", f"{table} must be written as {written}")
            return []
        return [self._row(table, number, row, keys) for number, row in enumerate(rows)]

    def _row(self, table: str, number: int, row: dict[str, Any], keys: Keys) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key in row:
            if key not in keys:
                self.blame(table, number, key, _unknown(f"{table}.{key}", key, keys))
        for key, (check, default) in keys.items():
            if key not in row:
                if default is _REQUIRED:
                    self.blame(table, number, key, f"{table}.{key} is missing")
                values[key] = None if default is _REQUIRED else default
                continue
            values[key] = None
            try:
                values[key] = check(row[key])
            except ValueError as error:
                self.blame(table, number, key, f"{table}.{key} is {row[key]!r}: {error}")
        return values


def parse_config(file: ConfigFile) -> Config:
    """Return what the file says. Raises: ConfigErrors with everything that is wrong with it."""
    try:
        document = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        line, sentence = _syntax_error(str(error), file.text)
        raise ConfigErrors([f"{file.name}:{line}: {sentence}"]) from error
    except RecursionError:
        raise ConfigErrors([f"{file.name}:1: it is nested too deeply"]) from None
    reader = _Reader(file)
    for table in document:
        if table not in _TABLES:
            reader.blame(table, 0, "", _unknown(table, table, _TABLES))
    rows = {table: reader.rows(document, table) for table in _TABLES}
    reader.finish()
    _check_nodes(reader, rows["nodes"])
    _check_partitions(reader, rows["partitions"], rows["nodes"])
    _check_roles(reader, rows["roles"])
    reader.finish()
    return Config(
        PARSER_VERSION,
        ClusterSettings(**rows["cluster"][0]),
        tuple(RoleGrant(**row) for row in rows["roles"]),
        tuple(_node_block(row) for row in rows["nodes"]),
        tuple(PartitionBlock(**row) for row in rows["partitions"]),
    )


def _node_block(row: dict[str, Any]) -> NodeBlock:
    kind, count = row["gpus"]
    return NodeBlock(
        names=row["names"],
        cpus=row["cpus"],
        memory_mib=row["memory_mib"],
        gpu_kind=kind,
        gpus=count,
        features=row["features"],
        agent=row["agent"],
    )


def _check_nodes(reader: _Reader, nodes: list[dict[str, Any]]) -> None:
    """Blame names that stand in two rows, and too many of them."""
    seen: set[str] = set()
    for number, row in enumerate(nodes):
        names = parse_hostlist(row["names"])
        twice = seen.intersection(names)
        if twice:
            text = format_hostlist(twice)
            reader.blame("nodes", number, "names", f"nodes {text} are configured twice")
        seen.update(names)
    if len(seen) > HOSTS_MAX:
        reader.blame("nodes", 0, "", f"{len(seen)} nodes are configured; the most is {HOSTS_MAX}")


def _check_partitions(
    reader: _Reader, partitions: list[dict[str, Any]], nodes: list[dict[str, Any]]
) -> None:
    """Blame names that stand twice, unknown nodes, a second default, and times that contradict."""
    known = {name for row in nodes for name in parse_hostlist(row["names"])}
    names: set[str] = set()
    defaults = 0
    for number, row in enumerate(partitions):
        name = row["name"]
        if name in names:
            reader.blame("partitions", number, "name", f"partition {name!r} is configured twice")
        names.add(name)
        unknown = [node for node in parse_hostlist(row["nodes"]) if node not in known]
        if unknown:
            text = format_hostlist(unknown)
            sentence = f"partition {name!r} has nodes that are not configured: {text}"
            reader.blame("partitions", number, "nodes", sentence)
        defaults += row["default"]
        if row["default"] and defaults > 1:
            sentence = f"partition {name!r} is the second default; one partition may be it"
            reader.blame("partitions", number, "default", sentence)
        default_s, max_s = row["default_time_s"], row["max_time_s"]
        if default_s is not None and max_s is not None and default_s > max_s:
            sentence = f"partition {name!r} has a default_time_s above its max_time_s"
            reader.blame("partitions", number, "default_time_s", sentence)


def _check_roles(reader: _Reader, roles: list[dict[str, Any]]) -> None:
    """Blame a second row for the same user and host."""
    seen: set[tuple[int, str]] = set()
    for number, row in enumerate(roles):
        pair = (row["uid"], row["host"])
        if pair in seen:
            sentence = f"uid {pair[0]} has a second role on host {pair[1]!r}"
            reader.blame("roles", number, "uid", sentence)
        seen.add(pair)


def _unknown(what: str, key: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"{what} is not known" + (f"; did you mean {near[0]!r}?" if near else "")


_TOML_PLACE = re.compile(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)\Z", re.S)


def _syntax_error(text: str, document: str) -> tuple[int, str]:
    """Take the line out of tomllib's sentence."""
    match = _TOML_PLACE.match(text)
    if match is None:
        return 1, text
    sentence, line, column = match.groups()
    sentence = sentence[:1].lower() + sentence[1:]
    if line is None:
        return document.count("\n") + 1, f"{sentence} at the end of the file"
    return int(line), f"{sentence} at column {column}"


_HEADER = re.compile(r"\s*\[{1,2}\s*([A-Za-z0-9_-]+)\s*\]{1,2}")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")


def _lines_of(text: str) -> dict[tuple[str, int, str], int]:
    """Return the line of each (table, number of the row, key); key "" is the table's header.

    tomllib does not say where a value stood. A key inside a text of several lines may mislead this
    search, and then an error names a line too early; it is still the right sentence.
    """
    lines: dict[tuple[str, int, str], int] = {}
    counts: dict[str, int] = {}
    table, number = "", 0
    for line_number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = header.group(1)
            number = counts.get(table, 0)
            counts[table] = number + 1
            lines.setdefault((table, number, ""), line_number)
        elif key := _KEY.match(line):
            lines.setdefault((table, number, key.group(1)), line_number)
            if not table:
                lines.setdefault((key.group(1), 0, ""), line_number)
    return lines
