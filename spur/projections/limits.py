"""Limits of associations and QOS on what runs at a time: one row of a table each.

Limits of a QOS come first, then those of the association, then those of the accounts above it; a
limit that an earlier one has too, on the same thing, is that one's. A limit on a group counts what
all jobs below it hold. Whether they are in force says AccountingStorageEnforce.

Source: "Resource Limits" of Slurm's documentation; sacctmgr(1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from spur.projections.accounts import account_above, association_for
from spur.projections.cluster import parameter_of
from spur.projections.resources import held_shares
from spur.values.accounts import AssociationKey, Settings, Subject, number_setting
from spur.values.ids import PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Reason
from spur.values.tres import NodeShare, gpu_indexes

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "Limit",
    "Scope",
    "add_to",
    "broken_limit",
    "enforced",
    "held_by_scope",
    "held_of",
    "limits_of",
    "line_of_job",
    "scopes_of",
]

Scope = tuple[str, ...]
"""Whose jobs are counted together: an association, a QOS, or a user or account within a QOS."""

JOBS = "jobs"
"""How many jobs run, beside the names of resources."""

WALL = "wall"
"""Seconds of a job's time limit, beside the names of resources."""

_ALL = frozenset({"associations", "limits", "qos", "wckeys"})

_IMPLIED = {
    "limits": frozenset({"associations"}),
    "qos": frozenset({"associations"}),
    "safe": frozenset({"associations", "limits"}),
    "wckeys": frozenset({"associations"}),
    "all": _ALL,
}
"""What a word of AccountingStorageEnforce brings with it."""


class _Of(Enum):
    """What a limit is on."""

    GROUP = "all jobs of the association and those below it, or of the QOS"
    OWN = "all jobs of the association itself"
    USER = "a user's jobs of the QOS"
    ACCOUNT = "an account's jobs of the QOS"
    JOB = "each job"
    NODE = "each node of a job"
    LEAST = "each job, which must ask for as much"


class Limit(NamedTuple):
    """One limit on a job."""

    of: _Of
    scope: Scope
    """Empty where each job is judged by itself."""
    what: str
    """JOBS, WALL, or the name of a resource."""
    most: int
    reason: Reason


class _Row(NamedTuple):
    """A setting that is a limit."""

    subject: Subject
    setting: str
    of: _Of
    reasons: Mapping[str, Reason]
    """By JOBS, WALL, or the kind of resource: cpu, mem, node or gres."""


_QOS, _ASSOC = Subject.QOS, Subject.ASSOCIATION
_R = Reason


def _of_kinds(cpu: Reason, mem: Reason, node: Reason, gres: Reason) -> dict[str, Reason]:
    return {"cpu": cpu, "mem": mem, "node": node, "gres": gres}


_GRP_QOS = _of_kinds(_R.QOS_GRP_CPU, _R.QOS_GRP_MEMORY, _R.QOS_GRP_NODE, _R.QOS_GRP_GRES)
_GRP_ASSOC = _of_kinds(_R.ASSOC_GRP_CPU, _R.ASSOC_GRP_MEMORY, _R.ASSOC_GRP_NODE, _R.ASSOC_GRP_GRES)
_USER = _of_kinds(
    _R.QOS_MAX_CPU_PER_USER,
    _R.QOS_MAX_MEMORY_PER_USER,
    _R.QOS_MAX_NODE_PER_USER,
    _R.QOS_MAX_GRES_PER_USER,
)
_ACCOUNT = _of_kinds(
    _R.QOS_MAX_CPU_PER_ACCOUNT,
    _R.QOS_MAX_MEMORY_PER_ACCOUNT,
    _R.QOS_MAX_NODE_PER_ACCOUNT,
    _R.QOS_MAX_GRES_PER_ACCOUNT,
)
_JOB_QOS = _of_kinds(
    _R.QOS_MAX_CPU_PER_JOB,
    _R.QOS_MAX_MEMORY_PER_JOB,
    _R.QOS_MAX_NODE_PER_JOB,
    _R.QOS_MAX_GRES_PER_JOB,
)
_JOB_ASSOC = _of_kinds(
    _R.ASSOC_MAX_CPU_PER_JOB,
    _R.ASSOC_MAX_MEMORY_PER_JOB,
    _R.ASSOC_MAX_NODE_PER_JOB,
    _R.ASSOC_MAX_GRES_PER_JOB,
)
_NODE = {"cpu": _R.QOS_MAX_CPU_PER_NODE, "gres": _R.QOS_MAX_GRES_PER_NODE}
_LEAST = _of_kinds(_R.QOS_MIN_CPU, _R.QOS_MIN_MEMORY, _R.QOS_MIN_NODE, _R.QOS_MIN_GRES)

_ROWS = (
    _Row(_QOS, "GrpJobs", _Of.GROUP, {JOBS: _R.QOS_GRP_JOBS}),
    _Row(_QOS, "MaxJobsPerAccount", _Of.ACCOUNT, {JOBS: _R.QOS_MAX_JOBS_PER_ACCOUNT}),
    _Row(_QOS, "MaxJobsPerUser", _Of.USER, {JOBS: _R.QOS_MAX_JOBS_PER_USER}),
    _Row(_QOS, "MaxWallDurationPerJob", _Of.JOB, {WALL: _R.QOS_MAX_WALL_PER_JOB}),
    _Row(_QOS, "GrpTRES", _Of.GROUP, _GRP_QOS),
    _Row(_QOS, "MaxTRESPerJob", _Of.JOB, _JOB_QOS),
    _Row(_QOS, "MaxTRESPerAccount", _Of.ACCOUNT, _ACCOUNT),
    _Row(_QOS, "MaxTRESPerUser", _Of.USER, _USER),
    _Row(_QOS, "MaxTRESPerNode", _Of.NODE, _NODE),
    _Row(_QOS, "MinTRESPerJob", _Of.LEAST, _LEAST),
    _Row(_ASSOC, "GrpJobs", _Of.GROUP, {JOBS: _R.ASSOC_GRP_JOBS}),
    _Row(_ASSOC, "MaxJobs", _Of.OWN, {JOBS: _R.ASSOC_MAX_JOBS}),
    _Row(_ASSOC, "MaxWallDurationPerJob", _Of.JOB, {WALL: _R.ASSOC_MAX_WALL_PER_JOB}),
    _Row(_ASSOC, "GrpTRES", _Of.GROUP, _GRP_ASSOC),
    _Row(_ASSOC, "MaxTRESPerJob", _Of.JOB, _JOB_ASSOC),
)
"""In the order in which they are looked at; the first that is broken gives the reason."""


def enforced(state: State) -> frozenset[str]:
    """Return what jobs are refused or kept waiting for, of AccountingStorageEnforce's words."""
    words = parameter_of(state, "AccountingStorageEnforce").lower().split(",")
    return frozenset(words).union(*(_IMPLIED.get(word, ()) for word in words))


# -- which limits a job has
def limits_of(state: State, spec: JobSpec, uid: int, partition: PartitionName) -> tuple[Limit, ...]:
    """Return the limits on a job that runs in a partition; none where they are not enforced."""
    key = (uid, spec.account, spec.qos, partition)
    found: tuple[Limit, ...] = state.of_priorities.get(
        key, lambda: _read(state, spec, uid, partition)
    )
    return found


def _read(state: State, spec: JobSpec, uid: int, partition: PartitionName) -> tuple[Limit, ...]:
    if not state.associations.rows or "limits" not in enforced(state):
        return ()
    found: list[Limit] = []
    qos = state.qos.get(spec.qos)
    if qos is not None:
        scopes = _qos_scopes(spec, uid)
        for row in _ROWS:
            if row.subject is _QOS:
                found += _of_row(row, qos.settings, scopes.get(row.of, ()))
    known = {(limit.of, limit.what) for limit in found}
    line = line_of_job(state, uid, spec, partition)
    for key in line:
        scopes = {_Of.GROUP: ("association", *key), _Of.OWN: ("own", *line[0])}
        here = [
            limit
            for row in _ROWS
            if row.subject is _ASSOC
            for limit in _of_row(row, state.associations[key].settings, scopes.get(row.of, ()))
        ]
        found += [limit for limit in here if (limit.of, limit.what) not in known]
        # Groups count at each level; all else is that of the nearest who has it.
        known |= {(limit.of, limit.what) for limit in here if limit.of is not _Of.GROUP}
    return tuple(found)


def _of_row(row: _Row, settings: Settings, scope: Scope) -> Iterable[Limit]:
    """Yield the limits that a row finds in settings."""
    for what, reason in row.reasons.items():
        if what in (JOBS, WALL):
            most = number_setting(settings, row.setting)
            if most is not None:
                yield Limit(row.of, scope, what, most, reason)
            continue
        for setting in settings:
            is_kind = setting.resource.partition("/")[0] == what
            if setting.name == row.setting and is_kind and isinstance(setting.value, int):
                yield Limit(row.of, scope, setting.resource, setting.value, reason)


def _qos_scopes(spec: JobSpec, uid: int) -> dict[_Of, Scope]:
    return {
        _Of.GROUP: ("qos", spec.qos),
        _Of.USER: ("qos-user", spec.qos, str(uid)),
        _Of.ACCOUNT: ("qos-account", spec.qos, spec.account),
    }


def line_of_job(
    state: State, uid: int, spec: JobSpec, partition: PartitionName
) -> tuple[AssociationKey, ...]:
    """Return the association that a job counts for, and those above it, the nearest first."""
    found: list[AssociationKey] = []
    here = association_for(state, uid, spec.account, partition)
    while here is not None:
        row = state.associations.get(here)
        if row is None:
            break
        found.append(here)
        above = account_above(here, row)
        here = (above, "", "") if above else None
    return tuple(found)


def scopes_of(state: State, spec: JobSpec, uid: int, partition: PartitionName) -> tuple[Scope, ...]:
    """Return every scope that a job counts in, once it runs in a partition."""
    line = line_of_job(state, uid, spec, partition)
    own = (("own", *line[0]),) if line else ()
    return (
        *_qos_scopes(spec, uid).values(),
        *own,
        *(("association", *key) for key in line),
    )


# -- what is held
def held_by_scope(state: State) -> dict[Scope, dict[str, int]]:
    """Return what the jobs of each scope hold now, by JOBS and the names of resources."""
    found: dict[Scope, dict[str, int]] = {}
    allocations = state.allocations
    running = {job_id for node in allocations.nodes() for job_id in allocations.use(node).jobs}
    for job_id in sorted(running):
        job, run = state.jobs[job_id], state.runs[job_id]
        if run.started is not None:
            held = held_of(state, held_shares(run))
            for scope in scopes_of(state, job.spec, job.uid, run.started.partition):
                add_to(found.setdefault(scope, {}), held)
    return found


def held_of(state: State, shares: Iterable[NodeShare]) -> dict[str, int]:
    """Return what one job holds with these shares."""
    found = {JOBS: 1, "cpu": 0, "mem": 0, "node": 0}
    for share in shares:
        found["cpu"] += share.cpus
        found["mem"] += share.memory_mib
        found["node"] += 1
        if share.gpus:
            _count_gpus(state, share, found)
    return found


def _count_gpus(state: State, share: NodeShare, found: dict[str, int]) -> None:
    """Count the GPUs of a share, each as one of its kind too."""
    key = state.block_of_node.key(share.node)
    row = None if key is None else state.node_blocks.get(key)
    indexes = gpu_indexes(share.gpus)
    found["gres/gpu"] = found.get("gres/gpu", 0) + len(indexes)
    first = 0
    for pool in () if row is None else row.block.gres:
        if pool.name != "gpu":
            continue
        count = sum(first <= index < first + pool.count for index in indexes)
        first += pool.count
        if count and pool.kind:
            name = f"gres/gpu:{pool.kind}"
            found[name] = found.get(name, 0) + count


def add_to(total: dict[str, int], held: Mapping[str, int]) -> None:
    """Add what one job holds."""
    for name, count in held.items():
        total[name] = total.get(name, 0) + count


# -- judging
def broken_limit(
    limits: Iterable[Limit],
    asked: Mapping[str, int],
    *,
    limit_s: int,
    nodes: int,
    held: Callable[[Scope], Mapping[str, int]],
) -> Reason:
    """Return the reason of the first limit that a job would break now; NONE when none.

    `asked` is by the names of resources, for the whole job on so many nodes; `limit_s` is 0 for a
    job that may run on and on.
    """
    for limit in limits:
        if limit.what == WALL:
            is_broken = not limit_s or limit_s > limit.most
        else:
            count = 1 if limit.what == JOBS else asked.get(limit.what, 0)
            if limit.of is _Of.LEAST:
                is_broken = count < limit.most
            elif limit.of is _Of.NODE:
                is_broken = -(-count // max(nodes, 1)) > limit.most
            elif limit.of is _Of.JOB:
                is_broken = count > limit.most
            else:
                is_broken = held(limit.scope).get(limit.what, 0) + count > limit.most
        if is_broken:
            return limit.reason
    return Reason.NONE
