"""One reading of Slurm's files: what was found where, and what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spur.slurm.conflines import Pair, Place
from spur.slurm.parameters import Parameter, Verdict
from spur.values.config import SlurmParameter

__all__ = ["SECRET", "Finding", "Reading", "Row", "Table", "table_of"]

SECRET = "(secret)"
"""Is shown instead of what nobody should read."""

Table = Mapping[str, Parameter]
"""Parameters by their name in small letters: Slurm does not tell letters' size apart."""


def table_of(parameters: Iterable[Parameter]) -> Table:
    """Return parameters by the name that they are looked up by."""
    return {row.name.lower(): row for row in parameters}


class Finding(NamedTuple):
    """One parameter that somebody wrote, and what becomes of it."""

    file: str
    line: int
    of: str
    """What the line is about, such as "NodeName=n[1-4]"; empty for lines about the cluster."""
    name: str
    """In the manual's spelling, where it is known."""
    value: str
    verdict: Verdict
    note: str
    """What else is to say; may be empty."""


@dataclass(slots=True)
class Row:
    """One line about nodes, partitions or the network, with what it inherits."""

    place: Place
    of: str
    """The value of the key that begins the line."""
    values: dict[str, Any] = field(default_factory=dict)
    """What is said, by field."""
    written: dict[str, str] = field(default_factory=dict)
    """Parameters without a field, by name."""
    places: dict[str, Place] = field(default_factory=dict)
    """Where each field is said."""

    def place_of(self, name: str) -> Place:
        """Return where a field is said, or where the line is that leaves it out."""
        return self.places.get(name, self.place)

    def heir(self, place: Place, of: str) -> Row:
        """Return a row that begins with all that this one says."""
        return Row(place, of, dict(self.values), dict(self.written), dict(self.places))

    @property
    def others(self) -> tuple[SlurmParameter, ...]:
        """What is kept as it was written, by name."""
        return tuple(SlurmParameter(name, self.written[name]) for name in sorted(self.written))


class Reading:
    """Collects findings and errors; each error has its place."""

    def __init__(self) -> None:
        self._findings: list[tuple[Place, Finding]] = []
        self._errors: list[tuple[Place, str]] = []

    def blame(self, place: Place, sentence: str) -> None:
        """Note what is wrong at a place."""
        self._errors.append((place, sentence))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong, each with its place, in the order of the files."""
        ordered = sorted(self._errors, key=lambda error: error[0].order)
        return tuple(dict.fromkeys(f"{place}: {sentence}" for place, sentence in ordered))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every parameter, in the order of the files."""
        ordered = sorted(self._findings, key=lambda found: found[0].order)
        return tuple(finding for _, finding in ordered)

    def take(
        self, table: Table, pair: Pair, place: Place, *, of: str = ""
    ) -> tuple[Parameter, Any] | None:
        """Return the parameter that is meant and its value; None when it is blamed."""
        row = table.get(pair.key.lower())
        if row is None:
            note = _near(pair.key, table)
            self._find(place, of, pair.key, pair.value, Verdict.UNKNOWN, note)
            self.blame(place, f"{pair.key} is not known" + (f"; {note}" if note else ""))
            return None
        shown = SECRET if row.is_secret else pair.value
        try:
            value = row.grammar.parse(pair.value)
        except ValueError as error:
            self._find(place, of, row.name, shown, Verdict.WRONG, str(error))
            self.blame(place, f"{row.name} is {shown!r}: {error}")
            return None
        self._find(place, of, row.name, shown, row.verdict_of(pair.value), "")
        return row, value

    def _find(
        self, place: Place, of: str, name: str, value: str, verdict: Verdict, note: str
    ) -> None:
        self._findings.append(
            (place, Finding(place.file, place.line, of, name, value, verdict, note))
        )

    def leader(self, name: str, value: str, place: Place) -> None:
        """Note the key that begins a line about something; it is honoured."""
        self._find(place, f"{name}={value}", name, value, Verdict.HONOURED, "")

    def fill(self, table: Table, row: Row, pairs: Sequence[Pair], *, of: str) -> bool:
        """Read the pairs of a line into its row; return whether all of them were right."""
        is_right = True
        for pair in pairs:
            taken = self.take(table, pair, row.place, of=of)
            if taken is None:
                is_right = False
                continue
            parameter, value = taken
            if parameter.field:
                row.values[parameter.field] = value
                row.places[parameter.field] = row.place
            else:
                row.written[parameter.name] = pair.value
        return is_right


def _near(key: str, table: Table) -> str:
    near = difflib.get_close_matches(key.lower(), table, n=1)
    return f"did you mean {table[near[0]].name}?" if near else ""
