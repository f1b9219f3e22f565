"""Rows of runs, and what one report or one lost node makes of a row: pure functions of it.

A run's row is small and is replaced at each change; what only a started run has lies in a part of
its own, so a waiting job costs little.
"""

from __future__ import annotations

from msgspec.structs import replace

from spur.projections.tables import Row
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import Hold, JobState, NodeShareState, Phase, Reason
from spur.values.tres import NodeShare

__all__ = [
    "FINAL",
    "Course",
    "EndNote",
    "PastRun",
    "PastRunsRow",
    "RunRow",
    "StartedRun",
    "StopNote",
    "all_final",
    "counted_from_ns",
    "end_of",
    "is_paused",
    "limit_of",
    "position_of_node",
    "ran_ns",
    "with_node_state",
]

FINAL = frozenset({NodeShareState.ENDED, NodeShareState.VOID, NodeShareState.DEAD})
"""States of a node's share after which the attempt can't live there."""


class Course(Row, frozen=True):
    """How a run goes on, once something was changed of it after its start."""

    index: int
    """The entry that changed it last; what nodes are told is named by it."""
    paused: bool
    """Whether its processes stand still."""
    turned_ns: int
    """When it was suspended or resumed last; 0 for never."""
    ran_ns: int
    """How long it had run by then."""


class StartedRun(Row, frozen=True):
    """What a run has from its start on."""

    partition: PartitionName
    """Which of the job's partitions it runs in."""
    shares: tuple[NodeShare, ...]
    states: bytes
    """A `NodeShareState` for each share, in the same order."""
    start_ns: int
    limit_ns: int
    """When its time limit is reached; 0 is never. Of a suspended one: if it had gone on then."""
    launches: int
    """How many attempts this run has had."""
    end_ns: int
    """The latest end that a node reported; 0 before."""
    exit_code: int
    """Of the first node, where the script runs; 0 before it ended."""
    signal: int
    out_of_memory: bool
    course: Course | None
    """None while it goes on as it was started."""


class StopNote(Row, frozen=True):
    """How a run that is stopping will be recorded, and whether its job then waits again."""

    state: JobState
    reason: Reason
    time_ns: int
    requeue: bool
    hold: Hold
    exit_code: int
    """Of an allocation without a script, which reports none of its own."""
    signal: int


class EndNote(Row, frozen=True):
    """The one record of how a run ended."""

    state: JobState
    reason: Reason
    exit_code: int
    signal: int
    end_ns: int
    unfenced: bool
    """Whether a lost node may still have had it alive."""


class RunRow(Row, frozen=True):
    """The newest run of a job; its key is the job's id."""

    number: int
    attempt: int
    """Of the job's whole life; 0 before its first start."""
    phase: Phase
    hold: Hold
    reason: Reason
    """Why it waits, where that differs from its group; else NONE."""
    priority: int | None
    """Fixed by an operator; None leaves it to the scheduler."""
    since_ns: int
    """Since when it waits: submission, release or requeue; its age counts from here."""
    array_id: JobId
    """0 for a job that is no array."""
    het_id: JobId
    """0 for a job that is no component of a het job."""
    started: StartedRun | None
    stop: StopNote | None
    """Only while it is stopping."""
    end: EndNote | None


class PastRun(Row, frozen=True):
    """A run that ended and was followed by another."""

    number: int
    since_ns: int
    started: StartedRun | None
    end: EndNote


class PastRunsRow(Row, frozen=True):
    """All runs of a job but the newest, oldest first; its key is the job's id."""

    runs: tuple[PastRun, ...]


def is_paused(row: RunRow) -> bool:
    """Whether a run is suspended, or was when it ended."""
    return row.started is not None and row.started.course is not None and row.started.course.paused


def counted_from_ns(started: StartedRun) -> int:
    """Return when the run began, had it never been suspended: what its limit counts from."""
    course = started.course
    return course.turned_ns - course.ran_ns if course and course.turned_ns else started.start_ns


def ran_ns(started: StartedRun, now_ns: int) -> int:
    """Return for how long a run ran until a time, without what it stood still."""
    course = started.course
    if course is not None and course.paused:
        return course.ran_ns
    return max(now_ns - counted_from_ns(started), 0)


def position_of_node(started: StartedRun, node: NodeName) -> int | None:
    """Return the node's place among the shares; None when the run has nothing there."""
    for position, share in enumerate(started.shares):
        if share.node == node:
            return position
    return None


def all_final(started: StartedRun, *, lost_counts: bool = False) -> bool:
    """Whether the attempt can live on none of its nodes; a lost node counts if so asked."""
    return all(
        state in FINAL or (lost_counts and state == NodeShareState.LOST) for state in started.states
    )


def with_node_state(
    row: RunRow,
    position: int,
    state: NodeShareState,
    *,
    end_ns: int = 0,
    exit_code: int = 0,
    signal: int = 0,
    out_of_memory: bool = False,
) -> RunRow:
    """Return the row after a node's share came into a state; the first node's exit counts."""
    started = row.started
    if started is None:
        raise ValueError("the run was not started")
    if len(started.states) == 1:
        states = _SINGLE[state]
    else:
        states = started.states[:position] + _SINGLE[state] + started.states[position + 1 :]
    if position == 0 and state is NodeShareState.ENDED:
        after = replace(
            started,
            states=states,
            end_ns=max(started.end_ns, end_ns),
            exit_code=exit_code,
            signal=signal,
            out_of_memory=out_of_memory,
        )
    else:
        after = replace(started, states=states, end_ns=max(started.end_ns, end_ns))
    return replace(row, started=after)


def limit_of(_: JobId, row: RunRow) -> int | None:
    """Return when a running run reaches its time limit; None when it never does as it is."""
    if row.phase is not Phase.RUNNING or row.started is None or is_paused(row):
        return None
    return row.started.limit_ns or None


def end_of(_: JobId, row: RunRow) -> int | None:
    """Return when an ended run ended; None for any other."""
    return None if row.end is None else row.end.end_ns


_SINGLE = {state: bytes((state,)) for state in NodeShareState}
