"""What a waiting job's priority is made of, as priority/multifactor reckons it.

    points = sum(weight * factor) - nice        shown as a whole number, at least 1

Factors are from 0 to 1. All but age are a function of the rows, so they are reckoned when a row is
shown or filed; age grows with time and is added by whoever knows what time it is (`Aging`). As long
as no use of resources is accounted, everybody with an association has the whole share.

Without PriorityType=priority/multifactor each job has one point, less its nice.

Source: slurm.conf(5) PriorityType, PriorityWeight*; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from spur.projections.accounts import EntityRow, association_for, line_above
from spur.values import timespec
from spur.values.accounts import inherited, number_setting
from spur.values.hostlist import parse_hostlist
from spur.values.ids import PartitionName
from spur.values.jobspec import JobSpec, ResourceAsk
from spur.values.tres import Per

if TYPE_CHECKING:
    from spur.projections.jobs import JobRow
    from spur.projections.runrows import RunRow
    from spur.projections.state import State

__all__ = [
    "POINTS_LEAST",
    "Factor",
    "Weights",
    "age_factor",
    "asked_of_job",
    "factors_of",
    "points_in",
    "points_of",
    "waits_since_ns",
    "weights_of",
]

POINTS_LEAST = 1
"""Of a job that may start; none has 0, which is a held job's."""

MAX_AGE_S = 7 * 86_400
"""Source: slurm.conf(5) PriorityMaxAge."""

PERIOD_S = 5 * 60
"""Source: slurm.conf(5) PriorityCalcPeriod."""

_NS = 1_000_000_000


class Weights(NamedTuple):
    """What the factors count."""

    is_multifactor: bool
    age: int
    max_age_s: int
    """Waiting time at which the factor of age is full."""
    period_s: int
    """In steps of which it grows, from when a job began to wait."""
    assoc: int
    fairshare: int
    job_size: int
    partition: int
    qos: int
    tres: tuple[tuple[str, float], ...]
    """By the resource's name in small letters, in the order of the file."""
    favors_small: bool


class Factor(NamedTuple):
    """One part of a priority."""

    name: str
    """As sprio calls it in small letters; a resource has its own name behind "tres/"."""
    value: float
    """From 0 to 1."""
    weight: float


class _Whole(NamedTuple):
    """What the whole cluster, or a partition, has of each resource."""

    tres: dict[str, int]
    nodes: int


def weights_of(state: State) -> Weights:
    """Return the weights that are in force."""
    found: Weights = state.of_priorities.get("weights", lambda: _read_weights(state))
    return found


def _read_weights(state: State) -> Weights:
    row = state.config.get(1)
    known = {} if row is None else {each.name: each.value for each in row.parameters}

    def number(name: str) -> int:
        text = known.get(f"PriorityWeight{name}", "")
        return int(text) if text.isascii() and text.isdigit() else 0

    return Weights(
        known.get("PriorityType", "").lower() == "priority/multifactor",
        number("Age"),
        _max_age_s(known.get("PriorityMaxAge", "")),
        _period_s(known.get("PriorityCalcPeriod", "")),
        number("Assoc"),
        number("Fairshare"),
        number("JobSize"),
        number("Partition"),
        number("QOS"),
        _tres_weights(known.get("PriorityWeightTRES", "")),
        known.get("PriorityFavorSmall", "").lower() in ("yes", "true", "1"),
    )


def _max_age_s(text: str) -> int:
    try:
        return timespec.parse_time_limit(text) or MAX_AGE_S
    except ValueError:
        return MAX_AGE_S


def _period_s(text: str) -> int:
    try:
        return timespec.parse_time_limit(text) or PERIOD_S
    except ValueError:
        return PERIOD_S


def _tres_weights(text: str) -> tuple[tuple[str, float], ...]:
    found = []
    for part in text.lower().split(","):
        name, _, weight = part.strip().partition("=")
        try:
            found.append((name, float(weight)))
        except ValueError:
            continue  # `spur conf check` told of it
    return tuple(found)


# -- what a job asks for
def asked_of_job(ask: ResourceAsk) -> dict[str, int]:
    """Return what a job asks for in all, by the resource's name: cpu, mem in MiB, node, gres."""
    nodes = ask.nodes_min
    cpus = nodes if ask.overcommit else max(ask.tasks * ask.cpus_per_task, nodes)
    found = {"cpu": cpus, "node": nodes}
    times = {Per.NODE: nodes, Per.TASK: ask.tasks, Per.SOCKET: max(ask.sockets_per_node, 1) * nodes}
    for asked in ask.gres:
        count = asked.count * times.get(asked.per, 1)
        names = (f"gres/{asked.name}", f"gres/{asked.name}:{asked.kind}" if asked.kind else "")
        for name in names:
            if name:
                found[name] = found.get(name, 0) + count
    per = {Per.CPU: cpus, Per.GPU: found.get("gres/gpu", 0)}.get(ask.memory_per, nodes)
    found["mem"] = max(ask.memory_mib, 0) * per
    return found


def _whole(state: State, partition: PartitionName | None) -> _Whole:
    """Return what a partition has, or the cluster."""
    found: _Whole = state.of_hardware.get(
        ("resources", partition), lambda: _count_whole(state, partition)
    )
    return found


def _count_whole(state: State, partition: PartitionName | None) -> _Whole:
    members: frozenset[str] | None = None
    if partition is not None:
        row = state.partitions.get(partition)
        members = frozenset() if row is None else frozenset(parse_hostlist(row.block.nodes))
    tres: dict[str, int] = {}
    nodes = 0
    for block_row in state.node_blocks.rows.values():
        block = block_row.block
        names = parse_hostlist(block.names)
        count = len(names) if members is None else sum(name in members for name in names)
        nodes += count
        each = {"cpu": block.cpus, "mem": block.memory_mib, "gres/gpu": block.gpus}
        for pool in block.gres:
            if pool.name != "gpu":
                each[f"gres/{pool.name}"] = each.get(f"gres/{pool.name}", 0) + pool.count
            if pool.kind:
                name = f"gres/{pool.name}:{pool.kind}"
                each[name] = each.get(name, 0) + pool.count
        for name, amount in each.items():
            tres[name] = tres.get(name, 0) + amount * count
    tres["node"] = nodes
    return _Whole(tres, nodes)


# -- factors
def factors_of(
    state: State, spec: JobSpec, uid: int, partition: PartitionName
) -> tuple[Factor, ...]:
    """Return what a job's priority in a partition is made of, but for its age and nice."""
    weights = weights_of(state)
    if not weights.is_multifactor:
        return ()
    asked = asked_of_job(spec.ask)
    return (*_own_factors(state, weights, spec, uid), *_in(state, weights, asked, partition))


def _own_factors(
    state: State, weights: Weights, spec: JobSpec, uid: int
) -> tuple[Factor, Factor, Factor]:
    """Return the factors that are the same in each partition."""
    key = association_for(state, uid, spec.account, spec.partitions[0])
    assoc = 0.0
    if key is not None and weights.assoc:
        own = inherited(line_above(state, key), "Priority")
        assoc = _of_highest(state, "assoc", own if isinstance(own, int) else 0)
    qos = state.qos.get(spec.qos)
    qos_value = 0.0
    if qos is not None and weights.qos:
        qos_value = _of_highest(state, "qos", number_setting(qos.settings, "Priority") or 0)
    return (
        Factor("assoc", assoc, weights.assoc),
        Factor("fairshare", 1.0 if key is not None else 0.0, weights.fairshare),
        Factor("qos", qos_value, weights.qos),
    )


def _of_highest(state: State, what: str, number: int) -> float:
    """Return a priority as a part of the highest of its kind."""
    rows: Iterable[EntityRow] = (
        state.qos.rows.values() if what == "qos" else state.associations.rows.values()
    )
    highest: int = state.of_priorities.get(
        what,
        lambda: max((number_setting(row.settings, "Priority") or 0 for row in rows), default=0),
    )
    return number / highest if highest else 0.0


def _in(
    state: State, weights: Weights, asked: dict[str, int], partition: PartitionName
) -> tuple[Factor, ...]:
    """Return the factors of a job's size and of the partition."""
    all_of, part_of = _whole(state, None), _whole(state, partition)
    size = 0.0
    if all_of.nodes:
        shares = (asked["node"] / all_of.nodes, asked["cpu"] / max(all_of.tres["cpu"], 1))
        size = min(sum(1 - share if weights.favors_small else share for share in shares) / 2, 1.0)
    highest: int = state.of_hardware.get(
        "highest job factor",
        lambda: max(row.block.priority_job_factor for row in state.partitions.rows.values()),
    )
    row = state.partitions.get(partition)
    factor = row.block.priority_job_factor / highest if row is not None and highest else 0.0
    tres = tuple(
        Factor(f"tres/{name}", _part(asked.get(name, 0), part_of.tres.get(name, 0)), weight)
        for name, weight in weights.tres
    )
    return (
        Factor("jobsize", size, weights.job_size),
        Factor("partition", factor, weights.partition),
        *tres,
    )


def _part(count: int, total: int) -> float:
    return count / total if total else 0.0


# -- points
def points_in(state: State, ask: ResourceAsk, partition: PartitionName) -> float:
    """Return the points that jobs of an ask have in a partition for their size and for it."""
    weights = weights_of(state)
    if not weights.is_multifactor:
        return float(POINTS_LEAST)
    factors = _in(state, weights, asked_of_job(ask), partition)
    return sum((factor.value * factor.weight for factor in factors), 0.0)


def points_of(state: State, job: JobRow, run: RunRow) -> float:
    """Return a job's points but for its age; an operator's number where one was fixed.

    Of several partitions the one counts where it runs, else the first.
    """
    if run.priority is not None:
        return float(run.priority)
    spec = job.spec
    partition = spec.partitions[0] if run.started is None else run.started.partition
    factors = factors_of(state, spec, job.uid, partition)
    if not factors:
        return float(POINTS_LEAST - spec.nice)
    return sum((factor.value * factor.weight for factor in factors), 0.0) - spec.nice


def waits_since_ns(job: JobRow, run: RunRow) -> int:
    """Return since when a job's age counts."""
    return max(run.since_ns, job.spec.begin_ns)


def age_factor(weights: Weights, waited_ns: int) -> float:
    """Return the factor of age of a job that waited so long."""
    waited_s = max(waited_ns, 0) // _NS
    return min(waited_s // weights.period_s * weights.period_s / weights.max_age_s, 1.0)
