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

The keys, with their checks and defaults, are rows of `configkeys.py`. A file with errors is
refused as a whole. What a text means may change from one `PARSER_VERSION` to the next; the log
holds what was meant when it was read.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spur.values.config import (
    ClusterSettings,
    Config,
    ConfigFile,
    GresPool,
    NodeBlock,
    PartitionBlock,
    RequeuePolicy,
    RoleGrant,
)
from spur.values.configchecks import check_nodes, check_partitions, check_roles
from spur.values.configkeys import (
    CLUSTER_KEYS,
    NODE_KEYS,
    PARTITION_KEYS,
    REQUIRED,
    ROLE_KEYS,
    Keys,
    cpu_shape,
    gpu_summary,
)

__all__ = [
    "CONFIG_FILE",
    "PARSER_VERSION",
    "ConfigErrors",
    "Supplement",
    "parse_config",
    "parse_supplement",
]

CONFIG_FILE = "spur.toml"
"""The name that the file must be handed in under."""

PARSER_VERSION = 1


class ConfigErrors(Exception):
    """All that is wrong with a configuration, one sentence each, in the order of the file."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)

    def __reduce__(self) -> tuple[type[ConfigErrors], tuple[tuple[str, ...]]]:
        return (ConfigErrors, (self.sentences,))


_TABLES: Mapping[str, tuple[bool, Keys]] = {
    "cluster": (False, CLUSTER_KEYS),
    "roles": (True, ROLE_KEYS),
    "nodes": (True, NODE_KEYS),
    "partitions": (True, PARTITION_KEYS),
}
"""Each table of the file: whether it is a list of tables, and its keys."""


_SUPPLEMENT: Mapping[str, tuple[bool, Keys]] = {
    "cluster": (False, {"requeue_policy": (CLUSTER_KEYS["requeue_policy"][0], None)}),
    "roles": (True, ROLE_KEYS),
}
"""What of it may stand beside Slurm's files."""


class _Reader:
    """One reading of one text; collects errors with their lines."""

    def __init__(self, file: ConfigFile, tables: Mapping[str, tuple[bool, Keys]]) -> None:
        self._file = file
        self._tables = tables
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
        many, keys = self._tables[table]
        if not many and table not in document and self._needs(keys):
            self.blame(table, 0, "", f"the table [{table}] is missing")
            return []
        found = document.get(table, [] if many else {})
        rows = found if many else [found]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            written = f"[[{table}]]" if many else f"[{table}]"
            self.blame(table, 0, "", f"{table} must be written as {written}")
            return []
        return [self._row(table, number, row, keys) for number, row in enumerate(rows)]

    @staticmethod
    def _needs(keys: Keys) -> bool:
        """Whether a table must be there, since one of its keys must."""
        return any(default is REQUIRED for _, default in keys.values())

    def _row(self, table: str, number: int, row: dict[str, Any], keys: Keys) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key in row:
            if key not in keys:
                self.blame(table, number, key, _unknown(f"{table}.{key}", key, keys))
        for key, (check, default) in keys.items():
            if key not in row:
                if default is REQUIRED:
                    self.blame(table, number, key, f"{table}.{key} is missing")
                values[key] = None if default is REQUIRED else default
                continue
            values[key] = None
            try:
                values[key] = check(row[key])
            except ValueError as error:
                self.blame(table, number, key, f"{table}.{key} is {row[key]!r}: {error}")
        return values


def parse_config(file: ConfigFile) -> Config:
    """Return what the file says. Raises: ConfigErrors with everything that is wrong with it."""
    reader, rows = _read(file, _TABLES)
    check_nodes(reader.blame, rows["nodes"])
    check_partitions(reader.blame, rows["partitions"], rows["nodes"])
    check_roles(reader.blame, rows["roles"])
    nodes = [_node_block(reader, number, row) for number, row in enumerate(rows["nodes"])]
    reader.finish()
    return Config(
        parser_version=PARSER_VERSION,
        settings=ClusterSettings(**rows["cluster"][0]),
        roles=tuple(RoleGrant(**row) for row in rows["roles"]),
        nodes=tuple(block for block in nodes if block is not None),
        partitions=tuple(PartitionBlock(**row, others=()) for row in rows["partitions"]),
        topology=(),
        parameters=(),
    )


class Supplement(NamedTuple):
    """What spur.toml says beside Slurm's files: that for which Slurm has no word."""

    roles: tuple[RoleGrant, ...]
    requeue_policy: RequeuePolicy | None
    """None when it is left out."""


def parse_supplement(file: ConfigFile) -> Supplement:
    """Return what spur.toml adds to slurm.conf.

    Raises: ConfigErrors with everything that is wrong with it, and what slurm.conf must say.
    """
    reader, rows = _read(file, _SUPPLEMENT)
    check_roles(reader.blame, rows["roles"])
    reader.finish()
    roles = tuple(RoleGrant(**row) for row in rows["roles"])
    return Supplement(roles, rows["cluster"][0]["requeue_policy"])


def _read(
    file: ConfigFile, tables: Mapping[str, tuple[bool, Keys]]
) -> tuple[_Reader, dict[str, list[dict[str, Any]]]]:
    """Return the rows of each table, every key checked."""
    try:
        document = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        line, sentence = _syntax_error(str(error), file.text)
        raise ConfigErrors([f"{file.name}:{line}: {sentence}"]) from error
    except RecursionError:
        raise ConfigErrors([f"{file.name}:1: it is nested too deeply"]) from None
    reader = _Reader(file, tables)
    for table in document:
        if table not in tables:
            reader.blame(table, 0, "", _unknown(table, table, tables))
    rows = {table: reader.rows(document, table) for table in tables}
    reader.finish()
    return reader, rows


def _node_block(reader: _Reader, number: int, row: dict[str, Any]) -> NodeBlock | None:
    """Return a row as it is kept, or blame what contradicts and return None."""
    kind, count = row.pop("gpus")
    pools = row.pop("gres")
    if count:
        pools = (GresPool("gpu", kind, count, "", "", ()), *pools)
    try:
        row["gpu_kind"], row["gpus"] = gpu_summary(pools)
    except ValueError as error:
        reader.blame("nodes", number, "gres", str(error))
        return None
    try:
        row["cpus"], row["sockets"] = cpu_shape(
            cpus=row["cpus"],
            boards=row["boards"],
            sockets=row["sockets"],
            cores_per_socket=row["cores_per_socket"],
            threads=row["threads_per_core"],
        )
    except ValueError as error:
        reader.blame("nodes", number, "cpus", str(error))
        return None
    return NodeBlock(**row, gres=pools, others=())


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
