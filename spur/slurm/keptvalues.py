"""Values of options that are kept with a job and steer nothing so far: good ones, or refused.

Source: sbatch(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

import re

from spur.slurm.optionvalues import BadOption, positive, time_limit

__all__ = [
    "accounting_frequency",
    "cpu_frequency",
    "delay",
    "gpu_binding",
    "gpu_frequency",
    "memory_binding",
    "off",
    "profiles",
    "wait_for_nodes",
]


def accounting_frequency(value: str, option: str) -> str:
    """Return what is sampled how often: SECONDS or KIND=SECONDS, parted by commas."""
    kinds = "energy|filesystem|network|task"
    for part in filter(None, value.split(",")):
        if not re.match(rf"(?:(?:{kinds})=)?[0-9]", part.lower()):
            raise BadOption(f"Invalid --{option} specification: {value}")
    return value


def delay(value: str, option: str) -> str:
    """Return a length of time in minutes, as it was typed."""
    time_limit(value, option)
    return value


_FREQUENCY = re.compile(r"[1-9][0-9]*|low|medium|high|highm1")

_GOVERNORS = frozenset(("conservative", "ondemand", "performance", "powersave", "userspace"))


def cpu_frequency(value: str, option: str) -> str:
    """Return P1[-P2][:GOVERNOR], as it was typed."""
    range_, colon, governor = value.partition(":")
    words = [governor] if colon else []
    if not (range_.lower() in _GOVERNORS and not colon):
        words = [*range_.split("-", 2), *words]
    for word in words:
        if not (_FREQUENCY.match(word.lower()) or word.lower() in _GOVERNORS):
            raise BadOption(
                f'unrecognized --{option} argument "{word}"', then=f"Invalid --{option} argument"
            )
    return value


def gpu_binding(value: str, option: str) -> str:
    """Return how tasks and GPUs are bound, as it was typed."""
    word = value.lower().removeprefix("verbose,").removeprefix("v,").removeprefix("gpu:")
    known = re.fullmatch(
        r"closest|none|single:[1-9][0-9]*|per_task:[1-9][0-9]*|map:.+|mask:.+|(?:map_gpu|mask_gpu):.+",
        word,
    )
    if not known:
        raise BadOption(f"Invalid --{option} argument: gpu:{value}")
    return value


def gpu_frequency(value: str, option: str) -> str:
    """Return [KIND=]FREQUENCY[,verbose] of GPUs, as it was typed."""
    if not value:
        raise BadOption(f"Invalid --{option} argument: gpu:")
    for part in filter(None, value.lower().split(",")):
        _, _, word = part.rpartition("=")
        if not re.fullmatch(r"[0-9]+|low|medium|high|highm1|verbose", word):
            raise BadOption(f"Invalid --{option} argument: gpu:{value}")
    return value


_MEMORY_WORDS = frozenset(
    (
        *("q", "quiet", "v", "verbose", "n", "no", "none", "rank"),
        *("local", "sort", "nosort", "p", "prefer", "help"),
    )
)
"""Source: sbatch(1) --mem-bind."""


def memory_binding(value: str, option: str) -> str:
    """Return how memory is bound, as it was typed."""
    for word in value.lower().split(","):
        if word.startswith(("map_mem:", "mask_mem:", "map_mem=", "mask_mem=")):
            return value  # the rest is its list
        if word not in _MEMORY_WORDS:
            raise BadOption(f'unrecognized --{option} argument "{value}"')
    return value


def off(value: str, option: str) -> str:
    """Return "off", or nothing when nothing is said."""
    if value.lower() not in ("", "off", "no"):
        raise BadOption(f"Invalid --{option} specification")
    return value


def profiles(value: str, option: str) -> str:
    """Return what is recorded of the tasks, as it was typed."""
    known = {"all", "none", "energy", "filesystem", "lustre", "network", "task"}
    if not known & set(value.lower().split(",")):
        raise BadOption(f"invalid --{option}={value} option")
    return value


def wait_for_nodes(value: str, option: str) -> str:
    """Return 0 or 1: whether all nodes are to be up before a job begins."""
    if value not in ("", "0"):
        if positive(value, option) > 1:
            raise BadOption(f"Invalid --{option} specification")
    return value
