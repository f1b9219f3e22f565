"""Priorities of factors, beside those that Slurm 22.05 gave to the same jobs on the same nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spur.projections.jobviews import job_view
from spur.projections.priority import weights_of
from spur.testing.accounts import (
    add_account,
    add_association,
    add_qos,
    add_user,
    change,
    number,
    words,
)
from spur.testing.floor import Floor
from spur.values.accounts import Subject
from spur.values.config import ConfigFile
from spur.values.ids import JobId
from spur.values.tres import GresAsk, Per
from spur.wire.accounts import EditEntities
from spur.wire.declare import Done

SITE = Path(__file__).parents[2] / "data" / "conformance" / "cluster"
"""The configuration of the recordings."""

U1, U3 = 2001, 2003

QOS = words("QOS", "capped", "high", "normal")


def site() -> Floor:
    """Return the recorded cluster with two users, who have used nothing yet."""
    names = ("slurm.conf", "gres.conf", "topology.conf")
    floor = Floor(tuple(ConfigFile(name, (SITE / name).read_text("utf-8")) for name in names))
    edits = (
        change(Subject.QOS, ("normal",), number("Priority", 100)),
        add_qos("high", number("Priority", 1000)),
        add_qos("capped", number("Priority", 50)),
        *add_account("physics"),
        add_user("u1", uid=U1),
        add_user("u3", uid=U3),
        *(add_association("physics", user, settings=(QOS,)) for user in ("u1", "u3")),
    )
    assert floor.cluster.ask(EditEntities(edits)) == Done()
    return floor


def priority(floor: Floor, job_id: JobId) -> int:
    """Return a job's priority at its submission."""
    return int(job_view(floor.state, job_id).points)


MI300X_8 = (GresAsk("gpu", "mi300x", 8, Per.NODE),)


@pytest.mark.parametrize(
    ("shown", "asked"),
    [
        (12324, {}),
        (12187, {"qos": "capped", "tasks": 4, "memory_mib": 400}),
        (12259, {"partitions": "gpu", "gres": MI300X_8}),
        (11759, {"partitions": "gpu", "gres": MI300X_8, "nice": 500}),
        (11324, {"partitions": "long"}),
        (10588, {"partitions": "small", "nodes_min": 3, "tasks": 3, "memory_mib": 1500}),
        (10525, {"partitions": "excl", "hold": True}),
        (10537, {"partitions": "closed"}),
        (10552, {"partitions": "broken"}),
        (
            14085,
            {"partitions": "long", "qos": "high", "tasks": 12, "memory_mib": 20480, "nice": 10},
        ),
    ],
)
def test_a_job_has_the_priority_that_slurm_gave_it(shown: int, asked: dict[str, Any]) -> None:
    """The jobs of the recorded queue. Source: squeue -o %Q in the recordings."""
    floor = site()
    ask: dict[str, Any] = {
        "account": "physics",
        "qos": "normal",
        "by": U1,
        "memory_mib": 500,
        **asked,
    }
    if ask["memory_mib"] > 500:  # in all of the job, as recorded with a default a CPU
        ask["memory_mib"] //= ask.get("nodes_min", 1)
    assert priority(floor, floor.submit(**ask)) == shown


def test_without_the_plugin_only_nice_counts() -> None:
    """A site that never heard of factors."""
    floor = Floor()
    assert [priority(floor, floor.submit(nice=nice)) for nice in (0, 500)] == [1, -499]


def test_the_higher_priority_starts_first() -> None:
    """A node for one of two jobs: the QOS of the later one counts more than its lateness."""
    floor = site()
    want: dict[str, Any] = {
        "account": "physics",
        "by": U1,
        "nodes_required": "n5",
        "tasks": 16,
        "nodes_max": 1,
    }
    first, second = (floor.submit(qos=qos, **want) for qos in ("normal", "high"))
    floor.cycle()
    assert (floor.given(first), bool(floor.given(second))) == ("", True)


def test_age_brings_a_job_forward() -> None:
    """A job of a low QOS has waited for a week when one of a higher QOS comes.

    Age is worth 1 000 and the QOS 150, so the older one starts. Of two that came at once the
    higher QOS would.
    """
    floor = site()
    want: dict[str, Any] = {
        "account": "physics",
        "by": U1,
        "nodes_required": "n5",
        "tasks": 16,
        "nodes_max": 1,
    }
    blocker = floor.submit(qos="normal", limit_s=1800, **want)
    floor.cycle()
    old = floor.submit(qos="capped", **want)
    floor.cluster.pass_seconds(weights_of(floor.state).max_age_s)
    new = floor.submit(qos="normal", **want)
    floor.end(blocker)
    floor.cycle()
    assert (bool(floor.given(old)), floor.given(new)) == (True, "")


def test_changed_weights_change_the_order() -> None:
    """An administrator takes the priority of a QOS away while its jobs wait."""
    floor = site()
    want: dict[str, Any] = {
        "account": "physics",
        "by": U1,
        "nodes_required": "n5",
        "tasks": 16,
        "nodes_max": 1,
    }
    blocker = floor.submit(qos="normal", **want)
    floor.cycle()
    first, second = (floor.submit(qos=qos, **want) for qos in ("normal", "high"))
    floor.plan()
    edit = change(Subject.QOS, ("high",), number("Priority", 1))
    assert floor.cluster.ask(EditEntities((edit,))) == Done()
    floor.end(blocker)
    floor.cycle()
    assert (bool(floor.given(first)), floor.given(second)) == (True, "")
