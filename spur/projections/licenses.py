"""Licences: how many there are, and how many are held by jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spur.projections.invariants import invariant
from spur.values.config import SlurmParameter
from spur.values.ids import JobId
from spur.values.licenses import parse_licenses
from spur.values.states import Phase

if TYPE_CHECKING:
    from spur.projections.jobs import JobRow
    from spur.projections.state import State

__all__ = ["asked_licenses", "licenses_configured", "licenses_free", "licenses_held"]

_HOLDING = (Phase.RUNNING, Phase.STOPPING)
"""A job that is being ended may still use what it got."""


def asked_licenses(_: JobId, row: JobRow) -> str | None:
    """Return what licences a job asks for; None when it asks for none."""
    return row.spec.ask.licenses or None


def licenses_configured(parameters: tuple[SlurmParameter, ...]) -> dict[str, int]:
    """Return how many of each licence a configuration has."""
    for parameter in parameters:
        if parameter.name == "Licenses":
            return parse_licenses(parameter.value)
    return {}


def licenses_held(state: State) -> dict[str, int]:
    """Return how many of each licence are held."""
    held: dict[str, int] = {}
    for text in state.jobs_of_licenses.values():
        holders = sum(
            state.runs[job_id].phase in _HOLDING for job_id in state.jobs_of_licenses.keys(text)
        )
        if holders:
            for name, count in parse_licenses(text).items():
                held[name] = held.get(name, 0) + count * holders
    return held


def licenses_free(state: State) -> dict[str, int]:
    """Return how many of each configured licence nobody holds."""
    had = licenses_configured(state.config[1].parameters) if len(state.config) else {}
    held = licenses_held(state) if had else {}
    return {name: count - held.get(name, 0) for name, count in had.items()}


@invariant("licenses-never-oversold")
def oversold_licenses(state: State) -> Iterator[str]:
    """All jobs together hold at most as many of a licence as there are."""
    had = licenses_configured(state.config[1].parameters) if len(state.config) else {}
    for name, held in sorted(licenses_held(state).items()):
        if held > had.get(name, 0):
            yield f"there are {had.get(name, 0)} of licence {name!r} and {held} are held"
