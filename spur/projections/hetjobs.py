"""Het jobs: components that are accepted, started, put back and ended together.

A component is a job of its own, with the next id after the one before. The first, the leader,
names the whole: what it comes to, its components come to. Where one went another way than the
others, the clock's next command brings them together again (LOG-CONTRACT 7.1):

- once the leader is over, those that wait or run are over as well;
- when one waits again, or is about to, the others are put back too.

Source: Slurm's guide to heterogeneous jobs; slurmctld's het_job_list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from spur.events.declare import Event
from spur.events.jobs import JobRequeued
from spur.events.runs import RunEnded, RunStopped
from spur.projections.due import Due, falls_due
from spur.projections.invariants import invariant
from spur.projections.runrows import EndNote, RunRow, StopNote
from spur.values.errors import InvariantBroken
from spur.values.ids import JobId
from spur.values.states import Hold, JobState, Phase, Reason

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["HetRuns", "components_of", "torn_apart"]


def _is_over(run: RunRow) -> bool:
    """Whether a run has ended, or will, and its job does not wait again by that."""
    if run.phase is Phase.ENDED:
        return True
    return run.stop is not None and not run.stop.requeue


def _next_number(run: RunRow) -> int:
    """Return the number of the run that a job is at, or is about to open."""
    return run.number + (run.stop is not None and run.stop.requeue)


class HetRuns:
    """The newest runs of het jobs' components; an index over the table of runs."""

    def __init__(self) -> None:
        self._hets: dict[JobId, dict[JobId, RunRow]] = {}
        self.apart: set[JobId] = set()
        """Het jobs of which some component has to follow the others."""

    def change(self, key: JobId, old: RunRow | None, new: RunRow | None) -> None:
        """Follow one row."""
        row = new or old
        if row is None or not row.het_id:
            return
        het_id = row.het_id
        rows = self._hets.setdefault(het_id, {})
        if new is None:
            del rows[key]
        else:
            rows[key] = new
        if rows and _follow(rows, het_id):
            self.apart.add(het_id)
        else:
            self.apart.discard(het_id)
        if not rows:
            del self._hets[het_id]

    def fill(self, rows: Mapping[JobId, RunRow]) -> None:
        """Follow every row of a table at once; the index must be empty."""
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> HetRuns:
        """Return an empty index."""
        return HetRuns()

    def contents(self) -> object:
        """Return all that the index holds."""
        return self._hets, self.apart

    def jobs(self, het_id: JobId) -> list[JobId]:
        """Return the components that are in the state, the first one first."""
        return sorted(self._hets.get(het_id, ()))

    def runs(self, het_id: JobId) -> Mapping[JobId, RunRow]:
        """Return their newest runs."""
        return self._hets[het_id]

    def hets(self) -> list[JobId]:
        """Return every het job of which a component is in the state."""
        return sorted(self._hets)


def components_of(state: State, job_id: JobId) -> list[JobId]:
    """Return the components of a het job that its first one names; empty for any other job."""
    return state.het_runs.jobs(job_id)


def _ender(rows: Mapping[JobId, RunRow], het_id: JobId) -> RunRow | None:
    """Return the run with which the whole is over: the leader's, or one that never started."""
    leader = rows.get(het_id)
    if leader is not None and _is_over(leader):
        return leader
    ended = [key for key, row in rows.items() if row.end is not None and row.started is None]
    return rows[min(ended)] if ended else None


def _follow(rows: Mapping[JobId, RunRow], het_id: JobId) -> list[tuple[JobId, RunRow]]:
    """Return the components that have to follow the others, and their runs."""
    if _ender(rows, het_id) is not None:
        return [(key, row) for key, row in rows.items() if not _is_over(row)]
    newest = max(_next_number(row) for row in rows.values())
    return [
        (key, row)
        for key, row in rows.items()
        if _next_number(row) < newest and row.phase in (Phase.RUNNING, Phase.ENDED)
    ]


@falls_due
def torn_apart(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield components that have to follow the others of their het job."""
    yield from islice(_torn_apart(state, now_ns), limit)


def _torn_apart(state: State, now_ns: int) -> Iterator[Due]:
    for het_id in sorted(state.het_runs.apart):
        rows = state.het_runs.runs(het_id)
        ender = _ender(rows, het_id)
        for job_id, run in sorted(_follow(rows, het_id)):
            follows = (
                _again(job_id, run, rows) if ender is None else _over(job_id, run, ender, now_ns)
            )
            yield Due(run.since_ns, "runs", job_id, (follows,))


def _over(job_id: JobId, run: RunRow, ender: RunRow, now_ns: int) -> Event:
    """Return the end of a component, as that of the run with which the whole is over."""
    note: EndNote | StopNote | None = ender.end or ender.stop
    if note is None:
        raise InvariantBroken(f"job {job_id} is to follow a run that is not over")
    state, reason, code, signal = note.state, note.reason, note.exit_code, note.signal
    if run.phase is Phase.PENDING:
        return RunEnded(job_id, run.number, state, reason, code, signal, now_ns, False)
    return RunStopped(job_id, run.number, state, reason, False, Hold.NONE, code, signal)


def _again(job_id: JobId, run: RunRow, rows: Mapping[JobId, RunRow]) -> Event:
    """Return what makes a component wait again, as the one does that others follow."""
    _, first = max(rows.items(), key=lambda item: (_next_number(item[1]), -item[0]))
    hold = first.hold if first.stop is None else first.stop.hold
    if run.phase is Phase.ENDED:
        return JobRequeued(job_id, run.number + 1, hold)
    note = first.stop
    state = JobState.REQUEUED if note is None else note.state
    reason = Reason.NONE if note is None else note.reason
    return RunStopped(job_id, run.number, state, reason, True, hold, 0, 0)


@invariant("het-components-together")
def torn(state: State) -> Iterator[str]:
    """Components have ids in a row and one user, and of each run all started at once, or none."""
    for het_id in state.het_runs.hets():
        rows = state.het_runs.runs(het_id)
        starts: dict[int, set[int]] = {}
        for job_id in sorted(rows):
            job, run = state.jobs[job_id], rows[job_id]
            if (job.het_id, job.het_id + job.het_offset) != (het_id, job_id):
                yield f"job {job_id} is component {job.het_offset} of het job {job.het_id}"
            if not 0 <= job.het_offset < job.het_size or job.array_id:
                yield f"job {job_id} cannot be a component of het job {het_id}"
            past = state.past_runs.get(job_id)
            known = [(run.number, run.started)]
            known += [(each.number, each.started) for each in (() if past is None else past.runs)]
            for number, started in known:
                start_ns = 0 if started is None else started.start_ns
                starts.setdefault(number, set()).add(start_ns)
        if len({state.jobs[job_id].uid for job_id in rows}) != 1:
            yield f"het job {het_id} belongs to several users"
        for number, moments in starts.items():
            if len(moments) > 1:
                yield f"of run {number} of het job {het_id} some components started alone"
    for job_id in state.jobs.sorted_keys():
        if state.jobs[job_id].het_id != state.runs[job_id].het_id:
            yield f"job {job_id} and its run are of different het jobs"
