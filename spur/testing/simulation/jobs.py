"""People who submit jobs and arrays under unique names, and change their minds about them."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from spur.testing.hall import STEP
from spur.testing.simulation.callers import ADMINISTRATOR, Caller, Callers, Outcome, user
from spur.testing.simulation.checks import Checks
from spur.testing.simulation.member import Violation
from spur.testing.simulation.world import World
from spur.values.arrays import TaskSet
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec, ResourceAsk, Sharing
from spur.values.states import Hold
from spur.values.tres import Per
from spur.wire.calls import Refused
from spur.wire.declare import Attachment, Request
from spur.wire.jobs import (
    CancelJob,
    HoldJob,
    JobAccepted,
    ReleaseJob,
    RequeueJob,
    SubmitJob,
)
from spur.wire.steps import KEY_SIZE, CancelStep, StartStep, StepAccepted

__all__ = ["MAIN", "People", "submission"]

MAIN = PartitionName("main")
UID = 1000
PATIENCE_S = 6.0

JUDGED_CODES = frozenset(
    {
        "outcome-unknown",
        "job-ended",
        "job-pending",
        "wrong-state",
        "requeue-disabled",
        "limit-exceeded",
    }
)
"""What a request about a job that exists may be refused for."""

STEP_CODES = JUDGED_CODES | {"step-busy", "step-too-large", "step-unavailable"}
"""What a step may be refused for in such a job."""

STEP_TRIES = 4
"""How many steps one asks for, started or not."""


def _spec(name: str, *, requeue: bool) -> JobSpec:
    """Return a job of one CPU."""
    ask = ResourceAsk(
        nodes_min=1,
        nodes_max=0,
        tasks=1,
        tasks_per_node=0,
        cpus_per_task=1,
        memory_mib=64,
        memory_per=Per.NODE,
        memory_is_default=False,
        gres=(),
        features="",
        nodes_required="",
        nodes_excluded="",
        sharing=Sharing.PARTITION,
        licenses="",
        reservation="",
        tasks_per_socket=0,
        tasks_per_core=0,
        tasks_per_gpu=0,
        sockets_per_node=0,
        cores_per_socket=0,
        threads_per_core=0,
        cpus_per_node_min=0,
        cpus_per_gpu=0,
        disk_mib=0,
        contiguous=False,
        overcommit=False,
        preferred="",
        tasks_follow=False,
    )
    return JobSpec(
        name=name,
        partitions=(MAIN,),
        account="",
        qos="",
        ask=ask,
        time_limit_s=3600,
        begin_ns=0,
        nice=0,
        requeue=requeue,
        batch=True,
        deadline_ns=0,
        dependency=None,
        kill_on_invalid_dependency=None,
        time_limit_min_s=None,
    )


def submission(
    name: str,
    *,
    hold: bool = False,
    priority: int | None = None,
    tasks: TaskSet | None = None,
    requeue: bool = True,
    script_bytes: int = 0,
) -> SubmitJob:
    """Return a batch job's submission; its script has a few bytes more than asked for."""
    script = f"#!/bin/sh\necho {name}\n".encode() + b"#" * script_bytes
    return SubmitJob(
        spec=_spec(name, requeue=requeue),
        tasks=tasks,
        throttle=0,
        hold=hold,
        priority=priority,
        attachments=(Attachment("script", script),),
    )


class People:
    """Submit, and cancel, hold, release or requeue what was accepted."""

    def __init__(self, world: World, callers: Callers, checks: Checks, haste: float) -> None:
        self.acknowledged: dict[str, tuple[bytes, JobId]] = {}
        """Request id and job id by name of every submission that was answered."""
        self.is_stopped = False
        self._world = world
        self._callers = callers
        self._checks = checks
        self._haste = haste
        self._count = 0

    def start(self, count: int) -> None:
        """Let this many people begin."""
        for _ in range(count):
            caller = self._callers.caller(user(UID))
            self._world.after(self._world.rng.random() * self._haste, self._submit, caller)

    def _submit(self, caller: Caller) -> None:
        if self.is_stopped:
            return
        world = self._world
        self._count += 1
        name = f"job-{self._count}"
        is_array = world.rng.random() < 0.2
        request = submission(
            name,
            tasks=TaskSet(((0, world.rng.randrange(1, 4), 1),)) if is_array else None,
            requeue=world.rng.random() < 0.7,
            script_bytes=world.rng.choice((0, 1000, 4000)),
        )
        request_ids: list[bytes] = []

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, JobAccepted):
                world.counts["answered"] += 1
                self.acknowledged[name] = (request_ids[0], outcome.job_id)
                if not is_array and world.rng.random() < 0.5:
                    self._step_on(caller, outcome.job_id, STEP_TRIES)
                if world.rng.random() < 0.5:
                    delay_s = world.rng.random() * world.rng.choice((0.1, 3.0))
                    world.after(delay_s, self._change, outcome.job_id)
            elif isinstance(outcome, Refused) and outcome.code != "outcome-unknown":
                raise Violation(f"{name} was refused: {outcome}")
            world.after(world.rng.random() * 1.5 * self._haste, self._submit, caller)

        world.counts["asked"] += 1
        request_ids.append(caller.ask(request, done, patience_s=PATIENCE_S))

    def _step_on(self, caller: Caller, job_id: JobId, tries: int) -> None:
        """Start steps in a job of one's own, as its script would, until it has ended."""
        rng = self._world.rng

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Refused):
                self._checks.refused(job_id, outcome, STEP_CODES)
                if outcome.code == "job-ended":
                    return
            elif isinstance(outcome, StepAccepted):
                self._world.counts["step accepted"] += 1
                if rng.random() < 0.2:
                    cancel = CancelStep(job_id, outcome.step_id, rng.random() < 0.5)
                    heard = partial(cancelled, outcome.step_id)
                    caller.ask(cancel, heard, patience_s=PATIENCE_S)
            if tries > 1 and not self.is_stopped:
                self._world.after(rng.random() * 1.5, self._step_on, caller, job_id, tries - 1)

        def cancelled(step_id: int, outcome: Outcome) -> None:
            if isinstance(outcome, Refused):
                self._checks.step_refused(job_id, step_id, outcome, STEP_CODES)

        ask = replace(STEP, tasks=rng.choice((0, 1, 2, 3)), exact=rng.random() < 0.7)
        request = StartStep(job_id, "step", ask, 0, rng.randbytes(KEY_SIZE))
        caller.ask(request, done, patience_s=PATIENCE_S)

    def _change(self, job_id: JobId) -> None:
        """Ask something of a job that exists: nobody may say that it does not."""
        rng = self._world.rng
        requests: tuple[Request, ...] = (
            CancelJob(job_id, None),
            HoldJob(job_id, None, Hold.ADMIN),
            RequeueJob(job_id, None, False),
            RequeueJob(job_id, None, False),
        )
        request = rng.choice(requests)
        caller = self._callers.caller(ADMINISTRATOR)
        self._world.counts["asked"] += 1

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Refused):
                self._checks.refused(job_id, outcome, JUDGED_CODES)
            elif outcome is not None:
                self._world.counts["answered"] += 1
                if isinstance(request, HoldJob):
                    self._release(caller, job_id)

        caller.ask(request, done, patience_s=PATIENCE_S)

    def _release(self, caller: Caller, job_id: JobId) -> None:
        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Refused):
                self._checks.refused(job_id, outcome, JUDGED_CODES)

        def ask() -> None:
            caller.ask(ReleaseJob(job_id, None), done, patience_s=PATIENCE_S)

        self._world.after(self._world.rng.random(), ask)

    def judge(self) -> None:
        """Check that every answered submission is in the log, once. Raises: Violation."""
        for name, (request_id, job_id) in self.acknowledged.items():
            self._checks.acknowledged(request_id, name, job_id)
