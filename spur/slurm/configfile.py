"""Reading slurm.conf, gres.conf and topology.conf as they are: texts in, `Config` out.

The first file handed in is slurm.conf, whatever it is called. gres.conf and topology.conf are known
by their names, and so is spur.toml, which says what Slurm has no word for. Every other file
is there to be included, under the name that the Include line gives it: nothing here reads a disk.

Files with errors are refused as a whole, with every error and its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spur.slurm.confgres import read_gres
from spur.slurm.conflines import Line, Pair, Place, includes_of, read_lines
from spur.slurm.confnodes import PlacedBlock, build_nodes
from spur.slurm.confpartitions import build_partitions, build_topology
from spur.slurm.confreading import Finding, Reading, Row, table_of
from spur.slurm.parameters import Parameter, Section
from spur.slurm.parameters_cluster import CLUSTER_PARAMETERS
from spur.slurm.parameters_nodes import (
    DOWN_PARAMETERS,
    GRES_PARAMETERS,
    NODE_PARAMETERS,
    NODE_SET_PARAMETERS,
)
from spur.slurm.parameters_partitions import PARTITION_PARAMETERS, TOPOLOGY_PARAMETERS
from spur.values.config import ClusterSettings, Config, ConfigFile, ControllerHost, SlurmParameter
from spur.values.configchecks import check_nodes
from spur.values.configfile import (
    CONFIG_FILE,
    PARSER_VERSION,
    ConfigErrors,
    Supplement,
    parse_supplement,
)
from spur.values.configkeys import CLUSTER_KEYS, defaults_of

__all__ = [
    "GRES_FILE",
    "PARAMETERS",
    "SLURM_FILE",
    "TOPOLOGY_FILE",
    "Checked",
    "check_slurm_config",
    "includes_of",
    "parse_slurm_config",
]

SLURM_FILE = "slurm.conf"
GRES_FILE = "gres.conf"
TOPOLOGY_FILE = "topology.conf"

PARAMETERS: dict[Section, tuple[Parameter, ...]] = {
    Section.CLUSTER: CLUSTER_PARAMETERS,
    Section.NODE: NODE_PARAMETERS,
    Section.PARTITION: PARTITION_PARAMETERS,
    Section.DOWN: DOWN_PARAMETERS,
    Section.NODE_SET: NODE_SET_PARAMETERS,
    Section.GRES: GRES_PARAMETERS,
    Section.TOPOLOGY: TOPOLOGY_PARAMETERS,
}
"""Every parameter that is known, by the kind of line that it stands on."""

_TABLES = {section: table_of(parameters) for section, parameters in PARAMETERS.items()}
_LEADERS = {
    section.value.lower(): section
    for section in (Section.NODE, Section.PARTITION, Section.DOWN, Section.NODE_SET)
}
_INHERITING = (Section.NODE, Section.PARTITION)
_NOT_INHERITED = ("hosts", "addresses")
_DEFAULT = "DEFAULT"


class Checked(NamedTuple):
    """What a set of files says."""

    config: Config | None
    """None when anything is wrong."""
    findings: tuple[Finding, ...]
    """Every parameter that is written, with what becomes of it, in the order of the files."""
    errors: tuple[str, ...]
    """One sentence each, with its place."""


def parse_slurm_config(files: Sequence[ConfigFile]) -> Config:
    """Return what the files say. Raises: ConfigErrors with everything that is wrong with them."""
    checked = check_slurm_config(files)
    if checked.config is None:
        raise ConfigErrors(checked.errors)
    return checked.config


def check_slurm_config(files: Sequence[ConfigFile]) -> Checked:
    """Return what the files say, with what becomes of each parameter."""
    reading = Reading()
    texts = {file.name: file.text for file in files}
    main = files[0].name
    document = _Document()
    for line in read_lines(texts, main, 0, reading.blame):
        document.read(reading, line)
    beside: dict[str, list[Line]] = {GRES_FILE: [], TOPOLOGY_FILE: []}
    for number, name in enumerate(beside, start=1):
        if name in texts and name != main:
            beside[name] = list(read_lines(texts, name, number, reading.blame))
    nodes = build_nodes(
        reading,
        document.rows[Section.NODE],
        document.rows[Section.DOWN],
        read_gres(reading, beside[GRES_FILE]),
        document.values.get("gres_types", ()),
    )
    _check_names(reading, nodes)
    partitions = build_partitions(
        reading, document.rows[Section.PARTITION], document.rows[Section.NODE_SET], nodes
    )
    topology, written = build_topology(reading, beside[TOPOLOGY_FILE], nodes)
    supplement, errors = _supplement(texts)
    settings = document.settings(reading, main, supplement)
    sentences = (*reading.sentences, *errors)
    if sentences or settings is None:
        return Checked(None, reading.findings, sentences)
    parameters = document.written | written
    config = Config(
        parser_version=PARSER_VERSION,
        settings=settings,
        roles=supplement.roles,
        nodes=tuple(placed.block for placed in nodes),
        partitions=partitions,
        topology=topology,
        parameters=tuple(SlurmParameter(name, parameters[name]) for name in sorted(parameters)),
    )
    return Checked(config, reading.findings, ())


def _supplement(texts: Mapping[str, str]) -> tuple[Supplement, tuple[str, ...]]:
    """Return what spur.toml adds, and what is wrong with it."""
    nothing = Supplement((), None)
    if CONFIG_FILE not in texts:
        return nothing, ()
    try:
        return parse_supplement(ConfigFile(CONFIG_FILE, texts[CONFIG_FILE])), ()
    except ConfigErrors as errors:
        return nothing, errors.sentences


def _check_names(reading: Reading, nodes: Sequence[PlacedBlock]) -> None:
    def blame(_: str, number: int, key: str, sentence: str) -> None:
        reading.blame(nodes[number].place, sentence)

    check_nodes(blame, [{"names": placed.block.names} for placed in nodes])


@dataclass(slots=True)
class _Document:
    """What slurm.conf says, line by line."""

    values: dict[str, Any] = field(default_factory=dict)
    """What is said of the cluster, by field."""
    places: dict[str, Place] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    """Parameters without a field, by name, but secrets."""
    controllers: list[ControllerHost] = field(default_factory=list)
    rows: dict[Section, list[Row]] = field(
        default_factory=lambda: {section: [] for section in _LEADERS.values()}
    )
    defaults: dict[Section, Row] = field(default_factory=dict)

    def read(self, reading: Reading, line: Line) -> None:
        """Take one line; a key that begins a line about something takes the rest of it."""
        for number, pair in enumerate(line.pairs):
            section = _LEADERS.get(pair.key.lower())
            if section is not None:
                self._read_row(reading, section, pair.value, line.pairs[number + 1 :], line.place)
                return
            self._read_one(reading, pair, line.place)

    def _read_one(self, reading: Reading, pair: Pair, place: Place) -> None:
        taken = reading.take(_TABLES[Section.CLUSTER], pair, place)
        if taken is None:
            return
        parameter, value = taken
        if parameter.field == "controllers":
            if value.name in (known.name for known in self.controllers):
                reading.blame(place, f"{parameter.name} {value.name!r} is there twice")
            self.controllers.append(value)
        elif parameter.field:
            self.values[parameter.field] = value
            self.places[parameter.field] = place
        if not parameter.field and not parameter.is_secret:
            self.written[parameter.name] = pair.value

    def _read_row(
        self, reading: Reading, section: Section, of: str, pairs: Sequence[Pair], place: Place
    ) -> None:
        reading.leader(section.value, of, place)
        former = self.defaults.get(section, Row(place, _DEFAULT))
        row = former.heir(place, of)
        reading.fill(_TABLES[section], row, pairs, of=f"{section.value}={of}")
        if section in _INHERITING and of.upper() == _DEFAULT:
            for name in _NOT_INHERITED:
                if row.values.pop(name, None) is not None:
                    reading.blame(place, "NodeHostname and NodeAddr can't be a default")
            self.defaults[section] = row
        elif section is Section.NODE and of.upper() == "ALL":
            reading.blame(place, "ALL is no name of nodes")
        else:
            self.rows[section].append(row)

    def settings(
        self, reading: Reading, main: str, supplement: Supplement
    ) -> ClusterSettings | None:
        """Return the cluster's settings, or blame what is missing."""
        start = Place(main, 1, (0, 1))
        if not self.controllers and "ControlMachine" in self.written:
            name = self.written["ControlMachine"]
            address = self.written.get("ControlAddr", name)
            self.controllers.append(ControllerHost(name, address))
        if not self.controllers:
            reading.blame(start, "SlurmctldHost is missing")
        if "name" not in self.values:
            reading.blame(start, "ClusterName is missing")
            return None
        for one, other, words in _EXCLUSIVE:
            if self.values.get(one) and self.values.get(other):
                reading.blame(self.places[other], f"it takes either {words}")
        fields = defaults_of(CLUSTER_KEYS)
        fields |= {key: value for key, value in self.values.items() if key in CLUSTER_KEYS}
        fields["controllers"] = tuple(self.controllers)
        if supplement.requeue_policy is not None:
            fields["requeue_policy"] = supplement.requeue_policy
        return ClusterSettings(**fields)


_EXCLUSIVE = (
    ("memory_per_cpu_mib", "memory_per_node_mib", "DefMemPerCPU or DefMemPerNode"),
    ("memory_per_cpu_mib_max", "memory_per_node_mib_max", "MaxMemPerCPU or MaxMemPerNode"),
)
