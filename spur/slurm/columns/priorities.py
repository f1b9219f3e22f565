"""The columns of sprio: what a waiting job's priority is made of.

Factors that the scheduler does not rank by are 0, as Slurm's are where their weight is 0.
Source: sprio(1) --format; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from spur.slurm.columns.jobline import NULL, JobLine, priority
from spur.slurm.formats import Column

__all__ = ["BY_LETTER", "PRIORITY_COLUMNS", "PriorityLine", "Weights", "default_format"]

_MANUAL = "sprio(1) --format"


class Weights(NamedTuple):
    """What the configuration weighs factors by; 0 for those that do not count."""

    age: int = 0
    association: int = 0
    share: int = 0
    size: int = 0
    partition: int = 0
    qos: int = 0
    resources: str = ""
    """Slurm's words of PriorityWeightTRES."""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Weights:
        """Return those of slurm.conf, whose names are given in small letters."""

        def number(name: str) -> int:
            text = parameters.get(f"priorityweight{name}", "0")
            return int(text) if text.isascii() and text.isdigit() else 0

        return cls(
            number("age"),
            number("assoc"),
            number("fairshare"),
            number("jobsize"),
            number("partition"),
            number("qos"),
            parameters.get("priorityweighttres", ""),
        )


class PriorityLine(NamedTuple):
    """A job that waits, in one of its partitions; or the weights."""

    job: JobLine | None
    """None for the line of weights."""
    partition: str
    weights: Weights


def _of_job(value: Callable[[JobLine], str]) -> Callable[[PriorityLine], str]:
    return lambda line: "" if line.job is None else value(line.job)


def _weight(name: str, share: str = "0") -> Callable[[PriorityLine], str]:
    return lambda line: share if line.job is not None else str(getattr(line.weights, name))


def _job_id(line: PriorityLine) -> str:
    return "Weights" if line.job is None else str(line.job.job.array_id or line.job.job.job_id)


def _resources(zero: str) -> Callable[[PriorityLine], str]:
    def value(line: PriorityLine) -> str:
        if line.job is None:
            return line.weights.resources
        if not line.weights.resources:
            return ""
        names = [word.partition("=")[0].lower() for word in line.weights.resources.split(",")]
        has_gpus = any(ask.count for ask in line.job.job.spec.ask.gres)
        return ",".join(
            f"{name}={zero}" for name in names if has_gpus or not name.startswith("gres/")
        )

    return value


def _fraction(line: JobLine) -> str:
    return f"{priority(line) / ((1 << 32) - 1):.8f}"


_ZERO = "0.0000000"


def _row(letter: str, header: str, value: Callable[[PriorityLine], str]) -> Column[PriorityLine]:
    return Column("", letter, header, value, "", _MANUAL)


PRIORITY_COLUMNS: tuple[Column[PriorityLine], ...] = (
    _row("a", "AGE", _weight("age", _ZERO)),
    _row("A", "AGE", _weight("age")),
    _row("b", "ASSOC", _weight("association", _ZERO)),
    _row("B", "ASSOC", _weight("association")),
    _row("c", "CLUSTER", _of_job(lambda line: line.cluster or NULL)),
    _row("f", "FAIRSHARE", _weight("share", _ZERO)),
    _row("F", "FAIRSHARE", _weight("share")),
    _row("i", "JOBID", _job_id),
    _row("j", "JOBSIZE", _weight("size", _ZERO)),
    _row("J", "JOBSIZE", _weight("size")),
    _row("n", "QOSNAME", _of_job(lambda line: line.job.spec.qos or NULL)),
    _row("N", "NICE", _of_job(lambda line: str(line.job.spec.nice))),
    _row("o", "ACCOUNT", _of_job(lambda line: line.job.spec.account or NULL)),
    _row("p", "PARTITION", _weight("partition", _ZERO)),
    _row("P", "PARTITION", _weight("partition")),
    _row("q", "QOS", _weight("qos", _ZERO)),
    _row("Q", "QOS", _weight("qos")),
    _row("r", "PARTITION", lambda line: line.partition),
    _row("s", "SITE", lambda line: _ZERO if line.job is not None else "1"),
    _row("S", "SITE", lambda line: "0" if line.job is not None else "1"),
    _row("t", "TRES", _resources("0.00")),
    _row("T", "TRES", _resources("0")),
    _row("u", "USER", _of_job(lambda line: line.user(line.job.uid))),
    _row("y", "PRIORITY", _of_job(_fraction)),
    _row("Y", "PRIORITY", _of_job(lambda line: str(priority(line)))),
)

BY_LETTER = {column.letter: column for column in PRIORITY_COLUMNS}


def default_format(
    weights: Weights, *, is_long: bool, is_normal: bool, with_user: bool, with_weights: bool
) -> str:
    """Return the format of a report: factors without weight are left out unless it is long."""
    words = ["%.15i", "%9r"]
    if is_long or (with_user and not with_weights):
        words.append("%.8u")
    words.append("%10y" if is_normal else "%.10Y")
    if not is_normal:
        words.append("%.10S")
    for letter, weight in zip("abfjpq", weights[:6], strict=True):
        if is_long or weight:
            words.append(f"%10{letter}" if is_normal else f"%.10{letter.upper()}")
    if is_long and not is_normal:
        words.append("%.11N")
    if is_long or weights.resources:
        words.append("%20t" if is_normal else "%.20T")
    return " ".join(words)
