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
from spur.wire.jobs import JobChanges

__all__ = ["JobUpdate", "parse_job_update"]


class JobUpdate(NamedTuple):
    """What is asked for one job or more."""

    changes: JobChanges
    longer_by_s: int | None
    """Added to each job's own time limit, or taken off it; None for no such change."""


def parse_job_update(pairs: list[tuple[str, str]], calendar: Calendar) -> JobUpdate:
    """Read the changes; `pairs` are key and value as typed, the job's own name left out.

    Raises: SlurmError for a key that cannot be changed, or a bad value.
    """
    fields: dict[str, Any] = {}  # of the types of JobChanges
    longer_by_s = None
    for key, value in pairs:
        word = key.lower()
        if word == "timelimit" and value[:1] in ("+", "-") and value != "-1":
            longer_by_s = _time_limit(value[1:]) * (-1 if value[0] == "-" else 1)
            continue
        row = _KEYS.get(word)
        if row is None:
            raise SlurmError(
                f"Update of this parameter is not supported: {key}={value}", "Request aborted"
            )
        field, parse = row
        fields[field] = parse(value, calendar)
    return JobUpdate(JobChanges(**fields), longer_by_s)


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
    """Return the rank; -1 gives it back to the scheduler."""
    try:
        return -1 if value == "-1" else optionvalues.priority(value, "priority")
    except BadOption as error:
        raise SlurmError(f"scontrol: error: Invalid Priority value: {value}") from error


def _moment_ns(value: str, calendar: Calendar) -> int:
    try:
        return max(parse_moment(value, calendar), 0) * 1_000_000_000
    except MomentError as error:
        raise SlurmError(str(error), "scontrol: error: Invalid StartTime value") from error


def _dependency(value: str, calendar: Calendar) -> Dependency:
    try:
        return parse_dependency(value) or Dependency(False, ())
    except BadDependency as error:
        raise SlurmError("Job dependency problem for job", status=1) from error


def _throttle(value: str, calendar: Calendar) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise SlurmError("Invalid ArrayTaskThrottle value", "Request aborted")
    return int(value)


def _requeue(value: str, calendar: Calendar) -> bool:
    if value not in ("0", "1"):
        raise SlurmError(f"scontrol: error: Invalid Requeue value: {value}")
    return value == "1"


_KEYS: dict[str, tuple[str, Callable[[str, Calendar], Any]]] = {  # Any: a field of JobChanges
    "account": ("account", _text),
    "arraytaskthrottle": ("throttle", _throttle),
    "deadline": ("deadline_ns", _moment_ns),
    "dependency": ("dependency", _dependency),
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
}
