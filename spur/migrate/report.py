"""What is told of a site: verdicts of scripts and of parameters, and what they rest on."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Note", "ParameterReport", "ScriptReport", "Severity", "SiteReport", "Word"]


class Severity(StrEnum):
    """What a note means for a script."""

    REMARK = "remark"
    """It does here what it does in Slurm, which may surprise."""
    DIFFERS = "works with a difference"
    FAILS = "fails"


class Word(StrEnum):
    """What becomes of a script as a whole."""

    WORKS = "works"
    DIFFERS = "works with a difference"
    FAILS = "fails"


class Note(NamedTuple):
    """One finding in a script."""

    line: int
    """From 1 on; 0 for the script as a whole."""
    severity: Severity
    what: str
    instead: str = ""
    """What to write, or to do; empty where nothing helps."""


class ScriptReport(NamedTuple):
    """What becomes of a script."""

    name: str
    notes: tuple[Note, ...]
    commands: tuple[str, ...] = ()
    """Slurm's commands that it calls."""
    lacking: tuple[str, ...] = ()
    """Commands and variables that it uses and that are not there."""

    @property
    def verdict(self) -> Word:
        """Return the gravest of its notes."""
        found = {note.severity for note in self.notes}
        if Severity.FAILS in found:
            return Word.FAILS
        return Word.DIFFERS if Severity.DIFFERS in found else Word.WORKS


class ParameterReport(NamedTuple):
    """What becomes of a parameter of the site's files."""

    file: str
    line: int
    of: str
    name: str
    value: str
    verdict: str
    """honoured, ignored, missing or wrong."""
    note: str


class SiteReport(NamedTuple):
    """Everything that is told."""

    scripts: tuple[ScriptReport, ...]
    parameters: tuple[ParameterReport, ...]
    errors: tuple[str, ...]
    """Why a cluster would refuse the configuration as a whole."""
