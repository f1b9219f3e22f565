"""The command that changes what jobs ask for."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from spur.commands.accounting import accounted_spec
from spur.commands.admission import refuse_amendments, refuse_change
from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, Role, role_of
from spur.commands.targets import Target, changed, ended, has_ended
from spur.events.declare import Event
from spur.events.jobs import (
    ArrayThrottled,
    JobHeld,
    JobPriorityChanged,
    JobSpecChanged,
    JobTextsChanged,
)
from spur.projections.dependencies import closes_circle
from spur.projections.runrows import counted_from_ns
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, Phase
from spur.wire.jobs import UpdateJob

__all__ = ["decide_update_job"]

_OF_THE_ROW = frozenset({"ask", "dependency", "priority", "throttle"})
"""Changes that are no field of a spec as they stand."""

_WHILE_IT_RUNS = frozenset({"name", "time_limit_s", "nice", "requeue"})
"""Fields of a spec that did not steer where a job was placed."""


@command(UpdateJob, permission=Permission.USER, divisible=True)
def decide_update_job(state: State, request: UpdateJob, context: Context) -> Decision | Rejection:
    """Change what jobs ask for."""
    asked = request.changes
    priority = asked.priority
    if priority is not None and not -1 <= priority < 1 << 31:
        return Rejection(
            "invalid-value",
            f"priority {priority} is not from -1 to {(1 << 31) - 1}; nothing was changed",
        )
    if asked.partitions == ():
        return Rejection("invalid-value", "a job is in at least one partition; nothing was changed")
    refused = refuse_amendments(state, request.attachments, context)
    if refused is not None:
        return refused
    is_operator = role_of(state, context.actor) >= Role.OPERATOR

    def change(target: Target) -> list[Event] | Rejection | None:
        return _Update(state, request, context, target, is_operator=is_operator).events()

    decision = changed(state, context, request.job_id, request.tasks, change, takes_whole=False)
    if isinstance(decision, Rejection) or asked.throttle is None or context.part > 1:
        return decision
    throttled = _throttled(state, request.job_id, asked.throttle)
    if isinstance(throttled, Rejection):
        return throttled
    return replace(decision, events=(*throttled, *decision.events))


def _throttled(state: State, job_id: JobId, throttle: int) -> list[Event] | Rejection:
    """Return the event that lets at most so many tasks of the job's array run at a time."""
    job = state.jobs.get(job_id)
    array_id = job_id if job is None else job.array_id
    array = state.arrays.get(array_id)
    if array is None:
        return []  # of a job that is no array nothing is limited; Slurm says nothing either
    if not 0 <= throttle < 1 << 31:
        return Rejection(
            "invalid-value",
            f"a throttle of {throttle} tasks is not from 0 to {(1 << 31) - 1}; nothing was changed",
        )
    return [] if array.throttle == throttle else [ArrayThrottled(array_id, throttle)]


class _Update:
    """One row on its way to what is asked."""

    def __init__(
        self,
        state: State,
        request: UpdateJob,
        context: Context,
        target: Target,
        *,
        is_operator: bool,
    ) -> None:
        self._state = state
        self._asked = request.changes
        self._amended = tuple(each.name for each in request.attachments)
        self._context = context
        self._target = target
        self._is_operator = is_operator

    def events(self) -> list[Event] | Rejection | None:
        """Return the events that bring the row to what is asked, why not, or None for none."""
        if has_ended(self._target.run):
            return ended(self._target)
        found: list[Event] = []
        for part in (self._priority, self._spec, self._texts):
            outcome = part()
            if isinstance(outcome, Rejection):
                return outcome
            found += outcome
        return found or None

    def _texts(self) -> list[Event] | Rejection:
        if not self._amended:
            return []
        if "stdout" in self._amended and self._target.run.phase is not Phase.PENDING:
            return self._waits_no_more()
        places = tuple(range(len(self._context.attachments)))
        return [JobTextsChanged(self._target.job_id, places)]

    def _waits_no_more(self) -> Rejection:
        return Rejection(
            "wrong-state", f"job {self._target.job_id} waits no more; nothing was changed"
        )

    def _priority(self) -> list[Event] | Rejection:
        """Fix the priority; 0 holds the job. Source: scontrol(1) update Priority."""
        asked, run, job_id = self._asked.priority, self._target.run, self._target.job_id
        if asked is None:
            return []
        if asked == 0:
            hold = Hold.ADMIN if self._is_operator else Hold.USER
            if run.hold in (hold, Hold.ADMIN):
                return []
            return [JobHeld(job_id, hold)]
        if run.hold is not Hold.NONE and asked > 0:
            return Rejection(
                "job-held", f"job {job_id} is held; nothing was changed", "release it first"
            )
        if not self._is_operator:
            code = "not-permitted" if run.phase is Phase.PENDING else "priority-not-kept"
            return Rejection(code, "a fixed priority takes an operator; nothing was changed")
        priority = None if asked == -1 else asked
        return [] if run.priority == priority else [JobPriorityChanged(job_id, priority)]

    def _fields(self) -> dict[str, Any]:  # of the types of a spec's fields
        """Return the fields of the spec that are asked to change."""
        asked = self._asked
        fields: dict[str, Any] = {
            name: getattr(asked, name)
            for name in asked.__struct_fields__
            if name not in _OF_THE_ROW and getattr(asked, name) is not None
        }
        if asked.dependency is not None:
            fields["dependency"] = asked.dependency if asked.dependency.conditions else None
        if asked.ask is not None:
            given = {
                name: getattr(asked.ask, name)
                for name in asked.ask.__struct_fields__
                if getattr(asked.ask, name) is not None
            }
            fields["ask"] = replace(self._target.job.spec.ask, **given)
        return fields

    def _spec(self) -> list[Event] | Rejection:
        target, spec, state = self._target, self._target.job.spec, self._state
        is_pending = target.run.phase is Phase.PENDING
        dependency = self._asked.dependency
        if dependency is not None and not is_pending:
            return self._waits_no_more()
        if dependency is not None and closes_circle(state, target.job_id, dependency):
            return Rejection(
                "invalid-dependency",
                f"job {target.job_id} would wait for itself; nothing was changed",
            )
        fields = self._fields()
        wanted = replace(spec, **fields)
        if not fields.keys().isdisjoint(("account", "qos", "partitions")):
            accounted = accounted_spec(
                state, wanted, uid=target.job.uid, is_operator=self._is_operator
            )
            if isinstance(accounted, Rejection):
                return accounted
            wanted = accounted
        if wanted == spec:
            return []
        if not is_pending and fields.keys() - _WHILE_IT_RUNS:
            return Rejection(
                "wrong-state",
                f"job {target.job_id} runs: only its name, time limit, nice, comment and whether "
                "it may be requeued can be changed; nothing was changed",
            )
        refused = self._refuse_limit(wanted) or refuse_change(state, spec, wanted, self._context)
        return refused or [JobSpecChanged(target.job_id, wanted)]

    def _refuse_limit(self, wanted: JobSpec) -> Rejection | None:
        """Return why a longer time limit takes an operator, or None."""
        former_s, wanted_s = self._target.job.spec.time_limit_s, wanted.time_limit_s
        started = self._target.run.started
        if started is not None:
            left_ns = started.limit_ns - counted_from_ns(started) if started.limit_ns else 0
            former_s = left_ns // 1_000_000_000
        if self._is_operator or wanted_s is None or wanted_s == former_s:
            return None
        text = f"job {self._target.job_id}: so long a time limit takes an operator"
        if self._target.run.phase is Phase.PENDING:
            most_s = _longest_s(self._state, wanted.partitions)
            is_over = most_s is not None and (wanted_s > most_s or not wanted_s)
        else:
            is_over = former_s is None or _is_longer(wanted_s, former_s)
        return Rejection("not-permitted", f"{text}; nothing was changed") if is_over else None


def _is_longer(wanted_s: int, former_s: int) -> bool:
    """Compare two time limits; 0 is none."""
    return former_s != 0 and (wanted_s == 0 or wanted_s > former_s)


def _longest_s(state: State, partitions: tuple[PartitionName, ...]) -> int | None:
    """Return the longest time limit that one of the partitions gives; None for any."""
    limits = [
        row.block.max_time_s
        for name in partitions
        if (row := state.partitions.get(name)) is not None
    ]
    finite = [limit for limit in limits if limit]
    return max(finite) if finite and len(finite) == len(limits) else None
