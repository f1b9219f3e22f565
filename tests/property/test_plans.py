"""Plans of drawn queues on drawn clusters: never oversold, accepted whole, and always the same."""

from __future__ import annotations

import random
from typing import TypeVar

import pytest

from spur.scheduling.plan import plan
from spur.scheduling.queue import Queue
from spur.testing.builders import ADMIN, replay
from spur.testing.floor import Floor
from spur.values.arrays import TaskSet
from spur.values.ids import JobId
from spur.values.jobspec import Sharing
from spur.values.states import NodeAction
from spur.values.tres import GresAsk, Per
from spur.wire.jobs import CancelJob
from spur.wire.nodes import UpdateNodes

SHARINGS = [Sharing.PARTITION] * 6 + [Sharing.EXCLUSIVE, Sharing.USER, Sharing.OVERSUBSCRIBE]
PARTITIONS = ("debug", "gpu", "low", "small", "whole", "users", "debug,low", "closed,gpu")
FEATURES = ("intel", "amd|small", "[intel|amd]", "intel*1&amd*1", "ib&(amd|small)")


T = TypeVar("T")


def mostly(rng: random.Random, usual: T, *others: T) -> T:
    """Return the usual, and now and then another."""
    return usual if rng.random() < 0.85 else rng.choice(others)


def submit(floor: Floor, rng: random.Random) -> JobId:
    """Submit a job of any shape that admission takes."""
    gres: tuple[GresAsk, ...] = ()
    partitions = rng.choice(PARTITIONS)
    if rng.random() < (0.7 if "gpu" in partitions else 0.1):
        per = rng.choice((Per.JOB, Per.NODE, Per.TASK, Per.SOCKET))
        gres = (GresAsk("gpu", rng.choice(("", "", "a100", "mi300x")), rng.randrange(1, 5), per),)
    nodes_min = mostly(rng, 1, 2, 3)
    required = mostly(rng, "", "n5", "n[1-2]", "g1")
    # A node that is required and excluded is refused at submission.
    apart = {"n5": ("n1",), "n[1-2]": ("",)}.get(required, ("n1", "n[2-6]"))
    return floor.submit(
        partitions=partitions,
        by=1000 + rng.randrange(4),
        array=mostly(rng, None, TaskSet(((0, rng.randrange(6), 1),))),
        limit_s=rng.choice((60, 600, 1200)),
        begin_s=mostly(rng, 0, 30),
        hold=rng.random() < 0.05,
        nodes_min=nodes_min,
        nodes_max=rng.choice((0, 0, nodes_min, nodes_min + 1)),
        tasks=rng.choice((1, 1, 2, 5, 12)),
        tasks_per_node=mostly(rng, 0, 2),
        cpus_per_task=mostly(rng, 1, 2, 3),
        memory_mib=mostly(rng, 0, 100, 3000, -1),
        memory_per=mostly(rng, Per.NODE, Per.CPU, Per.GPU),
        gres=gres,
        features=mostly(rng, "", *FEATURES),
        nodes_required=required,
        nodes_excluded=mostly(rng, "", *apart),
        sharing=rng.choice(SHARINGS),
        threads_per_core=mostly(rng, 0, 1, 2),
        tasks_per_core=mostly(rng, 0, 1),
        cpus_per_gpu=mostly(rng, 0, 3),
        cpus_per_node_min=mostly(rng, 0, 6),
        contiguous=mostly(rng, False, True),
        overcommit=mostly(rng, False, True),
    )


def step(floor: Floor, rng: random.Random, jobs: list[JobId]) -> None:
    """Let something happen between two cycles."""
    draw = rng.random()
    if draw < 0.6 or not jobs:
        jobs.append(submit(floor, rng))
    elif draw < 0.85:
        for job_id in floor.state.allocations.jobs():
            if rng.random() < 0.5:
                floor.end(job_id)
    elif draw < 0.9:
        floor.cluster.ask(CancelJob(rng.choice(jobs), None), ADMIN)
    else:
        action = rng.choice((NodeAction.DRAIN, NodeAction.RESUME, NodeAction.RESUME))
        nodes = rng.choice(("n1", "n[2-5]", "g1"))
        floor.cluster.ask(UpdateNodes(nodes, action, "looked at"), ADMIN)


@pytest.mark.parametrize("seed", range(12))
def test_a_plan_is_accepted_whole_and_sells_nothing_twice(seed: int) -> None:
    """Jobs of all shapes come and go. The invariants are checked after each entry."""
    floor, rng, jobs = Floor(), random.Random(seed), list[JobId]()
    started = 0
    for _ in range(25):
        for _ in range(rng.randrange(1, 6)):
            step(floor, rng, jobs)
        started += len(floor.cycle().placements)
        floor.tick(rng.choice((1, 20, 300)))
    assert started > 15


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_is_a_function_of_state_and_time(seed: int) -> None:
    """The watching queue, a new one and that of a replayed state make the same plan."""
    floor, rng, jobs = Floor(checked=False), random.Random(seed), list[JobId]()
    for _ in range(12):
        for _ in range(4):
            step(floor, rng, jobs)
        now_ns = floor.cluster.now_ns
        made = floor.plan()
        assert plan(floor.state, now_ns) == made
        assert plan(replay(floor.cluster.entries), now_ns) == made
        floor.cycle()
        floor.tick(20)


def test_the_queue_is_filed_alike_whatever_happened() -> None:
    """A queue that watched a long story equals one that is made at its end."""
    floor, rng, jobs = Floor(checked=False), random.Random(5), list[JobId]()
    for _ in range(20):
        for _ in range(6):
            step(floor, rng, jobs)
        floor.cycle()
        floor.tick(20)
    floor.queue.refresh()
    fresh = Queue(floor.state)
    fresh.refresh()
    assert {group: list(keys) for group, keys in floor.queue.groups.items()} == {
        group: list(keys) for group, keys in fresh.groups.items()
    }
    assert (floor.queue.later, floor.queue.stated, floor.queue.by_user) == (
        fresh.later,
        fresh.stated,
        fresh.by_user,
    )
