"""The story behind the golden ledger: some of everything that a cluster can meet."""

from __future__ import annotations

import random

from spur.events.envelope import Entry, EntryKind
from spur.testing.builders import CLUSTER, SMALL_CONFIG
from spur.testing.hall import Hall
from spur.testing.lifecycles import Lifecycles
from spur.testing.requests import random_request
from spur.values.config import ConfigFile, PartitionState
from spur.values.ids import PartitionName
from spur.values.states import Hold
from spur.wire.cluster import (
    AcceptClock,
    AddHost,
    Checkpoint,
    Reconfigure,
    RecordRestore,
    RemoveHost,
)
from spur.wire.jobs import HoldJob, JobChanges, ReleaseJob, SignalJob, UpdateJob
from spur.wire.partitions import UpdatePartition

__all__ = ["golden_story"]

_SEED = 20_260_901
_STEPS = 350


def golden_story(*, checked: bool = True) -> list[Entry]:
    """Return the entries of the story, under both policies of requeueing."""
    chance = random.Random(_SEED)
    text = SMALL_CONFIG.replace('name = "hall"', 'name = "hall"\nmin_job_age_s = 60')
    hall = Hall(text, checked=checked)
    cluster, lives = hall.cluster, Lifecycles(hall, seed=_SEED)
    _tell_one_life(hall)
    lives.run(_STEPS)
    confirmed = 'name = "hall"\nmin_job_age_s = 30\nrequeue_policy = "confirmed"'
    text = SMALL_CONFIG.replace('name = "hall"', confirmed)
    cluster.ask(Reconfigure((ConfigFile("spur.toml", text),)))
    cluster.append(EntryKind.NOOP, b"", term=4)
    lives.run(_STEPS)
    for request in (
        AddHost("login1", "login"),
        RemoveHost("login1"),
        UpdatePartition(PartitionName("gpu"), PartitionState.DRAIN),
        AcceptClock(),
    ):
        cluster.ask(request)
    cluster.ask(RecordRestore(2, "the third of the disks was lost"), CLUSTER)
    cluster.append(EntryKind.MEMBERSHIP, b"members after the restore", term=5)
    for _ in range(60):
        cluster.ask(*random_request(chance, cluster.state))
    lives.run(_STEPS)
    cluster.ask(Checkpoint(), CLUSTER)
    return cluster.entries


def _tell_one_life(hall: Hall) -> None:
    """Let one job meet what random lives seldom do."""
    job_id = hall.submit()
    for request in (
        HoldJob(job_id, None, Hold.USER),
        ReleaseJob(job_id, None),
        UpdateJob(job_id, None, JobChanges(priority=5)),
    ):
        hall.cluster.ask(request)
    hall.start(job_id)
    hall.cluster.ask(SignalJob(job_id, None, 10, False))
    hall.end(job_id)
