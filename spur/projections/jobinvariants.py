"""What must hold of jobs, runs and resources in every state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spur.projections.counters import JOB_ID_COUNTER, counter
from spur.projections.invariants import invariant
from spur.projections.jobviews import encoded_view, job_view
from spur.projections.nodes import block_of
from spur.projections.resources import held_shares
from spur.projections.runrows import FINAL, RunRow
from spur.values.arrays import TaskSet
from spur.values.ids import NodeName
from spur.values.states import NodeShareState, Phase
from spur.values.tres import cpu_mask

if TYPE_CHECKING:
    from spur.projections.state import State

__all__: list[str] = []


@invariant("resources-never-oversold")
def oversold(state: State) -> Iterator[str]:
    """On each node the runs hold together at most what it has, and each GPU at most once.

    A CPU is held once too, unless all that hold it share.
    """
    cpus: dict[NodeName, int] = {}
    alone: dict[NodeName, int] = {}
    memory_mib: dict[NodeName, int] = {}
    gpus: dict[NodeName, int] = {}
    for job_id in state.runs.sorted_keys():
        for share in held_shares(state.runs[job_id]):
            node = share.node
            mask = cpu_mask(share.cpu_set)
            closed = cpus if not share.is_shared else alone
            if closed.get(node, 0) & mask:
                yield f"job {job_id} holds a CPU of node {node} that another job holds"
            if not 1 <= share.cpus <= mask.bit_count():
                yield f"job {job_id} is shown {share.cpus} CPUs of the set {mask:#x}"
            cpus[node] = cpus.get(node, 0) | mask
            if not share.is_shared:
                alone[node] = alone.get(node, 0) | mask
            memory_mib[node] = memory_mib.get(node, 0) + share.memory_mib
            if gpus.get(node, 0) & share.gpus:
                yield f"job {job_id} holds a GPU of node {node} that another job holds"
            gpus[node] = gpus.get(node, 0) | share.gpus
    for node in sorted(cpus):
        has = block_of(state, node)
        if has is None:
            yield f"node {node} has runs and is not configured"
            continue
        if cpus[node] >> has.cpus:
            yield f"node {node} has {has.cpus} CPUs and those of mask {cpus[node]:#x} are held"
        if memory_mib[node] > has.memory_mib:
            yield f"node {node} has {has.memory_mib} MiB and {memory_mib[node]} are held"
        if gpus[node] >> has.gpus:
            yield f"node {node} has {has.gpus} GPUs and those of mask {gpus[node]:#x} are held"


@invariant("every-job-accounted-for")
def unaccounted(state: State) -> Iterator[str]:
    """Every job has exactly one newest run, every run a job, and ended runs one record each."""
    if state.jobs.rows.keys() != state.runs.rows.keys():
        yield "the jobs and the runs have different ids"
    for job_id in state.past_runs.sorted_keys():
        run = state.runs.get(job_id)
        numbers = [past.number for past in state.past_runs[job_id].runs]
        if run is None or numbers != list(range(run.number)):
            yield f"job {job_id} has past runs {numbers}"
    for job_id in state.runs.sorted_keys():
        run = state.runs[job_id]
        if run.number and job_id not in state.past_runs:
            yield f"job {job_id} is at run {run.number} and has no record of its past runs"
        yield from (f"job {job_id}: {breach}" for breach in _shape_breaches(run))


def _shape_breaches(run: RunRow) -> Iterator[str]:
    """Yield what a row says that its phase does not allow."""
    started, stop, end = run.started, run.stop, run.end
    if (stop is not None) != (run.phase is Phase.STOPPING):
        yield f"{run.phase.name} and stop note do not go together"
    if (end is not None) != (run.phase is Phase.ENDED):
        yield f"{run.phase.name} and record do not go together"
    if started is None:
        if run.phase in (Phase.RUNNING, Phase.STOPPING):
            yield f"{run.phase.name} without an allocation"
        return
    if run.phase is Phase.PENDING:
        yield "PENDING with an allocation"
    if len(started.states) != len(started.shares):
        yield "its nodes and their states differ in number"
    if len({share.node for share in started.shares}) != len(started.shares):
        yield "it holds a node twice"
    if run.attempt < started.launches:
        yield f"attempt {run.attempt} after {started.launches} launches"
    if end is not None:
        lost = NodeShareState.LOST in started.states
        if lost != end.unfenced:
            yield "lost nodes and the mark 'unfenced' do not go together"
        if any(s not in FINAL and s != NodeShareState.LOST for s in started.states):
            yield "ENDED while a node may have it alive"
        if end.end_ns < started.start_ns:
            yield "it ended before it started"


@invariant("one-task-per-allocation")
def started_while_several(state: State) -> Iterator[str]:
    """A run holds an allocation for one task alone."""
    for job_id in state.allocations.jobs():
        tasks = state.jobs[job_id].tasks
        if tasks is not None and not tasks.is_single:
            yield f"job {job_id} runs as several tasks of an array"


@invariant("array-tasks-once")
def misplaced_tasks(state: State) -> Iterator[str]:
    """Each task of an array is in exactly one row, or has left the state."""
    for array_id in state.arrays.sorted_keys():
        array = state.arrays[array_id]
        left, counted = array.tasks, array.purged
        for job_id in state.array_jobs.jobs(array_id):
            tasks = state.jobs[job_id].tasks or TaskSet(())
            if not tasks.ranges or not tasks.is_within(left):
                yield f"job {job_id} stands for tasks of array {array_id} that are not its own"
            left = left.without(tasks)
            counted += tasks.count
        if counted != array.tasks.count:
            yield f"array {array_id} had {array.tasks.count} tasks and {counted} are accounted for"
    for job_id in state.jobs.sorted_keys():
        job = state.jobs[job_id]
        if (job.tasks is None) != (job.array_id == 0):
            yield f"job {job_id}: tasks and array do not go together"
        if job.array_id and job.array_id not in state.arrays:
            yield f"job {job_id} is of array {job.array_id}, which is not in the state"
        if state.runs[job_id].array_id != job.array_id:
            yield f"job {job_id} and its run are of different arrays"


@invariant("job-ids-below-the-counter")
def ids_beyond(state: State) -> Iterator[str]:
    """No job has an id that is still to be given out."""
    newest = counter(state, JOB_ID_COUNTER)
    for job_id in state.jobs.sorted_keys():
        if job_id > newest:
            yield f"job {job_id} is beyond the counter, {newest}"


@invariant("encoded-views-match-their-rows")
def stale_views(state: State) -> Iterator[str]:
    """A row of the queue that was encoded before says what it would say now."""
    for job_id, encoded in sorted(state.encoded_views.rows.items()):
        if job_id not in state.jobs or encoded_view(job_view(state, job_id)) != encoded:
            yield f"the encoded row of job {job_id} is stale"
