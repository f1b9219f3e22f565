"""The columns of sprio: what a waiting job's priority is made of.

Source: sprio(1) --format; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from spur.slurm.columns.jobline import NULL, PRIORITY_MAX, JobLine, age_points, priority
from spur.slurm.formats import Column
from spur.wire.factors import FactorView

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
    factors: tuple[FactorView, ...] = ()
    """Of the job in this partition, but for its age."""

    @property
    def points(self) -> float:
        """Return what the job is worth in this partition."""
        if self.job is None:
            return 0.0
        job = self.job.job
        if job.priority is not None or not self.factors:
            return float(priority(self.job))
        own = sum(factor.value * factor.weight for factor in self.factors)
        return max(own + age_points(self.job) - job.spec.nice, 1.0)


def _of_job(value: Callable[[JobLine], str]) -> Callable[[PriorityLine], str]:
    return lambda line: "" if line.job is None else value(line.job)


_NAMES = {
    "association": "assoc",
    "share": "fairshare",
    "size": "jobsize",
    "partition": "partition",
    "qos": "qos",
}
"""Names of factors, by what their weight is called."""


def _weight(name: str, *, is_normal: bool = False) -> Callable[[PriorityLine], str]:
    """Return a factor of a job, from 0 to 1 or as points; or its weight."""

    def value(line: PriorityLine) -> str:
        weight: int = getattr(line.weights, name)
        if line.job is None:
            return str(weight)
        if name == "age":
            points = age_points(line.job)
            part = points / weight if weight else 0.0
        else:
            part = next((each.value for each in line.factors if each.name == _NAMES[name]), 0.0)
            points = part * weight
        return f"{part:.7f}" if is_normal else f"{points:.0f}"

    return value


def _job_id(line: PriorityLine) -> str:
    return "Weights" if line.job is None else str(line.job.job.array_id or line.job.job.job_id)


def _resources(*, is_normal: bool) -> Callable[[PriorityLine], str]:
    def value(line: PriorityLine) -> str:
        if line.job is None:
            return line.weights.resources
        found = []
        for each in line.factors:
            kind, _, name = each.name.partition("/")
            if kind == "tres" and each.value:
                shown = f"{each.value:.2f}" if is_normal else f"{each.value * each.weight:.0f}"
                found.append(f"{name}={shown}")
        return ",".join(found)

    return value


def _points(line: PriorityLine) -> str:
    return "" if line.job is None else str(int(line.points))


def _fraction(line: PriorityLine) -> str:
    if line.job is None:
        return ""
    return f"{int(line.points) * 10**8 // PRIORITY_MAX / 10**8:.8f}"  # Slurm cuts it


_ZERO = "0.0000000"


def _row(letter: str, header: str, value: Callable[[PriorityLine], str]) -> Column[PriorityLine]:
    return Column("", letter, header, value, "", _MANUAL)


PRIORITY_COLUMNS: tuple[Column[PriorityLine], ...] = (
    _row("a", "AGE", _weight("age", is_normal=True)),
    _row("A", "AGE", _weight("age")),
    _row("b", "ASSOC", _weight("association", is_normal=True)),
    _row("B", "ASSOC", _weight("association")),
    _row("c", "CLUSTER", _of_job(lambda line: line.cluster or NULL)),
    _row("f", "FAIRSHARE", _weight("share", is_normal=True)),
    _row("F", "FAIRSHARE", _weight("share")),
    _row("i", "JOBID", _job_id),
    _row("j", "JOBSIZE", _weight("size", is_normal=True)),
    _row("J", "JOBSIZE", _weight("size")),
    _row("n", "QOSNAME", _of_job(lambda line: line.job.spec.qos or NULL)),
    _row("N", "NICE", _of_job(lambda line: str(line.job.spec.nice))),
    _row("o", "ACCOUNT", _of_job(lambda line: line.job.spec.account or NULL)),
    _row("p", "PARTITION", _weight("partition", is_normal=True)),
    _row("P", "PARTITION", _weight("partition")),
    _row("q", "QOS", _weight("qos", is_normal=True)),
    _row("Q", "QOS", _weight("qos")),
    _row("r", "PARTITION", lambda line: line.partition),
    _row("s", "SITE", lambda line: _ZERO if line.job is not None else "1"),
    _row("S", "SITE", lambda line: "0" if line.job is not None else "1"),
    _row("t", "TRES", _resources(is_normal=True)),
    _row("T", "TRES", _resources(is_normal=False)),
    _row("u", "USER", _of_job(lambda line: line.user(line.job.uid))),
    _row("y", "PRIORITY", _fraction),
    _row("Y", "PRIORITY", _points),
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
