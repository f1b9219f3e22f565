"""States of nodes in sinfo's two spellings, and what may be typed for them.

A node's state is one word and marks (DRAIN, NOT_RESPONDING); sinfo shows one word for both:
a node that drains and still has jobs is draining, a star stands for one that does not answer, and
a tilde for one that is to be made when it is needed. An idle node that is kept for a reservation is
reserved, and one that is kept for maintenance is maint.

Source: sinfo(1) NODE STATE CODES; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "STATE_WORDS",
    "compact_state",
    "complete_state",
    "is_in_state",
    "long_state",
    "state_rank",
]

_COMPACT = {
    "ALLOCATED": "alloc",
    "DOWN": "down",
    "FUTURE": "futr",
    "IDLE": "idle",
    "MIXED": "mix",
    "UNKNOWN": "unk",
}

_RANKS = {"UNKNOWN": 0, "DOWN": 1, "IDLE": 2, "ALLOCATED": 3, "MIXED": 5, "FUTURE": 6}
_MARKS = {
    "RESERVED": 0x20,
    "CLOUD": 0x80,
    "DRAIN": 0x200,
    "FAIL": 0x2000,
    "COMPLETING": 0x400,
    "NOT_RESPONDING": 0x800,
    "POWERED_DOWN": 0x1000,
    "MAINTENANCE": 0x8000,
}
"""How much a mark weighs in sinfo's order of states."""

_BUSY = ("ALLOCATED", "MIXED")

STATE_WORDS = (
    "unknown",
    "down",
    "idle",
    "allocated",
    "?",
    "mixed",
    "future",
    "drain",
    "drained",
    "draining",
    "no_respond",
    "reserved",
    "perfctrs",
    "cloud",
    "completing",
    "powering_down",
    "powered_down",
    "power_down",
    "powering_up",
    "fail",
    "maint",
    "reboot",
    "reboot^",
    "unknown",
)
"""What sinfo names when it does not know a word."""

_NEVER = (
    "perfctrs",
    "planned",
    "power_down",
    "powering_down",
    "powering_up",
    "reboot",
    "reboot^",
    "?",
)
"""Words of Slurm's that no node of ours is in."""


class _Parts(NamedTuple):
    """A state taken apart."""

    word: str
    marks: frozenset[str]

    @property
    def drains(self) -> bool:
        """Whether it takes no more jobs."""
        return "DRAIN" in self.marks

    @property
    def fails(self) -> bool:
        """Whether it is about to fail, and does not drain."""
        return "FAIL" in self.marks and not self.drains

    @property
    def sign(self) -> str:
        """What stands behind the word."""
        if "NOT_RESPONDING" in self.marks:
            return "*"
        return "~" if "POWERED_DOWN" in self.marks else ""

    @property
    def kept(self) -> str:
        """For whom an idle node is kept, in sinfo's long word; empty for nobody."""
        if "MAINTENANCE" in self.marks:
            return "maint"
        return "reserved" if self.word == "IDLE" and "RESERVED" in self.marks else ""


def _parts(state: str) -> _Parts:
    word, *marks = state.split("+")
    return _Parts(word, frozenset(marks))


def compact_state(state: str) -> str:
    """Return the short spelling."""
    parts = _parts(state)
    if parts.drains:
        shown = "drng" if parts.word in _BUSY else "drain"
    elif parts.fails:
        shown = "failg" if parts.word == "ALLOCATED" else "fail"
    elif parts.kept:
        shown = {"maint": "maint", "reserved": "resv"}[parts.kept]
    else:
        shown = _COMPACT[parts.word]
    return shown + parts.sign


def long_state(state: str) -> str:
    """Return the long spelling."""
    parts = _parts(state)
    if parts.drains:
        shown = "draining" if parts.word in _BUSY else "drained"
    elif parts.fails:
        shown = "failing" if parts.word == "ALLOCATED" else "fail"
    else:
        shown = parts.kept or parts.word.lower()
    return shown + parts.sign


def complete_state(state: str) -> str:
    """Return the state with all its marks; a node that drains has no part that is idle."""
    word, *marks = state.split("+")
    if word == "MIXED" and "DRAIN" in marks:
        word = "ALLOCATED"
    return "+".join((word, *marks)).lower()


def state_rank(state: str) -> int:
    """Return the place of a state in sinfo's order."""
    parts = _parts(state)
    return _RANKS[parts.word] + sum(_MARKS.get(mark, 0) for mark in parts.marks)


def is_in_state(state: str, asked: str) -> bool:
    """Return whether a node is in the state that is typed; with & it must be in each of them.

    Raises: ValueError when Slurm has no such state.
    """
    if "&" in asked:
        verdicts = [is_in_state(state, part) for part in asked.split("&")]
        return all(verdicts)
    word, marks = parts = _parts(state)
    drains = parts.drains
    asked = asked.lower()
    tests = {
        "alloc": word in _BUSY,
        "allocated": word in _BUSY,
        "cloud": "CLOUD" in marks,
        "comp": "COMPLETING" in marks,
        "completing": "COMPLETING" in marks,
        "down": word == "DOWN",
        "drain": drains,
        "drained": drains and word not in _BUSY,
        "draining": drains and word in _BUSY,
        "drng": drains and word in _BUSY,
        "fail": "FAIL" in marks,
        "future": word == "FUTURE",
        "idle": word == "IDLE",
        "maint": "MAINTENANCE" in marks,
        "mix": word == "MIXED" and not drains,
        "mixed": word == "MIXED" and not drains,
        "no_respond": "NOT_RESPONDING" in marks,
        "powered_down": "POWERED_DOWN" in marks,
        "reserved": bool({"RESERVED", "MAINTENANCE"} & marks),
        "resv": bool({"RESERVED", "MAINTENANCE"} & marks),
        "unk": word == "UNKNOWN",
        "unknown": word == "UNKNOWN",
    }
    if asked == "all":
        return True
    if asked in tests:
        return tests[asked]
    if asked in _NEVER:
        return False
    raise ValueError(asked)
