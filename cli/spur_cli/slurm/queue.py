"""The queue as lines: fetched page by page, with the reasons and limits that rows leave out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from spur.slurm.columns.jobline import JobLine
from spur.slurm.jobids import TASKS_LETTERS
from spur.values.arrays import TaskSet
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobText, decode_text
from spur.values.states import JobState, Reason
from spur.wire.jobs import JobFilter, JobPage, JobView, QueryJobs, decode_job_view
from spur.wire.nodes import ListNodes, NodeList
from spur.wire.partitions import ListPartitions, PartitionInfo, PartitionList
from spur_cli.slurm.people import LocalCalendar, group_name, user_name
from spur_cli.slurm.session import Session

__all__ = ["Queue", "fetch_queue", "fetch_texts", "lines_of", "split_tasks"]

PAGE_ROWS = 1000

_GONE = b"(erased)"

ERASED = JobText(_GONE, (_GONE,), _GONE, _GONE, _GONE, _GONE)
"""What is shown of a job whose text was erased."""


class Queue:
    """Jobs, and what their partitions add to them."""

    def __init__(self) -> None:
        self.jobs: list[JobView] = []
        self.reasons: dict[tuple[PartitionName, bytes], Reason] = {}
        self.partitions: dict[PartitionName, PartitionInfo] = {}
        self.out: frozenset[str] = frozenset()
        """Nodes out of use, of those that waiting jobs name."""

    def reason(self, job: JobView, now_ns: int) -> str:
        """Return why a job waits, or ended so; with the nodes that it names and that are out."""
        reason = self._reason(job, now_ns)
        if reason == Reason.REQ_NODE_NOT_AVAIL:
            out = [name for name in parse_hostlist(job.spec.ask.nodes_required) if name in self.out]
            if out:
                return f"{reason}, UnavailableNodes:{format_hostlist(out)}"
        return reason

    def _reason(self, job: JobView, now_ns: int) -> str:
        if job.state is not JobState.PENDING or job.reason is not Reason.NONE:
            return job.reason
        if job.spec.begin_ns > now_ns:
            return Reason.BEGIN_TIME
        return self.reasons.get((job.spec.partitions[0], job.shape), job.reason)

    def limit_s(self, job: JobView) -> int:
        """Return the job's time limit, or its partition's; 0 for none."""
        if job.limit_ns:
            return (job.limit_ns - job.start_ns) // 1_000_000_000
        if job.spec.time_limit_s is not None:
            return job.spec.time_limit_s
        partition = self.partitions.get(job.partition or job.spec.partitions[0])
        if partition is None:
            return 0
        if partition.default_time_s is not None:
            return partition.default_time_s
        return partition.max_time_s or 0


def fetch_queue(session: Session, wanted: JobFilter) -> Queue | Rejection:
    """Return all jobs that a filter names."""
    queue = Queue()
    after: JobId | None = JobId(0)
    while after is not None:
        page = session.ask(QueryJobs(wanted, after, PAGE_ROWS), JobPage)
        if isinstance(page, Rejection):
            return page
        queue.jobs += [
            job for job in (decode_job_view(row) for row in page.rows) if not _is_forgotten(job)
        ]
        queue.reasons |= {(group.partition, group.shape): group.reason for group in page.reasons}
        after = page.next
    queue.out = _fetch_out(session, queue)
    if any(job.spec.time_limit_s is None for job in queue.jobs):
        listed = session.ask(ListPartitions(), PartitionList)
        if isinstance(listed, Rejection):
            return listed
        queue.partitions = {partition.name: partition for partition in listed.partitions}
    return queue


def _is_forgotten(job: JobView) -> bool:
    """Whether Slurm would not know it: a task that was taken off its array before it ran."""
    is_split_off = job.tasks is not None and job.array_id != job.job_id
    return is_split_off and job.state is JobState.CANCELLED and not job.start_ns and not job.run


def _fetch_out(session: Session, queue: Queue) -> frozenset[str]:
    """Return which nodes are out of use, of those that waiting jobs name and that keep them."""
    names = {
        name
        for job in queue.jobs
        if job.spec.ask.nodes_required
        and job.state is JobState.PENDING
        and queue.reason(job, 0) == Reason.REQ_NODE_NOT_AVAIL
        for name in parse_hostlist(job.spec.ask.nodes_required)
    }
    if not names:
        return frozenset()
    listed = session.ask(ListNodes(format_hostlist(sorted(names)), "", PAGE_ROWS), NodeList)
    if isinstance(listed, Rejection):
        # A node is not configured any more: the reason is shown without its nodes.
        return frozenset()
    marks = {"DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "UNKNOWN"}
    return frozenset(
        node.name for node in listed.nodes if not marks.isdisjoint(node.state.split("+"))
    )


def fetch_texts(session: Session, jobs: Iterable[JobId]) -> dict[JobId, JobText]:
    """Return the texts of those jobs whose paths and comments the caller may read."""
    from spur.wire.texts import JobTexts, ReadTexts

    found: dict[JobId, JobText] = {}
    left = list(jobs)
    while left:
        answer = session.ask(ReadTexts(tuple(left[:PAGE_ROWS])), JobTexts)
        if isinstance(answer, Rejection) or not answer.seen:
            break
        for view in answer.texts:
            if view.is_erased:
                found[view.job_id] = ERASED
            elif view.content:
                found[view.job_id] = decode_text(view.content)
        left = left[answer.seen :]
    return found


def lines_of(
    session: Session, queue: Queue, cluster: str = "", *, with_texts: bool = False
) -> list[JobLine]:
    """Return one line for each row of the queue; paths and comments are asked for apart."""
    texts = fetch_texts(session, (job.job_id for job in queue.jobs)) if with_texts else {}
    now_ns = time.time_ns()
    calendar = LocalCalendar()
    letters = session.environment.get("SLURM_BITSTR_LEN", "")
    tasks_letters = int(letters) if letters.isascii() and letters.isdigit() else TASKS_LETTERS
    return [
        JobLine(
            job=job,
            tasks=job.tasks,
            reason=queue.reason(job, now_ns),
            limit_s=queue.limit_s(job),
            now_ns=now_ns,
            calendar=calendar,
            user=user_name,
            group=group_name,
            text=texts.get(job.job_id),
            cluster=cluster,
            tasks_letters=tasks_letters,
        )
        for job in queue.jobs
    ]


def split_tasks(lines: Iterable[JobLine]) -> Iterator[JobLine]:
    """Yield one line for each task of an array."""
    for line in lines:
        if line.tasks is None:
            yield line
        else:
            for task in line.tasks:
                yield line._replace(tasks=TaskSet.single(task))
