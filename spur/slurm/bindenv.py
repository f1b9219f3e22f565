"""What srun tells tasks of the binding and the frequency of CPUs that were asked.

Source: srun(1) --cpu-bind, --cpu-freq, --hint, OUTPUT ENVIRONMENT VARIABLES; transcripts of
Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["bind_environment"]

_VERBOSITIES = {"q": "quiet", "quiet": "quiet", "v": "verbose", "verbose": "verbose"}

_LISTS = ("map_cpu", "mask_cpu", "map_ldom", "mask_ldom")

_FREQUENCIES = {
    "low": "Low",
    "medium": "Medium",
    "high": "High",
    "highm1": "HighM1",
    "conservative": "Conservative",
    "ondemand": "OnDemand",
    "performance": "Performance",
    "powersave": "PowerSave",
    "schedutil": "SchedUtil",
    "userspace": "UserSpace",
}


def bind_environment(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables about CPUs that the options of srun come to."""
    found: dict[str, str] = {}
    bind = values.get("cpu_bind", "")
    if values.get("hint") == "nomultithread":
        found["SLURM_THREADS_PER_CORE"] = "1"
        bind = bind or "threads"
    if bind:
        verbosity, kind, listed = _bind(bind)
        found |= {
            "SLURM_CPU_BIND": f"{verbosity},{kind}{listed}" if kind else verbosity,
            "SLURM_CPU_BIND_LIST": listed,
            "SLURM_CPU_BIND_TYPE": kind,
            "SLURM_CPU_BIND_VERBOSE": verbosity,
        }
    if "cpu_freq" in values:
        found["SLURM_CPU_FREQ_REQ"] = _frequency(values["cpu_freq"])
    return found


def _bind(text: str) -> tuple[str, str, str]:
    """Return verbosity, kind and list of a binding."""
    verbosity, kind, listed = "quiet", "", ""
    words = text.split(",")
    for place, word in enumerate(words):
        name, colon, first = word.partition(":")
        if word.lower() in _VERBOSITIES:
            verbosity = _VERBOSITIES[word.lower()]
        elif colon and name.lower() in _LISTS:
            # What follows belongs to the list.
            return verbosity, f"{name.lower()}:", ",".join([first, *words[place + 1 :]])
        else:
            kind = "none" if word.lower() == "no" else word.lower()
    return verbosity, kind, listed


def _frequency(text: str) -> str:
    """Return a frequency as Slurm spells it; numbers are kHz."""
    span, colon, governor = text.partition(":")
    ends = "-".join(_FREQUENCIES.get(end.lower(), end) for end in span.split("-"))
    return ends + colon + _FREQUENCIES.get(governor.lower(), governor)
