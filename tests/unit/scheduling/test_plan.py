"""The order of starts, what a waiting job keeps, and sharing."""

from __future__ import annotations

from typing import Any

import pytest

from spur.scheduling import plan as plan_module
from spur.testing.floor import Floor
from spur.values.arrays import TaskSet
from spur.values.config import ConfigFile
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.jobspec import Sharing
from spur.values.tres import GresAsk, Per

ALL_OF_N5: dict[str, Any] = {"nodes_required": "n5", "tasks": 16, "nodes_max": 1}


def test_jobs_start_in_order_of_priority_then_submission() -> None:
    """Three jobs want one node; an operator ranked the last."""
    floor = Floor()
    first, second = floor.submit(**ALL_OF_N5), floor.submit(**ALL_OF_N5)
    third = floor.submit(priority=100, **ALL_OF_N5)
    floor.cycle()
    assert floor.given(third)
    floor.end(third)
    floor.cycle()
    assert (bool(floor.given(first)), floor.given(second)) == (True, "")


def test_partitions_of_a_higher_tier_come_first() -> None:
    """A job of a lower tier was there before."""
    floor = Floor()
    low = floor.submit(partitions="low", **ALL_OF_N5)
    high = floor.submit(partitions="debug", **ALL_OF_N5)
    floor.cycle()
    assert (floor.given(low), bool(floor.given(high))) == ("", True)


def test_a_job_starts_in_the_partition_that_has_room() -> None:
    """Two partitions are named, and the first one's node is held."""
    floor = Floor()
    gpus = (GresAsk("gpu", "a100", 4, Per.NODE),)
    floor.submit(partitions="gpu", gres=gpus)
    job_id = floor.submit(partitions="whole,gpu", tasks=2)
    floor.cycle()
    assert floor.given(job_id) == "n5[0-15] 8000M"


def test_a_short_job_starts_while_the_first_waits() -> None:
    """Half of n5 is held for ten minutes, and the first in the queue wants all of it.

    What is over by then may run there; what is not may run elsewhere alone.
    """
    floor = Floor()
    floor.submit(nodes_required="n5", tasks=8, limit_s=600)
    waiting = floor.submit(**ALL_OF_N5)
    long, short, elsewhere = (
        floor.submit(nodes_required=node, limit_s=limit_s)
        for node, limit_s in (("n5", 1200), ("n5", 300), ("n6", 1200))
    )
    floor.cycle()
    assert [bool(floor.given(job)) for job in (waiting, long, short, elsewhere)] == [
        False,
        False,
        True,
        True,
    ]


def test_the_first_waits_no_longer_than_the_limits_say() -> None:
    """Short jobs come one after the other; when the first one's time has come, it starts."""
    floor = Floor()
    running = floor.submit(nodes_required="n5", tasks=8, limit_s=600)
    waiting = floor.submit(**ALL_OF_N5)
    floor.cycle()
    small = []
    for _ in range(5):
        small.append(floor.submit(nodes_required="n5", limit_s=100))
        floor.cycle()
        assert floor.given(small[-1])
        floor.tick(100)
        floor.end(small[-1])
    late = floor.submit(nodes_required="n5", limit_s=120)
    floor.cycle()
    assert floor.given(late) == ""
    floor.tick(100)
    floor.end(running)
    floor.cycle()
    assert floor.given(waiting)


def test_all_tasks_of_an_array_start_in_one_plan() -> None:
    """Ten tasks fit, on several nodes."""
    floor = Floor()
    array = floor.submit(array=TaskSet(((0, 9, 1),)))
    floor.cycle()
    assert floor.state.allocations.running_tasks(array) == 10
    assert floor.plan().placements == ()


def test_an_array_that_fits_in_part_starts_in_part() -> None:
    """Each task wants four CPUs of the four small nodes; six tasks are asked."""
    floor = Floor()
    array = floor.submit(array=TaskSet(((0, 5, 1),)), tasks=4, nodes_max=1, features="small")
    floor.cycle()
    assert floor.state.allocations.running_tasks(array) == 4


def test_users_do_not_meet_on_a_node_of_one_user() -> None:
    """Partition "users" has nodes of one user at a time; others find room on the second node."""
    floor = Floor()
    ada, bob, ada_again, eve = (
        floor.submit(partitions="users", by=uid) for uid in (1001, 1002, 1001, 1003)
    )
    floor.cycle()
    assert [floor.given(job)[:2] for job in (ada, bob, ada_again, eve)] == ["n1", "n2", "n1", ""]
    stranger = floor.submit(by=1003, nodes_required="n1")
    floor.cycle()
    assert floor.given(stranger) == ""


def test_jobs_that_share_are_given_the_same_cpus() -> None:
    """OverSubscribe=YES:2, at most two CPUs a node: those that ask for it share, twice."""
    floor = Floor()
    jobs = [
        floor.submit(
            partitions="small",
            tasks=4,
            nodes_max=1,
            nodes_required="n1",
            sharing=Sharing.OVERSUBSCRIBE,
            overcommit=True,
            memory_mib=100,
        )
        for _ in range(9)
    ]
    floor.cycle()
    given = [floor.given(job) for job in jobs]
    assert given == [f"n1[{cpu}] 100M" for cpu in (0, 1, 2, 3, 0, 1, 2, 3)] + [""]


def test_a_range_of_nodes_takes_as_many_as_there_are() -> None:
    """--nodes=1-3 with six tasks, and two of the nodes are held."""
    floor = Floor()
    floor.submit(nodes_required="n[1-2]", tasks=8, nodes_min=2)
    job_id = floor.submit(nodes_min=1, nodes_max=3, tasks=6, features="small")
    floor.cycle()
    assert floor.given(job_id) == "n3[0-3] 2000M; n4[0-1] 1000M"


def test_few_nodes_are_taken_where_there_is_most_room() -> None:
    """One node is wanted for eight tasks: the first nodes are too small."""
    floor = Floor()
    job_id = floor.submit(nodes_min=1, nodes_max=1, tasks=8)
    two = floor.submit(nodes_min=2, nodes_max=2, tasks=20)
    floor.cycle()
    assert floor.given(job_id) == "n5[0-3,8-11] 4000M"
    assert floor.given(two).startswith("n5[4-7,12-15] 4000M; n6[")


def test_neighbours_are_found() -> None:
    """--contiguous: n2 is held, so the first two that follow each other are n3 and n4."""
    floor = Floor()
    floor.submit(nodes_required="n2", tasks=4)
    job_id = floor.submit(nodes_min=2, tasks=2, contiguous=True, memory_mib=500)
    floor.cycle()
    assert floor.given(job_id) == "n3[0] 500M; n4[0] 500M"


def test_counts_of_features_are_met() -> None:
    """One node of each kind; then all nodes of one kind."""
    floor = Floor()
    mixed = floor.submit(nodes_min=2, tasks=2, features="small*1&ib*1")
    alike = floor.submit(nodes_min=5, nodes_max=5, tasks=5, features="[small|ib]")
    pair = floor.submit(nodes_min=2, nodes_max=2, tasks=20, features="[small|ib]")
    floor.cycle()
    assert [share[:2] for share in floor.given(mixed).split("; ")] == ["n1", "n5"]
    assert floor.given(alike) == ""
    assert [share[:2] for share in floor.given(pair).split("; ")] == ["n5", "n6"]


def test_each_job_of_a_choice_finds_its_own_nodes() -> None:
    """[intel|amd]: the first task takes all of the intel node, the second goes to the other."""
    floor = Floor()
    array = floor.submit(
        partitions="gpu",
        array=TaskSet(((0, 1, 1),)),
        gres=(GresAsk("gpu", "", 4, Per.TASK),),
        features="[intel|amd]",
    )
    floor.cycle()
    assert floor.state.allocations.running_tasks(array) == 2


def test_a_job_that_waits_for_another_is_left_alone() -> None:
    """Its dependency is in the state and shown from there; once that is met it starts."""
    floor = Floor()
    first = floor.submit()
    condition = Condition(DependencyKind.AFTER_ANY, first, None, 0)
    second = floor.submit(dependency=Dependency(False, (condition,)))
    made = floor.cycle()
    assert ([each.job_id for each in made.placements], made.jobs) == ([first], ())
    floor.end(first)
    floor.tick(1)
    floor.cycle()
    assert floor.given(second)


def test_a_plan_of_many_starts_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three starts of one node or two nodes are as many as a plan may have; the rest comes next."""
    monkeypatch.setattr(plan_module, "STARTS_MAX", 3)
    monkeypatch.setattr(plan_module, "SHARES_MAX", 4)
    floor = Floor()
    floor.submit(array=TaskSet(((0, 3, 1),)))
    floor.submit(nodes_min=2, tasks=2)
    floor.submit(nodes_min=2, tasks=2)
    plans = [floor.cycle() for _ in range(4)]
    assert [(len(made.placements), made.is_cut) for made in plans] == [
        (3, True),
        (3, False),
        (0, False),
        (0, False),
    ]


def test_memory_is_not_counted_where_it_is_not_configured() -> None:
    """SelectTypeParameters=CR_Core: a job that names no memory gets none, and four fit a node."""
    text = "ClusterName=c\nSlurmctldHost=h\nSelectType=select/cons_tres\n"
    text += "SelectTypeParameters=CR_Core\nNodeName=n1 CPUs=4 RealMemory=1000\n"
    text += "PartitionName=debug Nodes=n1 Default=YES MaxTime=60\n"
    floor = Floor(ConfigFile("slurm.conf", text))
    jobs = [floor.submit() for _ in range(5)]
    floor.cycle()
    assert [floor.given(job) for job in jobs] == [f"n1[{cpu}] 0M" for cpu in range(4)] + [""]
