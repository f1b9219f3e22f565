"""How values are written in Slurm's configuration files.

A grammar is what a value takes, in words, and a function from the text to what it means, which
raises ValueError saying what would be right. Source: slurm.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from spur.values.config import ControllerHost, NodeStart, OverSubscribe, PartitionState
from spur.values.hostlist import expand_list, parse_hostlist
from spur.values.ids import NAME_GRAMMAR, is_name
from spur.values.licenses import parse_licenses
from spur.values.timespec import TIME_LIMIT_GRAMMAR, parse_time_limit

__all__ = [
    "BOOLEAN",
    "CONTROLLER",
    "COUNT16",
    "COUNT32",
    "COUNT64",
    "DEVICES",
    "FEATURES",
    "GRES",
    "HOSTS",
    "LICENSES",
    "LIMIT_TIME",
    "LOWER_NAME",
    "LOWER_WORDS",
    "MEMORY",
    "NAME",
    "NODE_START",
    "OVER_SUBSCRIBE",
    "PARTITION_NODES",
    "PARTITION_STATE",
    "PORTS",
    "PREEMPT_MODE",
    "TEXT",
    "WORDS",
    "Grammar",
    "GresCount",
    "one_of",
    "whole",
]


class Grammar(NamedTuple):
    """How one kind of value is written."""

    takes: str
    """What is right, to stand after "it takes"."""
    parse: Callable[[str], Any]
    """Raises ValueError saying what would be right."""


class GresCount(NamedTuple):
    """A number of devices of one generic resource, as a NodeName line says it."""

    name: str
    kind: str
    devices: int


_UNLIMITED = ("UNLIMITED", "INFINITE")
_SUFFIX = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER = re.compile(r"([0-9]{1,20})([KMGT]?)\Z")


def _number(text: str) -> int | None:
    match = _NUMBER.match(text.upper())
    return None if match is None else int(match[1]) * _SUFFIX[match[2]]


def whole(lowest: int, highest: int, *, unlimited: bool = False) -> Grammar:
    """Return the grammar of whole numbers; UNLIMITED is None where it is allowed."""
    takes = f"a whole number from {lowest} to {highest}" + (" or UNLIMITED" if unlimited else "")

    def parse(text: str) -> int | None:
        if unlimited and text.upper() in _UNLIMITED:
            return None
        number = _number(text)
        if number is None or not lowest <= number <= highest:
            raise ValueError(f"it takes {takes}")
        return number

    return Grammar(takes, parse)


def one_of(*words: str) -> Grammar:
    """Return the grammar of these words, in any case."""
    takes = f"{', '.join(words[:-1])} or {words[-1]}"

    def parse(text: str) -> str:
        if text.upper() not in words:
            raise ValueError(f"it takes {takes}")
        return text.upper()

    return Grammar(takes, parse)


def _parse_text(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it takes a text without control characters")
    return text


def _parse_boolean(text: str) -> bool:
    if text.upper() in ("YES", "TRUE", "UP", "1"):
        return True
    if text.upper() in ("NO", "FALSE", "DOWN", "0"):
        return False
    raise ValueError("it takes YES or NO")


def _parse_words(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(_parse_text(text).split(",")))
    if "" in words:
        raise ValueError("it takes words with commas between them")
    return () if text.upper() == "ALL" else words


def _parse_memory(text: str) -> int | None:
    if text.upper() in _UNLIMITED:
        return None
    number = _number(text)
    if number is None or number > 1 << 40:
        raise ValueError("it takes MiB, or UNLIMITED")
    return number or None


def _parse_name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"it takes {NAME_GRAMMAR}")
    return text


def _commas(text: str) -> str:
    """Return a list whose names are parted by commas alone."""
    return ",".join(text.replace(",", " ").split())


def _parse_hosts(text: str) -> str:
    listed = _commas(text)
    if not parse_hostlist(listed):
        raise ValueError("it takes a host list such as n[1-4]")
    return listed


def _parse_devices(text: str) -> tuple[str, ...]:
    devices = expand_list(_parse_text(text))
    if not devices:
        raise ValueError("it takes device files such as /dev/nvidia[0-3]")
    return devices


_FEATURE = re.compile(r"[^\s,&|*()\[\]]{1,64}\Z")


def _parse_features(text: str) -> tuple[str, ...]:
    words = _parse_words(text)
    if not all(_FEATURE.match(word) for word in words):
        raise ValueError("it takes words without blanks and any of & | * ( ) [ ]")
    return words


_GRES_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
_SOCKETS = re.compile(r"\(S:[0-9,-]*\)\Z")


def _parse_gres(text: str) -> tuple[GresCount, ...]:
    return tuple(_one_gres(item) for item in _parse_words(text))


def _one_gres(item: str) -> GresCount:
    name, *parts = _SOCKETS.sub("", item).split(":")
    parts = [part for part in parts if part.lower() != "no_consume"]
    count = 1
    if parts and (number := _number(parts[-1])) is not None:
        count = number
        parts.pop()
    if len(parts) > 1 or not all(map(_GRES_NAME.match, [name, *parts])):
        raise ValueError("it takes name[:type][:count], such as gpu:a100:4")
    return GresCount(name, parts[0] if parts else "", count)


_PORTS = re.compile(r"[0-9]{1,5}(?:-[0-9]{1,5})?\Z")


def _parse_ports(text: str) -> str:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not all(_PORTS.match(part) for part in inner.split(",")):
        raise ValueError("it takes a port, or a list such as [7000-7003]")
    return text


_CONTROLLER = re.compile(r"([^()\s]+)(?:\(([^()\s]+)\))?\Z")


def _parse_controller(text: str) -> ControllerHost:
    match = _CONTROLLER.match(text)
    if match is None or not is_name(match[1]):
        raise ValueError("it takes a host name, or name(address)")
    return ControllerHost(match[1], match[2] or match[1])


def _parse_over_subscribe(text: str) -> tuple[OverSubscribe, int]:
    word, colon, number = text.upper().partition(":")
    least = 1 if word == "FORCE" else 2
    if word in ("YES", "FORCE"):
        count = _number(number) if colon else 4
        if count is not None and least <= count <= 32_767:
            return OverSubscribe(word), count
    elif word in ("NO", "EXCLUSIVE") and not colon:
        return OverSubscribe(word), 1
    raise ValueError("it takes NO, YES, YES:count, FORCE, FORCE:count or EXCLUSIVE")


_PREEMPT_WORDS = ("OFF", "CANCEL", "GANG", "PRIORITY", "REQUEUE", "SUSPEND", "WITHIN")


def _parse_preempt_mode(text: str) -> str:
    words = text.upper().split(",")
    if not all(word in _PREEMPT_WORDS for word in words):
        raise ValueError(f"it takes {', '.join(_PREEMPT_WORDS)}, with commas between them")
    return ",".join(words)


def _parse_limit_time(text: str) -> int | None:
    limit_s = parse_time_limit(text)
    if limit_s == 0:
        raise ValueError("it takes at least one minute")
    return limit_s


TEXT = Grammar("a text", _parse_text)
BOOLEAN = Grammar("YES or NO", _parse_boolean)
WORDS = Grammar("words with commas between them", _parse_words)
LOWER_WORDS = Grammar(WORDS.takes, lambda text: _parse_words(text.lower()))
NAME = Grammar("a name", _parse_name)
LOWER_NAME = Grammar(NAME.takes, lambda text: _parse_name(text.lower()))
COUNT16 = whole(0, 65_535, unlimited=True)
COUNT32 = whole(0, (1 << 32) - 3, unlimited=True)
COUNT64 = whole(0, (1 << 62) - 1, unlimited=True)
MEMORY = Grammar("MiB, or UNLIMITED", _parse_memory)
HOSTS = Grammar("a host list", _parse_hosts)
PARTITION_NODES = Grammar("a host list, node sets, or ALL", _commas)
DEVICES = Grammar("device files", _parse_devices)
FEATURES = Grammar("features with commas between them", _parse_features)
LICENSES = Grammar("name[:count] with commas between them", parse_licenses)
GRES = Grammar("name[:type][:count] with commas between them", _parse_gres)
PORTS = Grammar("a port, or a list of them", _parse_ports)
CONTROLLER = Grammar("a host name, or name(address)", _parse_controller)
OVER_SUBSCRIBE = Grammar("NO, YES[:count], FORCE[:count] or EXCLUSIVE", _parse_over_subscribe)
PREEMPT_MODE = Grammar("words such as REQUEUE, with commas", _parse_preempt_mode)
LIMIT_TIME = Grammar(TIME_LIMIT_GRAMMAR, _parse_limit_time)
NODE_START = one_of(*NodeStart)
PARTITION_STATE = one_of(*PartitionState)
