"""Records of jobs as lines of sacct: fetched page by page, with what the configuration adds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from spur.slurm.columns.recordline import RecordLine
from spur.slurm.jobids import TASKS_LETTERS
from spur.slurm.timespec import Calendar, format_moment
from spur.values.errors import Rejection
from spur.values.ids import JobId, PartitionName
from spur.values.tres import Per
from spur.wire.history import (
    JobRecord,
    QueryRecords,
    RecordFilter,
    RecordPage,
    RunRecord,
    decode_job_record,
)
from spur_cli.slurm.people import Viewpoint
from spur_cli.slurm.session import Session

if TYPE_CHECKING:
    from spur.values.jobspec import JobText
    from spur.wire.cluster import ClusterInfo
    from spur.wire.partitions import PartitionInfo

__all__ = ["Surroundings", "fetch_records", "line_maker", "moment_speller"]

PAGE_JOBS = 1000

PRIVATE_FIELDS = ("comment", "stderr", "stdin", "stdout", "submitline", "workdir")
"""Fields of text that is its owner's alone."""

STANDARD = ("", "standard", "relative")
"""Values of SLURM_TIME_FORMAT that leave times as they are."""


def fetch_records(session: Session, wanted: RecordFilter) -> list[JobRecord] | Rejection:
    """Return every record that a filter names."""
    found: list[JobRecord] = []
    after: JobId | None = JobId(0)
    while after is not None:
        page = session.ask(QueryRecords(wanted, after, PAGE_JOBS), RecordPage)
        if isinstance(page, Rejection):
            return page
        found += [decode_job_record(row) for row in page.rows]
        after = page.next
    return found


class Surroundings:
    """What the configuration says that records leave out: asked for when a field needs it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cluster: ClusterInfo | None = None
        self._partitions: dict[PartitionName, PartitionInfo] | None = None

    def cluster(self) -> ClusterInfo:
        """Return the cluster as it is configured. Raises: LookupError when nobody answers."""
        if self._cluster is None:
            from spur.wire.cluster import ClusterInfo, ShowCluster

            answer = self._session.ask(ShowCluster(), ClusterInfo)
            if isinstance(answer, Rejection):
                raise LookupError(answer.text)
            self._cluster = answer
        return self._cluster

    def partition(self, name: PartitionName) -> PartitionInfo | None:
        """Return a partition; None for one that is gone. Raises: LookupError as `cluster`."""
        if self._partitions is None:
            from spur.wire.partitions import ListPartitions, PartitionList

            answer = self._session.ask(ListPartitions(), PartitionList)
            if isinstance(answer, Rejection):
                raise LookupError(answer.text)
            self._partitions = {each.name: each for each in answer.partitions}
        return self._partitions.get(name)

    def name(self) -> str:
        """Return the cluster's name; empty before the first configuration."""
        settings = self.cluster().settings
        return "" if settings is None else settings.name

    def limit_s(self, job: JobRecord, run: RunRecord) -> int | None:
        """Return the time limit, 0 for none; None where the partition is gone."""
        if run.time_limit_s is not None:
            return run.time_limit_s
        partition = self.partition(run.partition or job.spec.partitions[0])
        if partition is None:
            return None
        if partition.default_time_s is not None:
            return partition.default_time_s
        return partition.max_time_s or 0

    def memory_mib(self, job: JobRecord, run: RunRecord) -> int:
        """Return the memory asked for in all, the default where the job names none."""
        ask = job.spec.ask
        nodes = len(run.shares) or ask.nodes_min
        cpus = max(ask.tasks * ask.cpus_per_task, ask.nodes_min, 1)
        if ask.memory_mib > 0:
            gpus = sum(each.count for each in ask.gres if each.name == "gpu")
            return ask.memory_mib * {Per.CPU: cpus, Per.GPU: gpus}.get(ask.memory_per, nodes)
        if ask.memory_mib == 0:
            if default := self._memory_default(job, run):
                mib, of = default
                return mib * (cpus if of is Per.CPU else nodes)
        return sum(share.memory_mib for share in run.shares)

    def _memory_default(self, job: JobRecord, run: RunRecord) -> tuple[int, Per] | None:
        partition = self.partition(run.partition or job.spec.partitions[0])
        block = None if partition is None else partition.block
        for source in (block, self.cluster().settings):
            if source is not None and source.memory_per_cpu_mib is not None:
                return source.memory_per_cpu_mib, Per.CPU
            if source is not None and source.memory_per_node_mib is not None:
                return source.memory_per_node_mib, Per.NODE
        return None


def moment_speller(environment: Mapping[str, str], calendar: Calendar) -> Callable[[int], str]:
    """Return what spells points in time as SLURM_TIME_FORMAT asks."""
    form = environment.get("SLURM_TIME_FORMAT", "")
    if form not in STANDARD:
        return lambda seconds: time.strftime(form, time.localtime(seconds))
    return lambda seconds: format_moment(seconds, calendar)


def line_maker(
    session: Session,
    viewpoint: Viewpoint,
    jobs: Sequence[JobRecord],
    *,
    fields: frozenset[str],
    window: tuple[int, int] | None,
    unit: str,
    converts: bool,
) -> Callable[[JobRecord, RunRecord], list[RecordLine]]:
    """Return what makes the lines of a run of these jobs: its own, then its steps'.

    `fields` are the names of those that are shown, in small letters.
    """
    around = Surroundings(session)
    letters = session.environment.get("SLURM_BITSTR_LEN", "")
    calendar = viewpoint.calendar
    moment = moment_speller(session.environment, calendar)
    has_limit = not fields.isdisjoint(("timelimit", "timelimitraw"))
    has_memory = not fields.isdisjoint(("reqmem", "reqtres"))
    cluster = around.name() if "cluster" in fields else ""
    has_texts = not fields.isdisjoint(PRIVATE_FIELDS)
    texts: dict[JobId, JobText] = {}
    if has_texts:
        from spur_cli.slurm.queue import fetch_texts

        texts = fetch_texts(session, (job.job_id for job in jobs))

    def lines(job: JobRecord, run: RunRecord) -> list[RecordLine]:
        line = RecordLine(
            job=job,
            run=run,
            step=None,
            now_s=calendar.now(),
            moment=moment,
            limit_s=around.limit_s(job, run) if has_limit else None,
            memory_mib=around.memory_mib(job, run) if has_memory else 0,
            user=viewpoint.user,
            group=viewpoint.group,
            text=texts.get(job.job_id),
            cluster=cluster,
            window=window,
            unit=unit,
            converts=converts,
            tasks_letters=int(letters)
            if letters.isascii() and letters.isdigit()
            else TASKS_LETTERS,
        )
        return [line, *(line._replace(step=step) for step in run.steps)]

    return lines
