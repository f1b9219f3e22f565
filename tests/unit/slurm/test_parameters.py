"""The table of parameters: whole, told, and named once."""

from __future__ import annotations

import ast
from pathlib import Path

import spur
from spur.slurm.configfile import PARAMETERS
from spur.slurm.parameters import Section, Verdict
from spur.values.configkeys import CLUSTER_KEYS, NODE_KEYS, PARTITION_KEYS

MANUAL = Path(__file__).parents[2] / "data" / "slurm" / "parameters.txt"
SPUR = Path(spur.__file__).parent


def test_every_parameter_of_the_manual_has_a_row() -> None:
    """A site's file uses any word that the manual has: it is never called unknown."""
    known = {(section, row.name) for section, rows in PARAMETERS.items() for row in rows}
    lines = MANUAL.read_text(encoding="ascii").splitlines()[1:]
    listed = [tuple(line.split()) for line in lines]
    assert len(listed) > 300
    lower = {(section.lower(), name.lower()) for section, name in known}
    missing = [pair for pair in listed if (pair[0].lower(), pair[1].lower()) not in lower]
    assert missing == []


def test_every_row_is_told_and_named_once() -> None:
    """Somebody adds a parameter twice, or without saying what it is."""
    for section, rows in PARAMETERS.items():
        names = [row.name.lower() for row in rows]
        assert len(names) == len(set(names)), section
        assert [row.name for row in rows if not row.doc.endswith(".")] == []


def test_a_field_of_a_row_is_a_field_of_the_configuration() -> None:
    """A row names the field that it becomes: a slip of the pen is found here."""
    special = {
        Section.CLUSTER: {"gres_types"},
        Section.NODE: {"hosts", "addresses", "sockets_per_board"},
        Section.PARTITION: {"priority"},
    }
    keys = {
        Section.CLUSTER: CLUSTER_KEYS,
        Section.NODE: NODE_KEYS,
        Section.PARTITION: PARTITION_KEYS,
    }
    for section, table in keys.items():
        fields = {row.field for row in PARAMETERS[section] if row.field}
        assert fields - set(table) == special[section]


def test_a_secret_is_kept_nowhere() -> None:
    """What is kept goes into the log for ever; a secret has no field and is marked."""
    secrets = [row for row in PARAMETERS[Section.CLUSTER] if row.is_secret]
    assert [row.name for row in secrets] == ["AccountingStoragePass", "JobCompPass"]
    assert all(row.field == "" and row.verdict is Verdict.NOT_YET for row in secrets)


def _fields_read(directory: Path) -> set[str]:
    """Return the fields of blocks and settings that the code of a room reads."""
    found = set()
    for file in directory.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(
                ("block", "level", "settings", "settings_of(state)", "settings_of(self._state)")
            ):
                found.add(node.attr)
    return found


def test_what_is_done_is_called_honoured() -> None:
    """The scheduler learns to obey a parameter: `spur conf check` must not deny it any longer."""
    read = _fields_read(SPUR / "scheduling") | _fields_read(SPUR / "controller")
    assert {"memory_per_cpu_mib", "kill_wait_s", "nodes_max", "weight"} <= read
    behind = [
        f"{section} {row.name}"
        for section in (Section.CLUSTER, Section.NODE, Section.PARTITION)
        for row in PARAMETERS[section]
        if row.field in read and row.verdict is Verdict.NOT_YET
    ]
    assert behind == []
