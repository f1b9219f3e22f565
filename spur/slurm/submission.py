"""A submission: from the options of sbatch in three layers to what a controller is asked.

    directives of the script  <  environment  <  command line

Later layers replace single options of earlier ones. Options about memory exclude each other; those
of the environment then give way.

Source: sbatch(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spur.slurm.dependencies import BadDependency, parse_dependency
from spur.slurm.layers import Layer
from spur.slurm.timespec import Calendar, MomentError, parse_moment
from spur.slurm.wording import TOO_LONG, SlurmError, error_line, failure_of
from spur.values.arrays import ArrayAsk
from spur.values.dependencies import Dependency
from spur.values.hostlist import parse_hostlist
from spur.values.ids import PartitionName
from spur.values.jobspec import JobSpec, JobText, ResourceAsk, Sharing
from spur.values.tres import GresAsk, Per

__all__ = ["Place", "Settings", "Submission", "merge", "refuse_memories", "submission_of"]

_MEMORY = {
    "memory_per_node": Per.NODE,
    "memory_per_cpu": Per.CPU,
    "memory_per_gpu": Per.GPU,
}

_GRES = ("gres", "gpus", "gpus_per_node", "gpus_per_socket", "gpus_per_task")


class Settings(NamedTuple):
    """Layers merged."""

    values: dict[str, Any]  # as in `Layer`
    given: dict[str, str]


class Place(NamedTuple):
    """Where a submission comes from."""

    host: bytes
    session_id: int


NOWHERE = Place(b"", 0)


class Submission(NamedTuple):
    """What the options come to."""

    spec: JobSpec
    array: ArrayAsk | None
    hold: bool
    priority: int | None
    text: JobText
    warnings: tuple[str, ...]


def merge(script: Layer, environment: Layer, line: Layer, program: str) -> Settings:
    """Lay the layers over each other. Raises: SlurmError for options that exclude each other."""
    weak = dict(environment.values)
    if any(field in layer.values for layer in (script, line) for field in _MEMORY):
        for field in _MEMORY:
            weak.pop(field, None)
    values = {**script.values, **weak, **line.values}
    refuse_memories(values, program)
    return Settings(values, {**script.given, **environment.given, **line.given})


def refuse_memories(values: Mapping[str, Any], program: str) -> None:
    """Raises: SlurmError for options about memory that exclude each other."""
    if sum(field in values for field in _MEMORY) > 1:
        raise SlurmError(
            f"{program}: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
        )


def submission_of(
    settings: Settings,
    *,
    program: str,
    default_name: str,
    argv: tuple[bytes, ...],
    working_directory: bytes,
    calendar: Calendar,
    place: Place = NOWHERE,
    batch: bool = True,
) -> Submission:
    """Return what is asked of the controller.

    `working_directory` is where the command runs; --chdir is looked for below it.

    Raises: SlurmError for values that contradict each other.
    """
    values = settings.values
    warnings: list[str] = []
    ask = _ask(values, program, warnings)
    for name, shown in (("core-spec", "-S"), ("thread-spec", "--thread-spec")):
        if name in settings.given:
            ignored = f"Ignoring {shown} since it's not allowed by configuration"
            warnings.append(error_line(program, f"{ignored} (AllowSpecResourcesUsage = No)"))
    begin_ns, deadline_ns = _moments(values, program, calendar)
    array: ArrayAsk | None = values.get("array")
    spec = JobSpec(
        name=_plain(values.get("name", default_name)),
        partitions=tuple(PartitionName(_plain(name)) for name in values.get("partitions", ())),
        account=_plain(values.get("account", "")),
        qos=_plain(values.get("qos", "")),
        ask=ask,
        time_limit_s=values.get("time_limit_s"),
        begin_ns=begin_ns,
        nice=values.get("nice", 0),
        requeue=values.get("requeue", True),
        batch=batch,
        deadline_ns=deadline_ns,
        dependency=_dependency(values.get("dependency", ""), program),
        kill_on_invalid_dependency=values.get("kill_on_invalid_dep"),
        time_limit_min_s=values.get("time_limit_min_s"),
    )
    text = JobText(
        working_directory=_below(working_directory, _bytes(values.get("directory", ""))),
        argv=argv,
        stdin_path=_file(values.get("stdin", "")),
        stdout_path=_file(values.get("stdout", "")),
        stderr_path=_file(values.get("stderr", "")),
        comment=_bytes(values.get("comment", "")),
        options=tuple(
            (name, _bytes(value)) for name, value in settings.given.items() if name != "wrap"
        ),
        submit_host=place.host,
        session_id=place.session_id,
    )
    _refuse_long(spec, text, program)
    return Submission(
        spec, array, values.get("hold", False), values.get("priority"), text, tuple(warnings)
    )


NAME_BYTES_MAX = 1_024

PATH_BYTES_MAX = 4_096


def _refuse_long(spec: JobSpec, text: JobText, program: str) -> None:
    """Raises: SlurmError for a name, a comment or a path that is longer than Slurm takes."""
    names = (spec.name, spec.account, spec.qos, *spec.partitions)
    paths = (text.working_directory, text.stdin_path, text.stdout_path, text.stderr_path)
    if (
        max(len(_bytes(name)) for name in names) > NAME_BYTES_MAX
        or len(text.comment) > NAME_BYTES_MAX
        or max(map(len, paths)) > PATH_BYTES_MAX
    ):
        raise SlurmError(error_line(program, f"{failure_of(program)}: {TOO_LONG}"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _file(text: str) -> bytes:
    """Return a path; the word none stands for no file. Source: sbatch(1) --output."""
    return b"/dev/null" if text.lower() == "none" else _bytes(text)


def _plain(text: str) -> str:
    """Return the text with what is no UTF-8 replaced: these texts go into the log."""
    return _bytes(text).decode("utf-8", "replace")


def _below(directory: bytes, path: bytes) -> bytes:
    """Return the path, from the directory on unless it is absolute."""
    if not path:
        return directory
    return path if path.startswith(b"/") else directory.rstrip(b"/") + b"/" + path


def _moments(values: Mapping[str, Any], program: str, calendar: Calendar) -> tuple[int, int]:
    """Return the earliest start and the latest end; 0 for none."""
    begin_ns = _moment_ns("begin", values, program, calendar)
    deadline_ns = _moment_ns("deadline", values, program, calendar)
    if 0 < deadline_ns < begin_ns:
        sentence = "Incompatible begin and deadline time specification"
        raise SlurmError(error_line(program, sentence))
    return begin_ns, deadline_ns


def _moment_ns(option: str, values: Mapping[str, Any], program: str, calendar: Calendar) -> int:
    text: str | None = values.get(option)
    if text is None:
        return 0
    try:
        return max(parse_moment(text, calendar), 0) * 1_000_000_000
    except MomentError as error:
        line = error_line(program, f"Invalid --{option} specification")
        where = (str(error),) if text else ()
        raise SlurmError(*where, line, status=255) from error


def _dependency(text: str, program: str) -> Dependency | None:
    try:
        return parse_dependency(text)
    except BadDependency as error:
        is_known = text.startswith("expand:")
        why = (
            "Requested operation not supported on this system"
            if is_known
            else "Job dependency problem"
        )
        raise SlurmError(error_line(program, f"{failure_of(program)}: {why}")) from error


def _ask(values: Mapping[str, Any], program: str, warnings: list[str]) -> ResourceAsk:
    per = next((_MEMORY[field] for field in _MEMORY if field in values), Per.NODE)
    memory_mib = next((values[field] for field in _MEMORY if field in values), 0)
    gres = _gres(values, program)
    _refuse_gpu_counts(values, program)
    if per is Per.GPU and not any(ask.name == "gpu" for ask in gres):
        raise SlurmError(
            error_line(
                program,
                f"Requested mem_per_tres=gres:gpu:{memory_mib} but did not request any GPU.",
            ),
            error_line(program, "Invalid generic resource (gres) specification"),
        )
    nodes_min, nodes_max, tasks = _counts(values, program, warnings)
    sockets, cores, threads = _node_shape(values)
    return ResourceAsk(
        nodes_min=nodes_min,
        nodes_max=nodes_max,
        tasks=tasks,
        tasks_per_node=values.get("tasks_per_node", 0),
        cpus_per_task=values.get("cpus_per_task", 1),
        memory_mib=memory_mib,
        memory_per=per,
        memory_is_default=False,
        gres=gres,
        features=_plain(values.get("features", "")).replace(",", "&"),
        nodes_required=values.get("nodes_required", ""),
        nodes_excluded=values.get("nodes_excluded", ""),
        sharing=values.get("sharing", Sharing.PARTITION),
        licenses=_plain(values.get("licenses", "")),
        reservation=_plain(values.get("reservation", "")),
        tasks_per_socket=values.get("ntasks_per_socket", 0),
        tasks_per_core=values.get("ntasks_per_core", 0),
        tasks_per_gpu=values.get("ntasks_per_gpu", 0),
        sockets_per_node=sockets,
        cores_per_socket=cores,
        threads_per_core=threads,
        cpus_per_node_min=values.get("mincpus", 0),
        cpus_per_gpu=values.get("cpus_per_gpu", 0),
        disk_mib=values.get("disk_mib", 0),
        contiguous=values.get("contiguous", False),
        overcommit=values.get("overcommit", False),
        preferred=_plain(values.get("prefer", "")),
        tasks_follow=nodes_max > nodes_min and not any(name in values for name in _SAY_TASKS),
    )


def _refuse_gpu_counts(values: Mapping[str, Any], program: str) -> None:
    """Raises: SlurmError for options about GPUs that need others, or exclude them."""
    for one, other in (
        ("gpus_per_task", "ntasks_per_gpu"),
        ("tasks_per_node", "ntasks_per_gpu"),
    ):
        if one in values and other in values:
            name = "ntasks-per-node" if one == "tasks_per_node" else "gpus-per-task"
            raise SlurmError(
                f"{program}: fatal: --{name} is mutually exclusive with --ntasks-per-gpu "
                "and SLURM_NTASKS_PER_GPU"
            )
    why = ""
    total = sum(ask.count for ask in values.get("gpus", ()))
    each = sum(ask.count for ask in values.get("gpus_per_task", ()))
    if values.get("gpus_per_socket") and "sockets_per_node" not in values:
        why = "--gpus-per-socket option requires --sockets-per-node specification"
    elif each and not total and "tasks" not in values:
        why = (
            "Failed to validate job spec. --gpus-per-task used without either --gpus or "
            "-n/--ntasks is not allowed."
        )
    elif each and total and "tasks" in values and each * values["tasks"] != total:
        why = (
            "Failed to validate job spec. Based on --gpus and --gpus-per-task number of "
            "requested tasks differ from -n/--ntasks."
        )
    elif "ntasks_per_gpu" in values and not {"tasks", "nodes", *_GRES} & set(values):
        why = (
            "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a "
            "node/ntask specification"
        )
    if why:
        raise SlurmError(
            error_line(program, why),
            error_line(program, "Invalid generic resource (gres) specification"),
        )


def _node_shape(values: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return sockets of a node, cores of a socket, threads of a core; 0 for any."""
    sockets, cores, threads = values.get("extra_node_info", (0, 0, 0))
    hint = values.get("hint")
    if hint in ("nomultithread", "compute_bound", "memory_bound"):
        threads = 1
    if hint == "memory_bound":
        cores = 1
    return (
        values.get("sockets_per_node", sockets),
        values.get("cores_per_socket", cores),
        values.get("threads_per_core", threads),
    )


def _whole_shape(values: Mapping[str, Any]) -> int:
    """Return how many tasks fill what --extra-node-info asks of a node."""
    sockets, cores, threads = values.get("extra_node_info", (1, 1, 1))
    return (sockets or 1) * (cores or 1) * (threads or 1)


_SAY_TASKS = ("tasks", "tasks_per_node", "extra_node_info", "ntasks_per_gpu")
"""Fields that say how many tasks there are, beside the number of nodes."""


def _counts(values: Mapping[str, Any], program: str, warnings: list[str]) -> tuple[int, int, int]:
    """Return the fewest and the most nodes, and the tasks."""
    nodes_min, nodes_max = values.get("nodes", (1, 0))
    required = len(parse_hostlist(values.get("nodes_required", "")))
    if required > nodes_min:
        if nodes_max and required > nodes_max:
            raise SlurmError(
                error_line(program, f"invalid number of nodes (-N {required}-{nodes_max})")
            )
        nodes_min = required
    tasks = values.get("tasks")
    if tasks is None:
        of_node = values.get("tasks_per_node") or _whole_shape(values)
        return nodes_min, nodes_max, nodes_min * of_node
    if tasks < nodes_min:
        warnings.append(
            f"{program}: Warning: can't run {tasks} processes on {nodes_min} nodes, "
            f"setting nnodes to {tasks}"
        )
        nodes_min = tasks
        nodes_max = min(nodes_max, tasks)
    return nodes_min, nodes_max, tasks


def _gres(values: Mapping[str, Any], program: str) -> tuple[GresAsk, ...]:
    """Return all that is asked of generic resources."""
    asks: tuple[GresAsk, ...] = sum((values.get(field, ()) for field in _GRES), ())
    kinds = {bool(ask.kind) for ask in asks if ask.name == "gpu"}
    if len(kinds) > 1:
        raise SlurmError(
            error_line(program, "Invalid GRES specification (with and without type identification)")
        )
    return asks
