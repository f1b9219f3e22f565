"""States of nodes in sinfo's two spellings, and what may be typed for them.

A node's state is one word and marks (DRAIN, NOT_RESPONDING); sinfo shows one word for both:
a node that drains and still has jobs is draining, a star stands for one that does not answer, and
a tilde for one that is to be made when it is needed.

Source: sinfo(1) NODE STATE CODES; transcripts of Slurm 22.05.
"""

from __future__ import annotations

__all__ = ["STATE_WORDS", "compact_state", "is_in_state", "long_state", "state_rank"]

_COMPACT = {
    "ALLOCATED": "alloc",
    "DOWN": "down",
    "FUTURE": "futr",
    "IDLE": "idle",
    "MIXED": "mix",
    "UNKNOWN": "unk",
}

_RANKS = {"UNKNOWN": 0, "DOWN": 1, "IDLE": 2, "ALLOCATED": 3, "MIXED": 5, "FUTURE": 6}
_DRAIN_RANK = 0x200
_SILENT_RANK = 0x800

_BUSY = ("ALLOCATED", "MIXED")

STATE_WORDS = (
    "alloc",
    "allocated",
    "cloud",
    "down",
    "drain",
    "drained",
    "draining",
    "drng",
    "future",
    "idle",
    "mix",
    "mixed",
    "no_respond",
    "powered_down",
    "unknown",
)
"""What may be typed behind --states, besides all."""

_NEVER = (
    "comp",
    "completing",
    "fail",
    "maint",
    "perfctrs",
    "planned",
    "power_down",
    "powering_down",
    "powering_up",
    "reboot",
    "reserved",
    "resv",
    "unk",
)
"""Words of Slurm's that no node of ours is in."""


def _parts(state: str) -> tuple[str, bool, str]:
    """Return the word, whether it drains, and the sign of what else is the matter with it."""
    word, *marks = state.split("+")
    sign = "*" if "NOT_RESPONDING" in marks else "~" if "POWERED_DOWN" in marks else ""
    return word, "DRAIN" in marks, sign


def compact_state(state: str) -> str:
    """Return the short spelling."""
    word, drains, sign = _parts(state)
    if drains:
        shown = "drng" if word in _BUSY else "drain"
    else:
        shown = _COMPACT[word]
    return shown + sign


def long_state(state: str) -> str:
    """Return the long spelling."""
    word, drains, sign = _parts(state)
    if drains:
        shown = "draining" if word in _BUSY else "drained"
    else:
        shown = word.lower()
    return shown + sign


def state_rank(state: str) -> int:
    """Return the place of a state in sinfo's order."""
    word, drains, sign = _parts(state)
    return _RANKS[word] + _DRAIN_RANK * drains + _SILENT_RANK * (sign == "*")


def is_in_state(state: str, asked: str) -> bool:
    """Return whether a node is in the state that is typed; with & it must be in each of them.

    Raises: ValueError when Slurm has no such state.
    """
    if "&" in asked:
        verdicts = [is_in_state(state, part) for part in asked.split("&")]
        return all(verdicts)
    word, drains, sign = _parts(state)
    asked = asked.lower()
    tests = {
        "alloc": word in _BUSY,
        "allocated": word in _BUSY,
        "cloud": "CLOUD" in state.split("+"),
        "down": word == "DOWN",
        "drain": drains,
        "drained": drains and word not in _BUSY,
        "draining": drains and word in _BUSY,
        "drng": drains and word in _BUSY,
        "future": word == "FUTURE",
        "idle": word == "IDLE",
        "mix": word == "MIXED" and not drains,
        "mixed": word == "MIXED" and not drains,
        "no_respond": sign == "*",
        "powered_down": sign == "~",
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
