"""What `scontrol show` tells: jobs, nodes, partitions, the configuration, host lists."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from spur.slurm.columns.jobline import JobLine
from spur.slurm.hostwords import BadHostlist, expand_words, fold_words
from spur.slurm.jobids import JobName, parse_job_name
from spur.slurm.layers import Layer
from spur.slurm.showjob import Details, show_job
from spur.slurm.shownode import show_node, show_partition
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.arrays import TaskSet
from spur.values.config import NodeStart
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName
from spur.values.members import HEARD_MS_MAX
from spur.values.steps import BATCH_STEP
from spur.wire.cluster import (
    ClusterInfo,
    ConfigInfo,
    ShowCluster,
    ShowConfig,
)
from spur.wire.controllers import ControllerList, ShowControllers
from spur.wire.jobs import JobFilter, JobView
from spur.wire.nodes import ListNodes, NodeInfo, NodeList
from spur.wire.partitions import ListPartitions, PartitionInfo, PartitionList
from spur_cli.slurm.people import LocalCalendar, user_name
from spur_cli.slurm.queue import fetch_queue, lines_of
from spur_cli.slurm.session import Session

__all__ = [
    "fetch_nodes",
    "ping",
    "show_front_ends",
    "show_hostlist",
    "show_hostlist_sorted",
    "show_hostnames",
    "show_jobs",
    "show_licenses",
    "show_nodes",
    "show_nothing",
    "show_partitions",
    "show_reservations",
    "show_steps",
    "write_batch_script",
]

PAGE_ROWS = 1000

_NO_JOB = "Invalid job id specified"


def _is_one_line(line: Layer) -> bool:
    return bool(line.values.get("oneliner"))


def show_jobs(session: Session, line: Layer, names: list[str]) -> int:
    """Show one job, an array with what was split off it, or all jobs."""
    tasks: TaskSet | None = None
    name: JobName | None = None
    wanted = JobFilter()
    if names:
        try:
            name = parse_job_name(names[0])
        except ValueError as error:
            raise SlurmError("scontrol_print_job error: Invalid job id specified") from error
        wanted, tasks = JobFilter(job_ids=(name.job_id,)), name.tasks
    queue = fetch_queue(session, wanted)
    if isinstance(queue, Rejection):
        raise SlurmError(f"slurm_load_jobs error: {sentence_of(queue)}", *_hint(queue))
    lines = lines_of(session, queue, with_texts=True)
    if name is not None and any(_is_alone(row.job, name) for row in lines):
        lines = [row for row in lines if row.job.job_id == name.job_id]
    if tasks is not None:
        lines = [
            row._replace(tasks=row.tasks.common(tasks))
            for row in lines
            if row.tasks is not None and row.tasks.common(tasks).ranges
        ]
    if not lines:
        if names:
            raise SlurmError("slurm_load_jobs error: Invalid job id specified")
        sys.stdout.write("No jobs in the system\n")
        return 0
    if _wants_document(line):
        from spur.slurm.dataparser.jobs import job_document

        jobs = [job_document(row) for row in lines]
        return _document(session, line, {"jobs": jobs}, "jobs")
    # What was split off an array follows it, the newest first.
    lines.sort(key=lambda row: (row.job.array_id or row.job.job_id, row.job.job_id))
    by_array: dict[int, list[str]] = {}
    more = _details(session, lines) if line.values.get("details") else {}
    for row in lines:
        first = row.job.array_id or row.job.job_id
        shown = by_array.setdefault(first, [])
        details = more.get(row.job.job_id)
        text = show_job(row, one_line=_is_one_line(line), details=details)
        shown.insert(min(len(shown), 1), text)
    sys.stdout.write("".join(text for shown in by_array.values() for text in shown))
    return 0


def _is_alone(job: JobView, name: JobName) -> bool:
    """Whether one component of a het job is named, and not the whole by its first one."""
    is_meant = bool(job.het_id) and job.job_id == name.job_id
    return is_meant and (bool(job.het_offset) or name.offset is not None)


def _details(session: Session, lines: Sequence[JobLine]) -> dict[JobId, Details]:
    """Return what is shown of jobs beside the usual: their steps' ends, what they hold."""
    from spur.wire.history import (
        QueryRecords,
        RecordFilter,
        RecordPage,
        decode_job_record,
    )

    holds = any(row.job.shares for row in lines)
    nodes = fetch_nodes(session) if holds else []
    pools = {node.name: node.block.gres for node in (() if isinstance(nodes, Rejection) else nodes)}
    ids = tuple(row.job.job_id for row in lines if row.job.start_ns)
    worst: dict[JobId, tuple[int, int]] = {}
    if 0 < len(ids) <= DETAILED_JOBS_MAX:
        page = session.ask(QueryRecords(RecordFilter(job_ids=ids), JobId(0), len(ids)), RecordPage)
        for raw in () if isinstance(page, Rejection) else page.rows:
            record = decode_job_record(raw)
            steps = record.runs[-1].steps if record.runs else ()
            ends = [(step.exit_code, step.signal) for step in steps if step.step < BATCH_STEP]
            worst[record.job_id] = max(ends, default=(0, 0))
    return {
        row.job.job_id: Details("{}:{}".format(*worst.get(row.job.job_id, (0, 0))), pools)
        for row in lines
    }


DETAILED_JOBS_MAX = 1_000
"""Jobs whose steps are looked up for -d; of more at once the highest exit code is shown as 0."""


def _hint(rejection: Rejection) -> tuple[str, ...]:
    return (f"hint: {rejection.text}",) if rejection.code == "unreachable" else ()


def _is_known(session: Session, job_id: JobId) -> bool:
    queue = fetch_queue(session, JobFilter(job_ids=(job_id,)))
    return isinstance(queue, Rejection) or bool(queue.kinds)


def _wants_document(line: Layer) -> bool:
    return bool({"json", "yaml"} & set(line.values))


def _document(session: Session, line: Layer, body: dict[str, object], entity: str) -> int:
    """Write what is shown as a document."""
    from spur.slurm.dataparser.parts import seconds, unset
    from spur_cli.slurm.documents import document_form, write_document

    form = document_form("scontrol", line.values)
    body["last_update"] = seconds(time.time_ns())
    if entity == "jobs":
        body["last_backfill"] = unset()
    return write_document(session, form, body, ["show", entity])


def _partition_documents(
    session: Session, line: Layer, partitions: list[PartitionInfo], nodes: list[NodeInfo]
) -> int:
    from spur.slurm.dataparser.nodes import partition_document
    from spur_cli.slurm.clusters import own_cluster

    cluster = own_cluster(session)
    rows = []
    for part in partitions:
        cpus = sum(node.cpus for node in nodes if part.name in node.partitions)
        rows.append(partition_document(part, cpus, cluster))
    return _document(session, line, {"partitions": rows}, "partitions")


def show_steps(session: Session, line: Layer, names: list[str]) -> int:
    """Show the steps of the jobs that run, or those that are named."""
    from spur.slurm.columns.steps import show_step
    from spur_cli.slurm.steplist import fetch_steps, is_meant, parse_step_word

    words = []
    for name in names[:1]:
        try:
            words.append(parse_step_word(name))
        except ValueError as error:
            raise SlurmError(f"Job step {name} not found") from error
    found = fetch_steps(session, JobFilter(job_ids=tuple(word.job.job_id for word in words)))
    if isinstance(found, Rejection):
        raise SlurmError(f"slurm_get_job_steps error: {sentence_of(found)}", *_hint(found))
    lines = [row for row in found if is_meant(row, words)]
    if not lines:
        if words and not _is_known(session, words[0].job.job_id):
            raise SlurmError("slurm_get_job_steps error: Invalid job id specified")
        if names:
            sys.stdout.write(f"Job step {names[0]} not found\n")
            return 1
        sys.stdout.write("No job steps in the system\n")
        return 0
    lines.sort(key=lambda row: (row.job.job_id, -row.step_id))
    is_one_line = _is_one_line(line)
    sys.stdout.write("".join(show_step(row, one_line=is_one_line) for row in lines))
    return 0


def fetch_nodes(session: Session, nodes: str = "") -> list[NodeInfo] | Rejection:
    """Return all nodes, or those of a host list."""
    found: list[NodeInfo] = []
    after: NodeName | None = NodeName("")
    while after is not None:
        page = session.ask(ListNodes(nodes, after, PAGE_ROWS), NodeList)
        if isinstance(page, Rejection):
            return page
        found += page.nodes
        after = page.next
    return found


def _is_to_come(node: NodeInfo) -> bool:
    """Whether a node is configured for the future, and has not registered so far."""
    return node.block.start is NodeStart.FUTURE and not node.boot_id


def show_nodes(session: Session, line: Layer, names: list[str]) -> int:
    """Show nodes."""
    nodes = fetch_nodes(session, names[0] if names else "")
    if isinstance(nodes, Rejection):
        if nodes.code in ("unknown-node", "invalid-value"):
            sys.stdout.write(f"Node {names[0] if names else ''} not found\n")
            return 1
        raise SlurmError(f"slurm_load_node error: {sentence_of(nodes)}", *_hint(nodes))
    calendar = LocalCalendar()
    if not line.values.get("future"):
        nodes = [node for node in nodes if not _is_to_come(node)]
        if names and not nodes:
            sys.stdout.write(f"Node {names[0]} not found\n")
            return 1
    if not nodes:
        sys.stdout.write("No nodes in the system\n")
    if _wants_document(line):
        from spur.slurm.dataparser.nodes import node_document
        from spur_cli.slurm.clusters import own_cluster

        cluster = own_cluster(session)
        rows = [node_document(node, user_name, cluster) for node in nodes]
        return _document(session, line, {"nodes": rows}, "nodes")
    details = bool(line.values.get("details"))
    for node in nodes:
        sys.stdout.write(
            show_node(node, calendar, user_name, one_line=_is_one_line(line), details=details)
        )
    return 0


def show_partitions(session: Session, line: Layer, names: list[str]) -> int:
    """Show partitions."""
    listed = session.ask(ListPartitions(), PartitionList)
    nodes = listed if isinstance(listed, Rejection) else fetch_nodes(session)
    if isinstance(listed, Rejection) or isinstance(nodes, Rejection):
        refused = listed if isinstance(listed, Rejection) else nodes
        if not isinstance(refused, Rejection):
            return 1
        raise SlurmError(f"slurm_load_partitions error: {sentence_of(refused)}", *_hint(refused))
    is_hidden_here = not (line.values.get("all") or session.is_root)
    shown = [
        part
        for part in listed.partitions
        if (not names or part.name == names[0]) and not (part.block.hidden and is_hidden_here)
    ]
    if not shown:
        if names:
            sys.stdout.write(f"Partition {names[0]} not found\n")
            return 1
        sys.stdout.write("No partitions in the system\n")
    if _wants_document(line):
        return _partition_documents(session, line, shown, nodes)
    licenses = _tracked_licenses(session)
    for partition in shown:
        members = [node for node in nodes if partition.name in node.partitions]
        sys.stdout.write(show_partition(partition, members, licenses, one_line=_is_one_line(line)))
    return 0


def _tracked_licenses(session: Session) -> str:
    """Return the licences that are counted as trackable resources, as a partition has them."""
    from spur.wire.licenses import LicenseList, ListLicenses

    config = session.ask(ShowConfig(), ConfigInfo)
    if isinstance(config, Rejection):
        return ""
    written = {each.name: each.value for each in config.parameters}
    tracked = written.get("AccountingStorageTRES", "").lower().split(",")
    listed = session.ask(ListLicenses(), LicenseList)
    rows = () if isinstance(listed, Rejection) else listed.licenses
    return ",".join(
        f"license/{row.name}={row.total}" for row in rows if f"license/{row.name}" in tracked
    )


def show_reservations(session: Session, line: Layer, names: list[str]) -> int:
    """Show reservations, of which there are none yet."""
    if names:
        sys.stdout.write(f"Reservation {names[0]} not found\n")
        return 1
    sys.stdout.write("No reservations in the system\n")
    return 0


def show_front_ends(session: Session, line: Layer, names: list[str]) -> int:
    """Show front end nodes: there are none where every node has an agent."""
    sys.stdout.write("No nodes in the system\n")
    return 0


def show_nothing(session: Session, line: Layer, names: list[str]) -> int:
    """Show what no cluster of ours has: burst buffers, names of nodes made on demand."""
    return 0


def show_licenses(session: Session, line: Layer, names: list[str]) -> int:
    """Show how many there are of each licence, and how many are used."""
    from spur.wire.licenses import LicenseList, ListLicenses

    listed = session.ask(ListLicenses(), LicenseList)
    if isinstance(listed, Rejection):
        raise SlurmError(f"slurm_load_licenses error: {sentence_of(listed)}", *_hint(listed))
    shown = [row for row in listed.licenses if not names or row.name == names[0]]
    if not shown and not names:
        sys.stdout.write("No licenses configured in Slurm.\n")
    break_ = " " if _is_one_line(line) else "\n    "
    for row in shown:
        sys.stdout.write(
            f"LicenseName={row.name}{break_}Total={row.total} Used={row.used} "
            f"Free={row.total - row.used} Reserved=0 Remote=no\n"
        )
    return 0


# -- the controllers


def ping(session: Session) -> int:
    """Say of each controller whether it answers: those of the configuration, in its order.

    The exit status is 0 when any of them does. Source: scontrol(1) ping.
    """
    found = session.ask(ShowControllers(), ControllerList)
    if not isinstance(found, ControllerList):
        sys.stdout.write(_ping_line(0, 1, os.uname().nodename, is_up=False))
        return 1
    info = session.ask(ShowCluster(), ClusterInfo)
    configured = (
        info.settings.controllers if isinstance(info, ClusterInfo) and info.settings else ()
    )
    members = list(found.controllers)
    names = [host.name for host in configured] or [member.name for member in members]
    by_name = {member.name: member for member in members}
    lines = []
    for number, name in enumerate(names):
        # A configuration may call them otherwise than they were named when they were made.
        member = by_name.get(name) or (members[number] if number < len(members) else None)
        is_up = member is not None and 0 <= member.heard_ms <= HEARD_MS_MAX
        lines.append(_ping_line(number, len(names), name, is_up=is_up))
    sys.stdout.write("".join(lines))
    return 0


def _ping_line(number: int, count: int, name: str, *, is_up: bool) -> str:
    role = "primary" if number == 0 else "backup" if count == 2 else f"backup{number}"
    return f"Slurmctld({role}) at {name} is {'UP' if is_up else 'DOWN'}\n"


# -- scripts


def write_batch_script(session: Session, text: str, path: str) -> int:
    """Write the script of a job into a file, or with `-` to standard output."""
    from spur.wire.texts import JobScript, ReadScript

    try:
        name = parse_job_name(text)
    except ValueError as error:
        raise SlurmError(f"job script retrieval failed: {_NO_JOB}", status=0) from error
    answer = session.ask(ReadScript(name.job_id), JobScript)
    if isinstance(answer, Rejection):
        raise SlurmError(f"job script retrieval failed: {sentence_of(answer)}", status=0)
    content = b"(erased)\n" if answer.is_erased else answer.content
    if path == "-":
        sys.stdout.buffer.write(content)
        return 0
    path = path or f"slurm-{name.job_id}.sh"
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise SlurmError(f"failed to open file `{path}`: {error.strerror}") from error
    sys.stdout.write(f"batch script for job {name.job_id} written to {path}\n")
    return 0


# -- host lists


def _host_list(session: Session, names: list[str]) -> str:
    text = names[0] if names else session.environment.get("SLURM_NODELIST", "")
    if not text:
        raise SlurmError("scontrol: error: host list is empty", status=0)
    return text


def _expanded(text: str, *, status: int) -> list[str]:
    try:
        return expand_words(text)
    except BadHostlist as error:
        lines = [error_line("scontrol", line) for line in error.lines]
        raise SlurmError(*lines, f"Invalid hostlist: {text}", status=status) from error


def show_hostnames(session: Session, line: Layer, names: list[str]) -> int:
    """Write the names that a list stands for, one a line."""
    found = _expanded(_host_list(session, names), status=0)
    sys.stdout.write("".join(f"{name}\n" for name in found))
    return 0


def show_hostlist(session: Session, line: Layer, names: list[str]) -> int:
    """Write a short list for names, in their order; a path is read, one name a line."""
    return _show_hostlist(names, sorts=False)


def show_hostlist_sorted(session: Session, line: Layer, names: list[str]) -> int:
    """Write a short list for names, sorted; a path is read, one name a line."""
    return _show_hostlist(names, sorts=True)


def _show_hostlist(names: list[str], *, sorts: bool) -> int:
    if not names:
        raise SlurmError("invalid encode argument")
    text = names[0]
    if text.startswith("/"):
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise SlurmError(f"Can not open {text}") from error
    sys.stdout.write(fold_words(_expanded(text, status=1), sorts=sorts) + "\n")
    return 0
