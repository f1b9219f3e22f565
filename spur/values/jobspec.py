"""What a job asks for, as its submission says it and `update` may change it.

A spec holds what steers a decision and no more. Text that steers nothing (paths, arguments,
comment) is a `JobText`, which travels as an attachment and stays out of the log (LOG-CONTRACT 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec

from spur.values.dependencies import Dependency
from spur.values.ids import PartitionName
from spur.values.tres import GresAsk, Per

__all__ = [
    "JobSpec",
    "JobText",
    "ResourceAsk",
    "Sharing",
    "amended",
    "decode_options",
    "decode_text",
    "encode_options",
    "encode_text",
    "shape_of",
]


class Sharing(IntEnum):
    """With whom a job shares its nodes. Source: sbatch(1) --exclusive, --oversubscribe."""

    PARTITION = 0
    """As the partition's OverSubscribe says."""
    OVERSUBSCRIBE = 1
    EXCLUSIVE = 2
    USER = 3
    """Only with jobs of the same user."""
    LABEL = 4
    """Only with jobs of the same label; while there are no labels, as PARTITION."""


class ResourceAsk(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """What a job needs of nodes. Jobs with an equal ask are of one shape."""

    nodes_min: int
    nodes_max: int
    """0 is as many as it takes."""
    tasks: int
    tasks_per_node: int
    """0 is any number."""
    cpus_per_task: int
    memory_mib: int
    """0 is the partition's default, -1 all that a node has."""
    memory_per: Per
    """NODE, CPU or GPU."""
    memory_is_default: bool
    """Whether the site gave it, since the job names none: what GPUs bring with them comes first."""
    gres: tuple[GresAsk, ...]
    features: str
    """The constraint expression, as Slurm spells it; empty for none."""
    nodes_required: str
    """A host list that the allocation must include; empty for none."""
    nodes_excluded: str
    sharing: Sharing
    licenses: str
    reservation: str
    # In what follows 0 is any number, or no ask.
    tasks_per_socket: int
    tasks_per_core: int
    tasks_per_gpu: int
    sockets_per_node: int
    """The node must have so many sockets; so for the next two."""
    cores_per_socket: int
    threads_per_core: int
    """Also how many threads of a core the job uses."""
    cpus_per_node_min: int
    """CPUs that each node must have for the job. Source: sbatch(1) --mincpus."""
    cpus_per_gpu: int
    disk_mib: int
    """Temporary disk of each node. Source: sbatch(1) --tmp."""
    contiguous: bool
    """Whether the nodes must follow each other in the node table."""
    overcommit: bool
    """Whether one CPU a node is enough, however many tasks run there."""
    preferred: str
    """A constraint that is met where possible. Source: sbatch(1) --prefer."""
    tasks_follow: bool
    """Whether nobody said how many tasks: then there is one for each node of a range."""


class JobSpec(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """All of a submission that steers a decision."""

    name: str
    partitions: tuple[PartitionName, ...]
    """Where it may run, best first; never empty."""
    account: str
    qos: str
    ask: ResourceAsk
    time_limit_s: int | None
    """None is the partition's default."""
    begin_ns: int
    """UTC; it does not start before. 0 is at once."""
    nice: int
    requeue: bool
    """Whether a lost node puts it back into the queue rather than ending it."""
    batch: bool
    """Whether a script runs on the first node; else it is an allocation for someone who waits."""
    deadline_ns: int
    """UTC; a job that could not end by then any more is removed. 0 is none."""
    dependency: Dependency | None
    """As submitted, or as updated last; what is left of it is in the state."""
    kill_on_invalid_dependency: bool | None
    """Whether it ends once its dependency can no longer hold; None is as the cluster is set."""
    time_limit_min_s: int | None
    """To what the time limit may be cut so that it starts sooner; None: it may not be cut."""


class JobText(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The content of the attachment "text": what the agent and people need, and no decision."""

    working_directory: bytes
    argv: tuple[bytes, ...]
    stdin_path: bytes
    stdout_path: bytes
    stderr_path: bytes
    comment: bytes
    options: tuple[tuple[str, bytes], ...] = ()
    """The options of the submission: name without dashes, and value, empty for a flag."""
    submit_host: bytes = b""
    """Where it was submitted, by the name that the host has for itself."""
    session_id: int = 0
    """Of the process that submitted it."""
    components: tuple[tuple[tuple[str, bytes], ...], ...] = ()
    """The options of every component of a het job, in the text of its first one."""


def amended(text: JobText, changes: Mapping[str, bytes]) -> JobText:
    """Return the text with what an update wrote later, by the names of its attachments."""
    return msgspec.structs.replace(
        text,
        comment=changes.get("comment", text.comment),
        stdout_path=changes.get("stdout", text.stdout_path),
        options=decode_options(changes["options"]) if "options" in changes else text.options,
    )


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODER = msgspec.msgpack.Decoder(JobText)


_OPTIONS = msgspec.msgpack.Decoder(tuple[tuple[str, bytes], ...])


def encode_options(options: tuple[tuple[str, bytes], ...]) -> bytes:
    """Return the content of the attachment "options"."""
    return _ENCODE(options)


def decode_options(content: bytes) -> tuple[tuple[str, bytes], ...]:
    """Read the attachment "options". Raises: msgspec.MsgspecError when it is none."""
    return _OPTIONS.decode(content)


def encode_text(text: JobText) -> bytes:
    """Return the content of the attachment "text"."""
    return _ENCODE(text)


def decode_text(content: bytes) -> JobText:
    """Read the attachment "text". Raises: msgspec.MsgspecError when it is none."""
    return _DECODER.decode(content)


def shape_of(ask: ResourceAsk) -> bytes:
    """Return the 8 bytes that stand for this ask and all that equal it."""
    import hashlib  # commands read specs and never need this

    return hashlib.sha256(_ENCODE(ask)).digest()[:8]
