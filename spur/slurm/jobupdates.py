"""What `scontrol update` may change of a job: words with = as they are typed, and their meaning.

Source: scontrol(1) update, SPECIFICATIONS FOR UPDATE, JOBS; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from spur.slurm import optionvalues
from spur.slurm.dependencies import BadDependency, parse_dependency
from spur.slurm.optionvalues import BadOption
from spur.slurm.timespec import Calendar, MomentError, parse_moment, parse_time_limit
from spur.slurm.wording import SlurmError
from spur.values.dependencies import Dependency
from spur.values.ids import PartitionName
from spur.values.tres import Per
from spur.wire.declare import Attachment
from spur.wire.jobs import AskChanges, JobChanges

__all__ = ["JobUpdate", "parse_job_update"]


class JobUpdate(NamedTuple):
    """What is asked for one job or more."""

    changes: JobChanges
    longer_by_s: int | None
    """Added to each job's own time limit, or taken off it; None for no such change."""
    attachments: tuple[Attachment, ...] = ()
    """Texts that are written anew."""
    unreadable: str = ""
    """Code of what can't be read of it, which is said of each job; empty for nothing."""
    options: tuple[tuple[str, bytes], ...] = ()
    """Options of the submission that are written anew, by their long names."""
    end_ns: int | None = None
    """When a running job shall end: its time limit follows; None for no such change."""
    touches: bool = False
    """Whether something was named that changes nothing here."""
    takes_operator: bool = False
    """Whether only operators may name it."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked."""
        return self == JobUpdate(JobChanges(), None)


def parse_job_update(pairs: list[tuple[str, str]], calendar: Calendar) -> JobUpdate:
    """Read the changes; `pairs` are key and value as typed, the job's own name left out.

    Raises: SlurmError for a key that cannot be changed, or a bad value.
    """
    fields: dict[str, Any] = {}  # of the types of JobChanges
    asks: dict[str, Any] = {}  # of the types of AskChanges
    texts: dict[str, bytes] = {}
    longer_by_s = None
    unreadable = ""
    options: dict[str, bytes] = {}
    end_ns = None
    touches = False
    for key, value in pairs:
        word = key.lower()
        _refuse_sign(key, value)
        if word == "timelimit" and value[:1] in ("+", "-"):
            longer_by_s = _time_limit(value[1:]) * (-1 if value[0] == "-" else 1)
        elif word == "dependency":
            try:
                fields[word] = parse_dependency(value) or Dependency(False, ())
            except BadDependency:
                unreadable = "invalid-dependency"
        elif word == "gres":
            try:
                asks |= _gres(key, value)
            except BadOption:
                unreadable = "invalid-gres"
        elif word == "endtime":
            end_ns = _moment_ns(value, calendar)
        elif word in _OPTIONS:
            options[_OPTIONS[word]] = _bytes(_option(word, value))
        elif word in _REFUSED:
            unreadable = unreadable or _REFUSED[word]
        elif word in _TOUCHED:
            touches = touches or word not in ("userid", "user")
        elif word in _TEXTS:
            texts[_TEXTS[word]] = _bytes(value)
        elif word in _KEYS:
            field, parse = _KEYS[word]
            fields[field] = parse(value, calendar)
        elif word in _ASKS:
            asks |= _ASKS[word](key, value)
        else:
            raise SlurmError(
                f"Update of this parameter is not supported: {key}={value}", "Request aborted"
            )
    if asks:
        fields["ask"] = AskChanges(**asks)
    attachments = tuple(Attachment(name, content) for name, content in texts.items())
    return JobUpdate(
        JobChanges(**fields),
        longer_by_s,
        attachments,
        unreadable,
        tuple(options.items()),
        end_ns,
        touches,
        any(key.lower() in _OPERATORS for key, _ in pairs),
    )


def _refuse_sign(key: str, value: str) -> None:
    word = key.lower()
    if word[-1:] in ("+", "-") and word[:-1] in _KNOWN:
        sign = f"Option {key}={value} does not accept [+|-]= syntax"
        raise SlurmError(f"scontrol: error: {sign}")


def _bytes(text: str) -> bytes:
    """Return what was typed, as the bytes that it was."""
    return text.encode("utf-8", "surrogateescape")


def _time_limit(text: str) -> int:
    try:
        return parse_time_limit(text)
    except ValueError as error:
        raise SlurmError("scontrol: error: Invalid TimeLimit value") from error


def _limit(value: str, calendar: Calendar) -> int:
    return _time_limit(value)


def _text(value: str, calendar: Calendar) -> str:
    return value


def _partitions(value: str, calendar: Calendar) -> tuple[PartitionName, ...]:
    return optionvalues.partitions(value, "partition")


def _nice(value: str, calendar: Calendar) -> int:
    try:
        return optionvalues.nice(value, "nice")
    except BadOption as error:
        raise SlurmError(f"scontrol: error: {error.sentence}") from error


def _priority(value: str, calendar: Calendar) -> int:
    try:
        return optionvalues.priority(value, "priority")
    except BadOption as error:
        raise SlurmError(f"scontrol: error: Invalid Priority value: {value}") from error


def _moment_ns(value: str, calendar: Calendar) -> int:
    try:
        return max(parse_moment(value, calendar), 0) * 1_000_000_000
    except MomentError as error:
        raise SlurmError(str(error), "No changes specified") from error


def _throttle(value: str, calendar: Calendar) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise SlurmError("scontrol: error: Invalid ArrayTaskThrottle value")
    return int(value)


def _requeue(value: str, calendar: Calendar) -> bool:
    if value not in ("0", "1"):
        raise SlurmError(f"scontrol: error: Invalid Requeue value: {value}")
    return value == "1"


def _count(key: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise SlurmError(f"scontrol: error: Invalid {_SPELLED[key.lower()]} value: {value}")
    return int(value)


def _counted(field: str) -> Callable[[str, str], dict[str, Any]]:
    """Return what reads a plain number into a field of the ask."""
    return lambda key, value: {field: _count(key, value)}


def _memory(per: Per) -> Callable[[str, str], dict[str, Any]]:
    """Return what reads MiB of a node, or of a CPU."""

    def parse(key: str, value: str) -> dict[str, Any]:
        return {
            "memory_mib": _count(key, value),
            "memory_per": per,
            "memory_is_default": False,
        }

    return parse


def _nodes(key: str, value: str) -> dict[str, Any]:
    try:
        least, most = optionvalues.nodes(value, "nodes")
    except BadOption as error:
        raise SlurmError(
            f'scontrol: error: Invalid numeric value "{value}" for requested node count.'
        ) from error
    return {"nodes_min": least, "nodes_max": most if "-" in value else 0}


def _hosts(field: str) -> Callable[[str, str], dict[str, Any]]:
    """Return what reads a list of hosts into a field of the ask."""
    return lambda key, value: {field: value}


def _gres(key: str, value: str) -> dict[str, Any]:
    """Read generic resources. Raises: BadOption."""
    return {"gres": optionvalues.gres(value, "gres")}


def _option(word: str, value: str) -> str:
    """Return the value of an option as it is kept. Raises: SlurmError."""
    if word == "mailtype":
        try:
            return optionvalues.mail_types(value, "mail-type")
        except BadOption as error:
            raise SlurmError(f"scontrol: error: Invalid MailType: {value}") from error
    return value


def _yes(field: str) -> Callable[[str, str], dict[str, Any]]:
    """Return what reads YES or NO into a field of the ask."""

    def parse(key: str, value: str) -> dict[str, Any]:
        word = value.lower()
        if word not in ("yes", "no", "1", "0"):
            raise SlurmError(f"scontrol: error: Invalid {key} value: {value}")
        return {field: word in ("yes", "1")}

    return parse


_SPELLED = {
    "mincpusnode": "MinCPUsNode",
    "minmemorycpu": "MinMemoryCPU",
    "minmemorynode": "MinMemoryNode",
    "mintmpdisknode": "MinTmpDiskNode",
    "numtasks": "NumTasks",
    "reqcores": "ReqCores",
    "reqsockets": "ReqSockets",
    "reqthreads": "ReqThreads",
}

_TEXTS = {"comment": "comment", "stdout": "stdout"}
"""Texts that are written anew, and the attachments that hold them."""

_ASKS: dict[str, Callable[[str, str], dict[str, Any]]] = {  # Any: fields of AskChanges
    "excnodelist": _hosts("nodes_excluded"),
    "features": lambda key, value: {"features": value.replace(",", "&")},
    "licenses": lambda key, value: {"licenses": value},
    "mincpusnode": _counted("cpus_per_node_min"),
    "minmemorycpu": _memory(Per.CPU),
    "minmemorynode": _memory(Per.NODE),
    "mintmpdisknode": _counted("disk_mib"),
    "nodelist": _hosts("nodes_required"),
    "numnodes": _nodes,
    "numtasks": _counted("tasks"),
    "prefer": lambda key, value: {"preferred": value},
    "contiguous": _yes("contiguous"),
    "reqcores": _counted("cores_per_socket"),
    "reqsockets": _counted("sockets_per_node"),
    "reqthreads": _counted("threads_per_core"),
    "reqnodelist": _hosts("nodes_required"),
    "reqnodes": _nodes,
    "reservation": lambda key, value: {"reservation": value},
    "reservationname": lambda key, value: {"reservation": value},
}

_KEYS: dict[str, tuple[str, Callable[[str, Calendar], Any]]] = {  # Any: a field of JobChanges
    "account": ("account", _text),
    "arraytaskthrottle": ("throttle", _throttle),
    "deadline": ("deadline_ns", _moment_ns),
    "eligibletime": ("begin_ns", _moment_ns),
    "jobname": ("name", _text),
    "name": ("name", _text),
    "nice": ("nice", _nice),
    "partition": ("partitions", _partitions),
    "priority": ("priority", _priority),
    "qos": ("qos", _text),
    "requeue": ("requeue", _requeue),
    "starttime": ("begin_ns", _moment_ns),
    "timelimit": ("time_limit_s", _limit),
    "timemin": ("time_limit_min_s", _limit),
}

_OPTIONS = {"mailtype": "mail-type", "mailuser": "mail-user", "switches": "switches"}
"""Keys that write an option of the submission anew, and its long name."""

_REFUSED = {
    "burstbuffer": "unsupported",
    "corespec": "not-permitted",
    "oversubscribe": "not-permitted",
    "shared": "not-permitted",
    "threadspec": "not-permitted",
}
"""Keys that Slurm refuses to users as well; what it refuses them with."""

_OPERATORS = frozenset({"admincomment", "sitefactor"})
"""Keys that operators alone may name."""

_TOUCHED = _OPERATORS | {"delayboot", "resetaccruetime", "user", "userid", "wckey"}
"""Keys that are taken and change nothing here."""

_KNOWN = frozenset(
    {*_KEYS, *_ASKS, *_TEXTS, *_OPTIONS, *_REFUSED, *_TOUCHED} | {"dependency", "endtime", "gres"}
)
