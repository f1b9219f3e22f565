"""Steps of runs, read back from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from spur.store.structs import STEP_SHARES
from spur.store.tables import NEVER_NS, step_nodes, steps
from spur.values.jobspec import JobSpec
from spur.values.states import JobState
from spur.values.steps import BATCH_STEP, EXTERN_STEP, Dealing
from spur.values.tres import NodeShare
from spur.wire.history import StepRecord

__all__ = ["Columns", "RunKey", "ended", "numbered_steps", "steps_of"]

Columns = Mapping[str, Any]
"""A row by names of columns; those of a run begin with `run_`."""

RunKey = tuple[int, int]
"""Job and run."""

_LAYOUTS = {Dealing.BLOCK: "Block", Dealing.CYCLIC: "Cyclic", Dealing.PLANE: "Plane"}


def ended(end_ns: int) -> int:
    """Return the time of an end as records have it: 0 before."""
    return 0 if end_ns == NEVER_NS else end_ns


def numbered_steps(connection: Connection, ids: Sequence[int]) -> dict[RunKey, list[Columns]]:
    """Return the rows of the numbered steps of these jobs; "shares" is what each used."""
    used: dict[tuple[int, int, int], list[NodeShare]] = {}
    order = (step_nodes.c.job_id, step_nodes.c.run, step_nodes.c.step_id, step_nodes.c.position)
    nodes = select(step_nodes).where(step_nodes.c.job_id.in_(ids)).order_by(*order)
    for row in connection.execute(nodes).mappings():
        key = (row["job_id"], row["run"], row["step_id"])
        used.setdefault(key, []).append(STEP_SHARES.read(dict(row)))
    found: dict[RunKey, list[Columns]] = {}
    wanted = select(steps).where(steps.c.job_id.in_(ids))
    for row in connection.execute(wanted.order_by(*steps.primary_key)).mappings():
        key = (row["job_id"], row["run"], row["step_id"])
        step = dict(row) | {"shares": tuple(used.get(key, ()))}
        found.setdefault(key[:2], []).append(step)
    return found


def steps_of(
    row: Columns, spec: JobSpec, shares: tuple[NodeShare, ...], numbered: Sequence[Columns]
) -> tuple[StepRecord, ...]:
    """Return the steps of a run, given the rows of the numbered ones.

    The script and what holds the run's place have no rows: each allocation has them, and both end
    with the run; of the script is known when and how.
    """
    if not shares:
        return ()
    steps = []
    if spec.batch and not row["het_offset"]:
        steps.append(_script(row, shares[:1]))
    steps.append(_extern(row, shares))
    steps += [_numbered(row, step) for step in numbered]
    return tuple(steps)


_CUT_SHORT = {
    JobState.CANCELLED,
    JobState.TIMEOUT,
    JobState.PREEMPTED,
    JobState.NODE_FAIL,
    JobState.REQUEUED,
    JobState.DEADLINE,
}
"""States of a run whose script did not end by itself."""


def _script(row: Columns, shares: tuple[NodeShare, ...]) -> StepRecord:
    run_state, end_ns = JobState(row["run_state"]), row["run_script_end_ns"] or 0
    code, signal = row["run_script_exit_code"], row["run_script_signal"]
    if not end_ns and row["run_end_time_ns"] == NEVER_NS:
        state = JobState.RUNNING
    elif signal or (not end_ns and run_state in _CUT_SHORT):
        state = JobState.CANCELLED
    else:
        state = JobState.FAILED if code else JobState.COMPLETED
    return StepRecord(
        step=BATCH_STEP,
        name="batch",
        state=state,
        exit_code=code,
        signal=signal,
        start_ns=row["run_start_time_ns"],
        end_ns=end_ns or ended(row["run_end_time_ns"]),
        tasks=1,
        shares=shares,
        distribution="",
        killed_by=None,
    )


def _extern(row: Columns, shares: tuple[NodeShare, ...]) -> StepRecord:
    run_state = JobState(row["run_state"])
    if row["run_end_time_ns"] == NEVER_NS:
        state = JobState.RUNNING
    else:
        lost = run_state is JobState.NODE_FAIL
        state = JobState.CANCELLED if lost else JobState.COMPLETED
    return StepRecord(
        step=EXTERN_STEP,
        name="extern",
        state=state,
        exit_code=0,
        signal=0,
        start_ns=row["run_start_time_ns"],
        end_ns=ended(row["run_end_time_ns"]),
        tasks=len(shares),
        shares=shares,
        distribution="",
        killed_by=None,
    )


def _numbered(row: Columns, step: Columns) -> StepRecord:
    """Return a numbered step; one that was open when its run or attempt ended, ended with it."""
    state, end_ns = JobState(step["state"]), ended(step["end_time_ns"])
    if not end_ns and step["attempt"] != row["run_attempt"]:
        state, end_ns = JobState.CANCELLED, step["start_time_ns"]
    elif not end_ns and row["run_end_time_ns"] != NEVER_NS:
        state, end_ns = JobState.CANCELLED, row["run_end_time_ns"]
    elif state is JobState.FAILED and step["signal"]:
        state = JobState.CANCELLED  # as Slurm's accounting has what a signal ended
    return StepRecord(
        step=step["step_id"],
        name=step["name"],
        state=state,
        exit_code=step["exit_code"],
        signal=step["signal"],
        start_ns=step["start_time_ns"],
        end_ns=end_ns,
        tasks=step["tasks"],
        shares=step["shares"],
        distribution=_LAYOUTS[Dealing(step["dealing"])],
        killed_by=step["killed_by"],
    )
