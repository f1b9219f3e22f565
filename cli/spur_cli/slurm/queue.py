"""The queue as lines: fetched page by page, with the reasons and limits that rows leave out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from spur.slurm.bunches import Bunch
from spur.slurm.columns.jobline import JobLine, counted_from_ns
from spur.slurm.jobids import TASKS_LETTERS
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobText, decode_text
from spur.values.states import JobState, Reason
from spur.wire.jobs import (
    JobFilter,
    JobOwn,
    JobPage,
    JobView,
    QueryJobs,
    StartView,
    decode_kind,
    with_own,
)
from spur.wire.nodes import ListNodes, NodeList
from spur.wire.partitions import ListPartitions, PartitionInfo, PartitionList
from spur_cli.slurm.people import LocalCalendar, group_name, owner_name
from spur_cli.slurm.session import Session

__all__ = ["Queue", "bunches_of", "fetch_queue", "fetch_texts", "lines_of"]

JOB_ROWS = 5000
"""Of a page of jobs."""

PAGE_ROWS = 1000
"""Of any other page."""

_GONE = b"(erased)"

ERASED = JobText(_GONE, (_GONE,), _GONE, _GONE, _GONE, _GONE)
"""What is shown of a job whose text was erased."""


class Queue:
    """Jobs, and what their partitions add to them."""

    def __init__(self) -> None:
        self.kinds: dict[bytes, tuple[JobView, list[JobOwn]]] = {}
        """What equal jobs share, with 0 for what is each job's own, and that, by number."""
        self.reasons: dict[tuple[PartitionName, bytes], Reason] = {}
        self.partitions: dict[PartitionName, PartitionInfo] = {}
        self.starts: dict[JobId, StartView] = {}
        """When and where waiting jobs would start, as far as it is foreseen."""
        self.aging = (0, 1, 1)
        """Points of a job whose age is full, at which waiting time in seconds it is, and its steps.
        """
        self.out: frozenset[str] = frozenset()
        """Nodes out of use, of those that waiting jobs name."""

    @property
    def jobs(self) -> list[JobView]:
        """The jobs one by one, by number."""
        views = [view for common, owns in self.kinds.values() for view in with_own(common, owns)]
        return sorted(views, key=lambda view: view.job_id)

    def keep(self, test: Callable[[JobView], bool]) -> None:
        """Drop the jobs whose common part fails a test."""
        self.kinds = {key: kind for key, kind in self.kinds.items() if test(kind[0])}

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
            return (job.limit_ns - counted_from_ns(job)) // 1_000_000_000
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
        page = session.ask(QueryJobs(wanted, after, JOB_ROWS), JobPage)
        if isinstance(page, Rejection):
            return page
        _take(queue, page)
        queue.reasons |= {(group.partition, group.shape): group.reason for group in page.reasons}
        queue.starts |= {start.job_id: start for start in page.starts}
        queue.aging = (page.age_weight, page.age_max_s, page.age_period_s)
        after = page.next
    queue.out = _fetch_out(session, queue)
    if any(job.spec.time_limit_s is None or job.spec.ask.gres for job, _ in queue.kinds.values()):
        listed = session.ask(ListPartitions(), PartitionList)
        if isinstance(listed, Rejection):
            return listed
        queue.partitions = {partition.name: partition for partition in listed.partitions}
    return queue


def _take(queue: Queue, page: JobPage) -> None:
    """Add the jobs of a page."""
    for kind in page.kinds:
        common, owns = decode_kind(kind)
        if _may_be_forgotten(common):
            owns = tuple(own for own in owns if own.job_id == common.array_id)
        if owns:
            queue.kinds.setdefault(bytes(kind.common), (common, []))[1].extend(owns)


def _may_be_forgotten(job: JobView) -> bool:
    """Whether Slurm would not know it, if it is no whole array: a task taken off before it ran."""
    return (
        job.tasks is not None
        and job.state is JobState.CANCELLED
        and not job.start_ns
        and not job.run
    )


def _fetch_out(session: Session, queue: Queue) -> frozenset[str]:
    """Return which nodes are out of use, of those that waiting jobs name and that keep them."""
    names = {
        name
        for job, _ in queue.kinds.values()
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
    jobs = queue.jobs
    texts = fetch_texts(session, (job.job_id for job in jobs)) if with_texts else {}
    make = _line_maker(session, queue, cluster)
    return [make(job, texts.get(job.job_id)) for job in jobs]


def bunches_of(
    session: Session, queue: Queue, cluster: str = "", *, with_texts: bool = False
) -> list[Bunch]:
    """Return the lines of the queue; without texts those of equal jobs are together."""
    if with_texts:
        return [Bunch(line) for line in lines_of(session, queue, cluster, with_texts=True)]
    make = _line_maker(session, queue, cluster)
    bunches: list[Bunch] = []
    for common, owns in queue.kinds.values():
        if common.tasks is None and not common.het_id:
            # What is foreseen of a job is shown of it alone: it leaves the others.
            apart = [own for own in owns if own.job_id in queue.starts]
            alike = [own for own in owns if own.job_id not in queue.starts] if apart else owns
            if len(alike) > 1:
                bunches.append(Bunch(make(with_own(common, alike[:1])[0], None), owns=alike))
                owns = apart
        bunches += [Bunch(make(job, None)) for job in with_own(common, owns)]
    return bunches


def _line_maker(
    session: Session, queue: Queue, cluster: str
) -> Callable[[JobView, JobText | None], JobLine]:
    now_ns = time.time_ns()
    calendar = LocalCalendar()
    letters = session.environment.get("SLURM_BITSTR_LEN", "")
    tasks_letters = int(letters) if letters.isascii() and letters.isdigit() else TASKS_LETTERS

    def make(job: JobView, text: JobText | None) -> JobLine:
        info = queue.partitions.get(job.partition or job.spec.partitions[0])
        block = None if info is None else info.block
        return JobLine(
            job=job,
            tasks=job.tasks,
            reason=queue.reason(job, now_ns),
            limit_s=queue.limit_s(job),
            now_ns=now_ns,
            calendar=calendar,
            user=owner_name,
            group=group_name,
            text=text,
            cluster=cluster,
            tasks_letters=tasks_letters,
            cpus_per_gpu=0 if block is None else block.cpus_per_gpu or 0,
            memory_per_gpu_mib=0 if block is None else block.memory_per_gpu_mib or 0,
            age_weight=queue.aging[0],
            age_max_s=queue.aging[1],
            age_period_s=queue.aging[2],
            foreseen=queue.starts.get(job.job_id),
        )

    return make
