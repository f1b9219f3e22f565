"""What sdiag prints, and the names that Slurm has for requests.

Source: sdiag(1); transcripts of Slurm 22.05; slurm_protocol_defs.h for names and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from spur.wire.statistics import RequestCount, Statistics

__all__ = ["MESSAGES", "Calls", "calls_of", "show_statistics"]

MESSAGES: dict[str, tuple[str, int]] = {
    "agent.attend": ("MESSAGE_NODE_ORDERS", 0),
    "cluster.reconfigure": ("REQUEST_RECONFIGURE", 1003),
    "cluster.show": ("REQUEST_BUILD_INFO", 2001),
    "cluster.show-config": ("REQUEST_BUILD_INFO", 2001),
    "controller.list": ("REQUEST_PING", 1008),
    "entities.query": ("REQUEST_ASSOC_MGR_INFO", 2043),
    "history.records": ("DBD_GET_JOBS_COND", 1444),
    "job.cancel": ("REQUEST_KILL_JOB", 5032),
    "job.explain": ("REQUEST_JOB_INFO_SINGLE", 2021),
    "job.forecast": ("REQUEST_JOB_WILL_RUN", 4012),
    "job.hold": ("REQUEST_UPDATE_JOB", 3001),
    "job.read-script": ("REQUEST_BATCH_SCRIPT", 2051),
    "job.release": ("REQUEST_UPDATE_JOB", 3001),
    "job.release-allocation": ("REQUEST_COMPLETE_JOB_ALLOCATION", 5017),
    "job.requeue": ("REQUEST_JOB_REQUEUE", 5023),
    "job.signal": ("REQUEST_KILL_JOB", 5032),
    "job.submit": ("REQUEST_SUBMIT_BATCH_JOB", 4003),
    "job.update": ("REQUEST_UPDATE_JOB", 3001),
    "jobs.cancel": ("REQUEST_KILL_JOBS", 5033),
    "jobs.factors": ("REQUEST_PRIORITY_FACTORS", 2026),
    "jobs.query": ("REQUEST_JOB_INFO", 2003),
    "jobs.read-texts": ("REQUEST_JOB_INFO_SINGLE", 2021),
    "license.list": ("REQUEST_LICENSE_INFO", 1021),
    "node.list": ("REQUEST_NODE_INFO", 2007),
    "node.register": ("MESSAGE_NODE_REGISTRATION_STATUS", 1002),
    "node.update": ("REQUEST_UPDATE_NODE", 3002),
    "partition.list": ("REQUEST_PARTITION_INFO", 2009),
    "partition.update": ("REQUEST_UPDATE_PARTITION", 3005),
    "run.report": ("MESSAGE_EPILOG_COMPLETE", 6012),
    "statistics.reset": ("REQUEST_STATS_RESET", 2053),
    "statistics.show": ("REQUEST_STATS_INFO", 2035),
    "step.cancel": ("REQUEST_CANCEL_JOB_STEP", 5005),
    "step.report": ("REQUEST_STEP_COMPLETE", 5016),
    "step.signal": ("REQUEST_CANCEL_JOB_STEP", 5005),
    "step.start": ("REQUEST_JOB_STEP_CREATE", 5001),
    "steps.query": ("REQUEST_JOB_STEP_INFO", 2005),
}
"""Slurm's name and number for what a request of ours asks; others go by their own, numbered 0."""

_NS = 1_000_000_000


class Calls(NamedTuple):
    """Calls of one kind, or of one user."""

    name: str
    number: int
    calls: int
    time_us: int

    @property
    def mean_us(self) -> int:
        return self.time_us // self.calls if self.calls else 0


def calls_of(counts: Iterable[RequestCount]) -> list[Calls]:
    """Return counts by Slurm's names; those that Slurm has one name for are added up."""
    found: dict[str, Calls] = {}
    for row in counts:
        own = row.name.upper().replace(".", "_").replace("-", "_")
        name, number = MESSAGES.get(row.name, (own, 0))
        before = found.get(name, Calls(name, number, 0, 0))
        found[name] = before._replace(
            calls=before.calls + row.count, time_us=before.time_us + row.time_us
        )
    return list(found.values())


def show_statistics(
    told: Statistics,
    *,
    moment: Callable[[int], str],
    user: Callable[[int], str],
    order: Callable[[Calls], tuple[int, ...]],
    latency_us: int,
) -> str:
    """Return the report; `moment` spells seconds of the epoch as date(1) does."""

    def at(time_ns: int) -> str:
        return f"{moment(time_ns // _NS)} ({time_ns // _NS})"

    stars = "*" * 55
    people = [Calls(user(row.uid), row.uid, row.count, row.time_us) for row in told.users]
    lines = [
        stars,
        f"sdiag output at {at(told.now_ns)}",
        f"Data since      {at(told.since_ns)}",
        stars,
        f"Server thread count:  {1}",
        f"Agent queue size:     {0}",
        f"Agent count:          {told.agents}",
        f"Agent thread count:   {0}",
        f"DBD Agent queue size: {0}",
        "",
        f"Jobs submitted: {told.submitted}",
        f"Jobs started:   {told.started}",
        f"Jobs completed: {told.completed}",
        f"Jobs canceled:  {told.canceled}",
        f"Jobs failed:    {told.failed}",
        "",
        f"Job states ts:  {at(told.now_ns)}",
        f"Jobs pending:   {told.pending}",
        f"Jobs running:   {told.running}",
        "",
        *_cycles(told, at),
        "",
        f"Latency for 1000 calls to gettimeofday(): {latency_us} microseconds",
        "",
        "Remote Procedure Call statistics by message type",
        *(_call(row, 40, 5) for row in sorted(calls_of(told.requests), key=order)),
        "",
        "Remote Procedure Call statistics by user",
        *(_call(row, 16, 8) for row in sorted(people, key=order)),
        "",
        "Pending RPC statistics",
        "\tNo pending RPCs",
    ]
    return "".join(f"{line}\n" for line in lines)


def _call(row: Calls, width: int, digits: int) -> str:
    return (
        f"\t{row.name:<{width - 1}} ({row.number:{digits}}) count:{row.calls:<6} "
        f"ave_time:{row.mean_us:<6} total_time:{row.time_us}"
    )


def _cycles(told: Statistics, at: Callable[[int], str]) -> Iterator[str]:
    """Yield the scheduler's cycles: one planner does what Slurm has two for."""
    cycles = told.cycles
    yield "Main schedule statistics (microseconds):"
    yield f"\tLast cycle:   {cycles.last_us}"
    yield f"\tMax cycle:    {cycles.longest_us}"
    yield f"\tTotal cycles: {cycles.count}"
    if cycles.count:
        yield f"\tMean cycle:   {cycles.total_us // cycles.count}"
        yield f"\tMean depth cycle:  {cycles.depth_total // cycles.count}"
    minutes = (told.now_ns - told.since_ns) // (60 * _NS)
    if minutes:
        yield f"\tCycles per minute: {cycles.count // minutes}"
    yield f"\tLast queue length: {cycles.last_queue}"
    yield ""
    yield "Backfilling stats"
    yield f"\tTotal backfilled jobs (since last slurm start): {cycles.passed_over}"
    yield f"\tTotal backfilled jobs (since last stats cycle start): {cycles.passed_over}"
    yield "\tTotal backfilled heterogeneous job components: 0"
    yield f"\tTotal cycles: {cycles.count}"
    yield f"\tLast cycle when: {at(cycles.last_ns)}"
    yield f"\tLast cycle: {cycles.last_us}"
    yield f"\tMax cycle:  {cycles.longest_us}"
    if cycles.count:
        yield f"\tMean cycle: {cycles.total_us // cycles.count}"
    yield f"\tLast depth cycle: {cycles.last_depth}"
    yield f"\tLast depth cycle (try sched): {cycles.last_depth}"
    if cycles.count:
        yield f"\tDepth Mean: {cycles.depth_total // cycles.count}"
        yield f"\tDepth Mean (try depth): {cycles.depth_total // cycles.count}"
    yield f"\tLast queue length: {cycles.last_queue}"
    if cycles.count:
        yield f"\tQueue length mean: {cycles.queue_total // cycles.count}"
    yield "\tLast table size: 0"
    if cycles.count:
        yield "\tMean table size: 0"
