"""Orders as a leader gives them to agents, for tests of what an agent does."""

from __future__ import annotations

from typing import Any

from spur.testing.attempts import launch_order
from spur.values.ids import JobId, NodeName
from spur.values.states import JobState
from spur.values.steps import Dealing, StepState
from spur.values.tres import NodeShare, cpu_set
from spur.wire.agents import (
    KillOrder,
    KillStepOrder,
    LaunchOrder,
    LaunchStepOrder,
    Numbered,
    Order,
    Orders,
)

__all__ = ["kill_order", "kill_step_order", "order_for", "orders", "step_order"]


def order_for(
    node: str, job_id: int, *, run: int = 0, attempt: int = 1, **changes: Any
) -> LaunchOrder:
    """Return an order to run a script on a node."""
    return launch_order(
        node=NodeName(node),
        job_id=JobId(job_id),
        run=run,
        attempt=attempt,
        shares=(_share(node),),
        partition_nodes=node,
        kill_wait_s=1,
        **changes,
    )


def step_order(
    node: str,
    job_id: int,
    step_id: int,
    *,
    run: int = 0,
    attempt: int = 1,
    uid: int = 0,
    key_digest: bytes = bytes(32),
) -> LaunchStepOrder:
    """Return an order to launch a step of one task."""
    return LaunchStepOrder(
        node=NodeName(node),
        job_id=JobId(job_id),
        run=run,
        attempt=attempt,
        step_id=step_id,
        name="step",
        uid=uid,
        gid=uid,
        shares=(_share(node),),
        tasks=(1,),
        dealing=Dealing.BLOCK,
        plane=0,
        cpus_per_task=1,
        key_digest=key_digest,
        limit_ns=0,
        cluster_name="hall",
        kill_wait_s=1,
    )


def kill_order(
    node: str, job_id: int, *, run: int = 0, attempt: int = 1, state: str = "CANCELLED"
) -> KillOrder:
    """Return an order to end, or never to begin, an attempt."""
    return KillOrder(NodeName(node), JobId(job_id), run, attempt, JobState(state), 1)


def kill_step_order(node: str, job_id: int, step_id: int) -> KillStepOrder:
    """Return an order to end, or never to begin, a step of a job's first attempt."""
    return KillStepOrder(NodeName(node), JobId(job_id), 0, 1, step_id, StepState.CANCELLED, 1)


def orders(*told: Order, term: int = 1, incarnation: int = 1, first: int = 1) -> Orders:
    """Return an answer with these orders, numbered from the first."""
    numbered = tuple(Numbered(first + place, 10, each) for place, each in enumerate(told))
    return Orders(incarnation, term, numbered, ())


def _share(node: str) -> NodeShare:
    return NodeShare(NodeName(node), 1, 100, 0, cpu_set(1), is_shared=False)
