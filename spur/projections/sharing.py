"""Equal values kept once: thousands of jobs ask for the same, and memory is a published figure.

This is a cache beside the tables, in no journal, snapshot nor digest. What it returns equals what
it was given, so it may forget at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from spur.values.ids import PartitionName
from spur.values.jobspec import JobSpec, ResourceAsk, shape_of

if TYPE_CHECKING:
    from spur.projections.jobs import JobRow

__all__ = ["Shared"]

_REMEMBERED_MAX = 65_536
"""Values of one kind. Beyond, all are forgotten: sharing begins anew and nothing grows."""

V = TypeVar("V", str, int, ResourceAsk, tuple[PartitionName, ...])


class Shared:
    """The values that were met so far."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._numbers: dict[int, int] = {}
        self._asks: dict[ResourceAsk, ResourceAsk] = {}
        self._shapes: dict[ResourceAsk, bytes] = {}
        self._partitions: dict[tuple[PartitionName, ...], tuple[PartitionName, ...]] = {}

    def number(self, value: int) -> int:
        """Return this number: a uid, a gid."""
        return self._numbers.get(value) or _keep(self._numbers, value)

    def shape(self, ask: ResourceAsk) -> bytes:
        """Return the ask's shape."""
        found = self._shapes.get(ask)
        if found is None:
            if len(self._shapes) >= _REMEMBERED_MAX:
                self._shapes.clear()
            found = self._shapes[ask] = shape_of(ask)
        return found

    def job(self, row: JobRow) -> JobRow:
        """Return this row of a job, made of values that other rows have as well."""
        return replace(
            row, uid=self.number(row.uid), gid=self.number(row.gid), spec=self.spec(row.spec)
        )

    def spec(self, spec: JobSpec) -> JobSpec:
        """Return this spec, made of values that other specs have as well."""
        texts, asks, partitions = self._texts, self._asks, self._partitions
        name, account, qos, ask = spec.name, spec.account, spec.qos, spec.ask
        return JobSpec(
            texts.get(name) or _keep(texts, name),
            partitions.get(spec.partitions) or _keep(partitions, spec.partitions),
            texts.get(account) or _keep(texts, account),
            texts.get(qos) or _keep(texts, qos),
            asks.get(ask) or _keep(asks, ask),
            spec.time_limit_s,
            spec.begin_ns,
            spec.nice,
            spec.requeue,
            spec.batch,
            spec.deadline_ns,
            spec.dependency,
            spec.kill_on_invalid_dependency,
            spec.time_limit_min_s,
        )


def _keep(known: dict[V, V], value: V) -> V:
    """Remember a value that was not met before, and return it."""
    if len(known) >= _REMEMBERED_MAX:
        known.clear()
    known[value] = value
    return value
