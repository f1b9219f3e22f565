"""Records of jobs, read back from the rows: what a `RecordFilter` names, as a page.

A run is alive in a window when it could start before the window's end and had not ended before its
beginning. With states, a run is named when it was in one of them within the window: it waited, it
ran, or it ended so. Source: sacct(1) --starttime, --endtime, --state; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, literal, or_, select

from spur.store.steprecords import Columns, RunKey, ended, numbered_steps, steps_of
from spur.store.structs import SHARES, spec_of, tasks_of
from spur.store.tables import NEVER_NS, group_reasons, jobs, run_nodes, runs
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec, shape_of
from spur.values.states import HOLD_REASONS, Hold, JobState, Reason
from spur.values.tres import NodeShare
from spur.wire.history import (
    JobRecord,
    QueryRecords,
    RecordFilter,
    RecordPage,
    RunRecord,
)

__all__ = ["PAGE_BYTES_MAX", "job_record", "record_page"]

PAGE_BYTES_MAX = 4 << 20
"""Bytes of rows after which a page ends: a job of a thousand nodes is a long row."""

LOOKED_UP_MAX = 500
"""Ids in one statement."""

_ENCODE = msgspec.msgpack.Encoder().encode

T = TypeVar("T")
Condition = ColumnElement[bool]


def record_page(connection: Connection, query: QueryRecords) -> RecordPage:
    """Return a slice of the records that a query names."""
    ids = _job_ids(connection, query)
    rows: list[msgspec.Raw] = []
    size = last = 0
    for batch in _batches(ids[: query.limit], LOOKED_UP_MAX):
        for record in _records(connection, query.filter, batch):
            if size >= PAGE_BYTES_MAX:
                return RecordPage(tuple(rows), JobId(last))
            row = _ENCODE(record)
            rows.append(msgspec.Raw(row))
            size += len(row)
            last = record.job_id
    following = JobId(ids[query.limit - 1]) if len(ids) > query.limit else None
    return RecordPage(tuple(rows), following)


def job_record(connection: Connection, job_id: JobId) -> JobRecord | None:
    """Return everything about one job; None when there is none."""
    records = _records(connection, RecordFilter(all_runs=True), [job_id])
    return records[0] if records else None


# -- which


def _job_ids(connection: Connection, query: QueryRecords) -> list[int]:
    """Return the ids of jobs with a run that is named, one more than the page holds."""
    statement = (
        select(runs.c.job_id)
        .distinct()
        .select_from(runs.join(jobs))
        .where(runs.c.job_id > query.after, *_conditions(query.filter))
        # Sorted by a value rather than by the key: what is asked for lies together by time, and
        # walking every job in order of ids to find it would be the longer way.
        .order_by(runs.c.job_id + 0)
        .limit(query.limit + 1)
    )
    return list(connection.execute(statement).scalars())


def _conditions(wanted: RecordFilter) -> list[Condition]:
    found: list[Condition] = []
    if not wanted.all_runs:
        found.append(runs.c.run == jobs.c.run)
    if wanted.job_ids:
        ids = list(wanted.job_ids)
        columns = (jobs.c.job_id, jobs.c.array_job_id, jobs.c.het_job_id)
        found.append(or_(*(column.in_(ids) for column in columns)))
    for column, values in (
        (jobs.c.uid, wanted.uids),
        (jobs.c.gid, wanted.gids),
        (jobs.c.account, wanted.accounts),
        (jobs.c.qos, wanted.qos),
        (jobs.c.name, wanted.names),
    ):
        if values:
            found.append(column.in_(values))
    if wanted.partitions:
        found.append(_in_partitions(wanted.partitions))
    if wanted.nodes:
        held = select(run_nodes.c.job_id).where(
            run_nodes.c.job_id == runs.c.job_id,
            run_nodes.c.run == runs.c.run,
            run_nodes.c.node.in_(wanted.nodes),
        )
        found.append(held.exists())
    if wanted.states:
        found.append(or_(*(_was_in(state, wanted) for state in wanted.states)))
    else:
        found.extend(_alive(wanted))
    return found


def _in_partitions(names: Iterable[PartitionName]) -> Condition:
    """Return whether it ran in one of them, or would like to."""
    padded = literal(",") + jobs.c.partitions + literal(",")
    wishes = or_(*(padded.contains(f",{name},", autoescape=True) for name in names))
    return or_(runs.c.partition.in_(list(names)), and_(runs.c.partition == "", wishes))


def _alive(wanted: RecordFilter) -> list[Condition]:
    found: list[Condition] = []
    if wanted.start_ns:
        found.append(runs.c.end_time_ns >= wanted.start_ns)
    if wanted.end_ns:
        found.append(runs.c.eligible_time_ns <= wanted.end_ns)
    return found


def _was_in(state: JobState, wanted: RecordFilter) -> Condition:
    """Return whether a run was in a state at some time of the window."""
    start_ns, end_ns = wanted.start_ns, wanted.end_ns or NEVER_NS
    began = runs.c.start_time_ns
    if not wanted.start_ns and not wanted.end_ns:
        return runs.c.state == state.value
    if state is JobState.PENDING:
        still = or_(began.is_(None), began >= start_ns)
        return and_(
            runs.c.eligible_time_ns <= end_ns, still, runs.c.end_time_ns >= max(start_ns, 1)
        )
    if state is JobState.RUNNING:
        return and_(began <= end_ns, runs.c.end_time_ns >= start_ns)
    return and_(runs.c.state == state.value, runs.c.end_time_ns.between(start_ns, end_ns))


# -- what


def _records(connection: Connection, wanted: RecordFilter, ids: list[int]) -> list[JobRecord]:
    """Return the records of these jobs with those of their runs that are named, in order."""
    statement: Select[Any] = (
        select(jobs, *(column.label(f"run_{column.name}") for column in runs.columns))
        .select_from(runs.join(jobs))
        .where(runs.c.job_id.in_(ids), *_conditions(wanted))
        .order_by(runs.c.job_id, runs.c.run)
    )
    shares = _shares(connection, ids)
    numbered = numbered_steps(connection, ids)
    found = []
    rows: Iterable[Columns] = map(dict, connection.execute(statement).mappings())
    for _, group in groupby(rows, key=lambda row: row["job_id"]):
        found.append(_job(connection, list(group), shares, numbered))
    return found


def _shares(connection: Connection, ids: list[int]) -> dict[RunKey, list[NodeShare]]:
    """Return what each run of these jobs held, in order."""
    statement = (
        select(run_nodes)
        .where(run_nodes.c.job_id.in_(ids))
        .order_by(run_nodes.c.job_id, run_nodes.c.run, run_nodes.c.position)
    )
    found: dict[RunKey, list[NodeShare]] = {}
    for row in connection.execute(statement).mappings():
        found.setdefault((row["job_id"], row["run"]), []).append(SHARES.read(dict(row)))
    return found


def _job(
    connection: Connection,
    rows: list[Columns],
    shares: dict[RunKey, list[NodeShare]],
    numbered: dict[RunKey, list[Columns]],
) -> JobRecord:
    row = rows[-1]
    spec = spec_of(row)
    return JobRecord(
        job_id=row["job_id"],
        array_id=row["array_job_id"],
        tasks=tasks_of(row["array_tasks"]),
        throttle=row["array_throttle"],
        het_id=row["het_job_id"],
        het_offset=row["het_offset"],
        uid=row["uid"],
        gid=row["gid"],
        spec=spec,
        hold=Hold(row["hold"]),
        priority=row["priority"],
        runs=tuple(
            _run(connection, each, spec, tuple(shares.get(key, ())), numbered.get(key, ()))
            for each in rows
            for key in [(each["job_id"], each["run_run"])]
        ),
    )


def _run(
    connection: Connection,
    row: Columns,
    spec: JobSpec,
    shares: tuple[NodeShare, ...],
    numbered: Sequence[Columns],
) -> RunRecord:
    """Return a run from columns that begin with `run_`."""
    return RunRecord(
        run=row["run_run"],
        index=row["run_record_index"],
        state=JobState(row["run_state"]),
        reason=_reason(connection, row, spec),
        submit_ns=row["run_open_time_ns"],
        eligible_ns=row["run_eligible_time_ns"] or 0,
        start_ns=row["run_start_time_ns"] or 0,
        end_ns=ended(row["run_end_time_ns"]),
        suspended_ns=row["run_paused_ns"],
        suspended_since_ns=row["run_paused_time_ns"] or 0,
        time_limit_s=row["run_time_limit_s"] if shares else spec.time_limit_s,
        partition=row["run_partition"],
        shares=shares,
        exit_code=row["run_exit_code"],
        signal=row["run_signal"],
        killed_by=row["run_killed_by"],
        unfenced=row["run_unfenced"],
        steps=steps_of(row, spec, shares, numbered),
    )


def _reason(connection: Connection, row: Columns, spec: JobSpec) -> Reason:
    """Return why a run waits, or was last said to wait."""
    own = Reason(row["run_reason"])
    if row["run_start_time_ns"] is not None or row["run_end_time_ns"] != NEVER_NS:
        return own
    if row["run_run"] == row["run"] and row["hold"] != Hold.NONE:
        return HOLD_REASONS[Hold(row["hold"])]
    if own is not Reason.NONE:
        return own
    statement = select(group_reasons.c.reason).where(
        group_reasons.c.partition == spec.partitions[0],
        group_reasons.c.shape == shape_of(spec.ask),
    )
    return Reason(connection.execute(statement).scalar() or Reason.NONE)


def _batches(items: list[T], size: int) -> Iterable[list[T]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
