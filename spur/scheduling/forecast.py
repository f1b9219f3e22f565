"""When a job would start that was not submitted: now, or once enough of what runs has ended.

It is an estimate from the time limits of what runs. Jobs that wait and might go first do not count.
Source: sbatch(1) --test-only.
"""

from __future__ import annotations

from typing import NamedTuple

from spur.projections.cluster import settings_of
from spur.projections.state import State
from spur.scheduling.choose import choose, shares_of
from spur.scheduling.filters import Sorter
from spur.scheduling.need import Need, counts_memory, need_of
from spur.scheduling.reserve import UNLIMITED_NS, reserve
from spur.scheduling.sites import Sites
from spur.values.ids import NodeName, PartitionName
from spur.values.jobspec import JobSpec

__all__ = ["Forecast", "could_start", "forecast"]


class Forecast(NamedTuple):
    """A start that nothing promises."""

    start_ns: int
    partition: PartitionName
    nodes: tuple[NodeName, ...]
    cpus: int


def forecast(state: State, spec: JobSpec, now_ns: int) -> Forecast | None:
    """Return the earliest start in one of the job's partitions; None while nodes are out of use.

    The partitions must be known.
    """
    found = [_in_partition(state, spec, name, now_ns) for name in spec.partitions]
    starts = [each for each in found if each is not None]
    return min(starts, key=lambda each: each.start_ns) if starts else None


def could_start(state: State, spec: JobSpec) -> bool:
    """Return whether the job would start if all nodes of one of its partitions were idle."""
    for name in spec.partitions:
        need = _need(state, spec, name)
        sorting = Sorter(Sites.of(state)).sort(need, name)
        if choose(need, [site.emptied() for site in (*sorting.usable, *sorting.out)]) is not None:
            return True
    return False


def _need(state: State, spec: JobSpec, name: PartitionName) -> Need:
    block = state.partitions[name].block
    return need_of(spec.ask, block, settings_of(state), counts_memory=counts_memory(state))


def _in_partition(state: State, spec: JobSpec, name: PartitionName, now_ns: int) -> Forecast | None:
    need = _need(state, spec, name)
    candidates = Sorter(Sites.of(state)).sort(need, name).usable
    start_ns = max(now_ns, spec.begin_ns)
    chosen = choose(need, candidates)
    if chosen is None:
        reservation = reserve(state, need, candidates, now_ns=now_ns, planned_ends={})
        if reservation.start_ns >= now_ns + UNLIMITED_NS:
            return None
        start_ns = max(start_ns, reservation.start_ns)
        idle = [site.emptied() for site in candidates if site.name in reservation.nodes]
        chosen = choose(need, idle)
    if chosen is None:
        return None
    shares = shares_of(need, chosen)
    return Forecast(
        start_ns, name, tuple(share.node for share in shares), sum(share.cpus for share in shares)
    )
