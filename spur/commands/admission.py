"""Admission: what a submission must be to be accepted, under limits that have names.

Whether a job can run now is the scheduler's question; here it is only kept from asking for what
has no meaning, or for more than one user or one cluster may keep.
"""

from __future__ import annotations

import msgspec

from spur.commands.accounting import accounted_spec
from spur.commands.decide import Context
from spur.commands.licenses import refuse_licenses
from spur.commands.nodeasks import refuse_nodes, with_default_memory
from spur.commands.partitionlimits import refuse_by_partitions
from spur.commands.permissions import Role, role_of
from spur.commands.submitlimits import refuse_over_submit_limits
from spur.projections.attachments import AMENDED_NAMES, SUBMITTED_NAMES
from spur.projections.cluster import settings_of
from spur.projections.partitions import default_partition
from spur.projections.state import State
from spur.values.arrays import TaskSet
from spur.values.config import OverSubscribe, PartitionState
from spur.values.dependencies import CONDITIONS_MAX
from spur.values.errors import Rejection
from spur.values.ids import PartitionName
from spur.values.jobspec import JobSpec, ResourceAsk, Sharing, decode_text
from spur.values.tres import Per
from spur.wire.declare import Attachment
from spur.wire.jobs import SubmitJob

__all__ = [
    "ENVIRONMENT_BYTES_MAX",
    "LIVE_BLOB_BYTES_MAX",
    "LIVE_BLOB_BYTES_PER_USER_MAX",
    "SCRIPT_BYTES_MAX",
    "TEXT_BYTES_MAX",
    "placed_spec",
    "refuse_amendments",
    "refuse_change",
    "refuse_submission",
]

SCRIPT_BYTES_MAX = 4 << 20
"""Source: LOG-CONTRACT 2.3."""

ENVIRONMENT_BYTES_MAX = 1 << 20
"""Source: LOG-CONTRACT 2.3."""

TEXT_BYTES_MAX = 256 << 10
"""Working directory, arguments, paths and comment together. Arguments of one command are seldom
more than a kernel's 128 KiB page of them."""

LIVE_BLOB_BYTES_PER_USER_MAX = 1 << 30
"""Attachments of one user's jobs in the state. Source: LOG-CONTRACT 2.3."""

LIVE_BLOB_BYTES_MAX = 16 << 30
"""Attachments of all jobs in the state. Source: LOG-CONTRACT 2.3."""

PATH_BYTES_MAX = 4_096
"""Of a path that is written anew, as the kernel has it."""

_BYTES_MAX = {
    "comment": 64 << 10,
    "mail": 4 << 10,
    "notice": 4 << 10,
    "options": 64 << 10,
    "stdout": PATH_BYTES_MAX,
    "script": SCRIPT_BYTES_MAX,
    "environment": ENVIRONMENT_BYTES_MAX,
    "text": TEXT_BYTES_MAX,
}

NAME_LETTERS_MAX = 1_024
"""Of a job, an account, a QOS, a partition. Slurm cuts names for display at far fewer."""

LIST_LETTERS_MAX = 65_536
"""Of a constraint, licences, a host list."""

PARTITIONS_MAX = 64
"""Partitions that one job may name."""

GRES_MAX = 16
"""Generic resources that one job may ask for."""

COUNT_MAX = (1 << 31) - 1
"""Nodes, tasks, CPUs, MiB, devices, seconds: what Slurm keeps in 32 bits."""

TIME_LIMIT_S_MAX = (1 << 32) - 1
"""136 years: with the present time added, its nanoseconds fit into 63 bits."""

NICE_MAX = 2_147_483_645
"""Source: sbatch(1) --nice."""


def _invalid(text: str) -> Rejection:
    return Rejection("invalid-value", f"{text}; nothing was changed")


def _over(name: str, limit: int, found: int) -> Rejection:
    return Rejection(
        "limit-exceeded", f"{name} is {limit}, and this needs {found}; nothing was changed"
    )


def placed_spec(state: State, spec: JobSpec, context: Context) -> JobSpec | Rejection:
    """Return the spec with what the site gives to those who name no partition, memory, account."""
    if not spec.partitions:
        default = default_partition(state)
        if default is None:
            return Rejection(
                "unknown-partition",
                "no partition is named and none is the default; nothing was changed",
                "name one with --partition",
            )
        spec = msgspec.structs.replace(spec, partitions=(default,))
    ask = with_default_memory(state, spec.partitions[0], spec.ask)
    block = None if (row := state.partitions.get(spec.partitions[0])) is None else row.block
    if block is not None and block.over_subscribe is OverSubscribe.EXCLUSIVE:
        if ask.sharing in (Sharing.PARTITION, Sharing.OVERSUBSCRIBE):
            ask = msgspec.structs.replace(ask, sharing=Sharing.EXCLUSIVE)
    if ask is not spec.ask:
        spec = msgspec.structs.replace(spec, ask=ask)
    is_operator = role_of(state, context.actor) >= Role.OPERATOR
    return accounted_spec(state, spec, uid=context.actor.uid, is_operator=is_operator)


def refuse_submission(
    state: State, request: SubmitJob, context: Context, *, come: int = 1
) -> Rejection | None:
    """Return why a submission that names its partitions is not accepted, or None.

    `come` says how many jobs come with it, itself included.
    """
    spec = request.spec
    refused = (
        _refuse_partitions(state, spec.partitions)
        or _refuse_spec(spec)
        or refuse_nodes(state, spec.ask)
        or _refuse_site(state, spec.ask)
        or _refuse_nice(state, spec.nice, context)
        or _refuse_priority(state, request.priority, context)
        or _refuse_attachments(request.attachments, batch=spec.batch)
        or _refuse_live_blobs(state, context)
    )
    if refused is not None:
        return refused
    if 0 < spec.deadline_ns <= context.now_ns:
        return Rejection("invalid-deadline", "the deadline is over already; nothing was changed")
    # There is a partition, so there is a configuration.
    settings = settings_of(state)
    if len(state.jobs) + come > settings.job_count_max:
        return _over("job-count-max", settings.job_count_max, len(state.jobs) + come)
    refused = _refuse_array(request, settings.array_size_max)
    if refused is not None:
        return refused
    jobs = come if request.tasks is None else request.tasks.count
    return refuse_over_submit_limits(
        state, spec, uid=context.actor.uid, come=jobs
    ) or refuse_by_partitions(state, request, context)


def _refuse_site(state: State, ask: ResourceAsk) -> Rejection | None:
    """Return why an ask names licences that are not there, or a reservation, or None."""
    if ask.reservation:
        text = f"there is no reservation {ask.reservation!r}"
        return Rejection("unknown-reservation", f"{text}; nothing was changed")
    return refuse_licenses(state, ask.licenses)


def _refuse_priority(state: State, priority: int | None, context: Context) -> Rejection | None:
    if priority is None:
        return None
    if role_of(state, context.actor) < Role.OPERATOR:
        return Rejection("not-permitted", "a fixed priority takes an operator; nothing was changed")
    if not 0 <= priority <= COUNT_MAX:
        return _invalid(f"priority {priority} is not from 0 to {COUNT_MAX}")
    return None


def _refuse_array(request: SubmitJob, array_size_max: int) -> Rejection | None:
    if not 0 <= request.throttle <= COUNT_MAX:
        return _invalid(f"a throttle of {request.throttle} tasks is not from 0 to {COUNT_MAX}")
    if request.tasks is None:
        return _invalid("a throttle without an array") if request.throttle else None
    return _refuse_tasks(request.tasks, array_size_max)


def _refuse_tasks(tasks: TaskSet, array_size_max: int) -> Rejection | None:
    """Return why a set of tasks is none that an array may have, or None."""
    before = -1
    for first, last, step in tasks.ranges:
        if first <= before or last < first or step < 1 or (last - first) % step:
            return _no_array(f"the range {first}-{last}:{step} of array tasks is malformed")
        before = last
    if not tasks.ranges:
        return _no_array("an array without tasks")
    if before >= array_size_max:
        return _no_array(f"array-size-max is {array_size_max}, and this needs {before + 1}")
    return None


def _no_array(text: str) -> Rejection:
    return Rejection("invalid-array", f"{text}; nothing was changed")


def refuse_change(
    state: State, former: JobSpec, wanted: JobSpec, context: Context
) -> Rejection | None:
    """Return why a spec can't take the place of another, or None; what stays is not judged."""
    refused = _refuse_spec(wanted)
    if refused is None and wanted.partitions != former.partitions:
        refused = _refuse_partitions(state, wanted.partitions)
    if refused is None and wanted.ask.licenses != former.ask.licenses:
        refused = refuse_licenses(state, wanted.ask.licenses)
    if refused is None and wanted.ask != former.ask:
        refused = refuse_nodes(state, wanted.ask)
    if refused is None and wanted.ask.reservation != former.ask.reservation:
        refused = _refuse_site(state, wanted.ask)
    if refused is None and wanted.nice != former.nice:
        refused = _refuse_nice(state, wanted.nice, context)
    return refused


def _refuse_spec(spec: JobSpec) -> Rejection | None:
    """Return why a spec asks for what has no meaning anywhere, or None."""
    ask = spec.ask
    names = (spec.name, spec.account, spec.qos, ask.reservation, *spec.partitions)
    lists = (
        ask.features,
        ask.licenses,
        ask.nodes_required,
        ask.nodes_excluded,
        ask.preferred,
    )
    for text in names:
        if len(text) > NAME_LETTERS_MAX:
            return _over("name-letters-max", NAME_LETTERS_MAX, len(text))
    for text in lists:
        if len(text) > LIST_LETTERS_MAX:
            return _over("list-letters-max", LIST_LETTERS_MAX, len(text))
    everything = "".join((*names, *lists))
    if "\0" in everything or "\n" in everything:
        return _invalid("a name or a list has a line break or a NUL")
    if len(spec.partitions) > PARTITIONS_MAX:
        return _over("partitions-max", PARTITIONS_MAX, len(spec.partitions))
    if spec.time_limit_s is not None and not 0 <= spec.time_limit_s <= TIME_LIMIT_S_MAX:
        return _invalid(
            f"a time limit of {spec.time_limit_s} s is not from 0 to {TIME_LIMIT_S_MAX}"
        )
    least_s = spec.time_limit_min_s
    if least_s and spec.time_limit_s and least_s > spec.time_limit_s:
        return Rejection(
            "invalid-time-min", "the least time limit is over the time limit; nothing was changed"
        )
    if least_s is not None and not 0 <= least_s <= TIME_LIMIT_S_MAX:
        return _invalid(f"a least time limit of {least_s} s is not from 0 to {TIME_LIMIT_S_MAX}")
    for name, moment_ns in (("begin", spec.begin_ns), ("end", spec.deadline_ns)):
        if not 0 <= moment_ns < 1 << 63:
            return _invalid(f"{moment_ns} ns is no time to {name} at")
    dependency = spec.dependency
    if dependency is not None and len(dependency.conditions) > CONDITIONS_MAX:
        return _over("conditions-max", CONDITIONS_MAX, len(dependency.conditions))
    if not -NICE_MAX <= spec.nice <= NICE_MAX:
        return _invalid(f"nice {spec.nice} is not within {NICE_MAX} either way")
    return _refuse_ask(ask)


def _refuse_partitions(state: State, names: tuple[PartitionName, ...]) -> Rejection | None:
    for name in names:
        row = state.partitions.get(name)
        if row is None:
            return Rejection(
                "unknown-partition", f"there is no partition {name!r}; nothing was changed"
            )
        if row.state in (PartitionState.DRAIN, PartitionState.INACTIVE):
            return Rejection(
                "partition-closed",
                f"partition {name!r} is {row.state} and takes no jobs; nothing was changed",
            )
    return None


def _refuse_nice(state: State, nice: int, context: Context) -> Rejection | None:
    if nice < 0 and role_of(state, context.actor) < Role.OPERATOR:
        return Rejection("not-permitted", f"nice {nice} takes an operator; nothing was changed")
    return None


def _refuse_ask(ask: ResourceAsk) -> Rejection | None:
    counts = (
        ("nodes", ask.nodes_min, 1),
        ("tasks", ask.tasks, 1),
        ("CPUs per task", ask.cpus_per_task, 1),
        ("tasks per node", ask.tasks_per_node, 0),
        ("MiB of memory", ask.memory_mib, -1),
        ("tasks per socket", ask.tasks_per_socket, 0),
        ("tasks per core", ask.tasks_per_core, 0),
        ("tasks per GPU", ask.tasks_per_gpu, 0),
        ("sockets per node", ask.sockets_per_node, 0),
        ("cores per socket", ask.cores_per_socket, 0),
        ("threads per core", ask.threads_per_core, 0),
        ("CPUs of each node", ask.cpus_per_node_min, 0),
        ("CPUs per GPU", ask.cpus_per_gpu, 0),
        ("MiB of disk", ask.disk_mib, 0),
    )
    for what, count, least in counts:
        if not least <= count <= COUNT_MAX:
            return _invalid(f"{count} {what} is not from {least} to {COUNT_MAX}")
    if ask.nodes_max and not ask.nodes_min <= ask.nodes_max <= COUNT_MAX:
        return _invalid(f"at most {ask.nodes_max} nodes is less than at least {ask.nodes_min}")
    if ask.memory_per not in (Per.NODE, Per.CPU, Per.GPU):
        return _invalid(f"memory is asked per node, CPU or GPU, not per {ask.memory_per.name}")
    if len(ask.gres) > GRES_MAX:
        return _over("gres-max", GRES_MAX, len(ask.gres))
    for gres in ask.gres:
        if not gres.name or not 1 <= gres.count <= COUNT_MAX:
            return _invalid(f"{gres.count} of generic resource {gres.name!r} is no ask")
        if gres.per in (Per.CPU, Per.GPU):
            return _invalid(f"{gres.name!r} is asked per job, node, task or socket")
    return None


def _refuse_attachments(attachments: tuple[Attachment, ...], *, batch: bool) -> Rejection | None:
    """Return why attachments are not those of a job, or None. A batch job has a script."""
    refused = _refuse_names_and_sizes(attachments, SUBMITTED_NAMES)
    if refused is not None:
        return refused
    if batch and all(attachment.name != "script" for attachment in attachments):
        return _invalid("a batch job has no script")
    for attachment in attachments:
        if attachment.name == "script" and not attachment.content.strip():
            return _invalid("the script is empty")
        if attachment.name == "text":
            try:
                decode_text(attachment.content)
            except msgspec.MsgspecError as error:
                return _invalid(f"the attachment 'text' cannot be read: {error}")
    return None


def refuse_amendments(
    state: State, attachments: tuple[Attachment, ...], context: Context
) -> Rejection | None:
    """Return why an update may not hand these in, or None."""
    refused = _refuse_names_and_sizes(attachments, AMENDED_NAMES)
    if refused is not None or not attachments:
        return refused
    return _refuse_live_blobs(state, context)


def _refuse_names_and_sizes(
    attachments: tuple[Attachment, ...], known: tuple[str, ...]
) -> Rejection | None:
    names = [attachment.name for attachment in attachments]
    for attachment in attachments:
        name, size = attachment.name, len(attachment.content)
        if name not in known:
            return _invalid(f"there is no attachment {name!r}; there may be {', '.join(known)}")
        if names.count(name) > 1:
            return _invalid(f"attachment {name!r} is there twice")
        if size > _BYTES_MAX[name]:
            return _over(f"{name}-bytes-max", _BYTES_MAX[name], size)
    return None


def _refuse_live_blobs(state: State, context: Context) -> Rejection | None:
    """Return why this user, or the cluster, keeps too many attachments already, or None."""
    come = sum(reference.size for reference in context.attachments)
    uid = context.actor.uid
    in_jobs, in_arrays = state.job_blob_bytes, state.array_blob_bytes
    of_user = in_jobs.of_user(uid) + in_arrays.of_user(uid) + come
    if of_user > LIVE_BLOB_BYTES_PER_USER_MAX:
        return _over("live-blob-bytes-per-user-max", LIVE_BLOB_BYTES_PER_USER_MAX, of_user)
    in_all = in_jobs.total + in_arrays.total + come
    if in_all > LIVE_BLOB_BYTES_MAX:
        return _over("live-blob-bytes-max", LIVE_BLOB_BYTES_MAX, in_all)
    return None
