"""The temper of a run, drawn from its seed: how much trouble, and how small the limits are.

Every kind of trouble is absent from some runs and every limit is small in some, since faults hide
where one trouble keeps another from happening. Half of the runs use tiny batches: splitting what
usually travels together finds most of the rare faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from spur.consensus import replica
from spur.consensus.boxes import CoreSettings
from spur.consensus.opening import ReplicaOptions
from spur.consensus.replica import ReplicaSettings
from spur.controller import front
from spur.projections import requests
from spur.testing.replaced import replaced
from spur.testing.simulation.network import Weather
from spur.values import members
from spur.values.limits import REMEMBERED_REQUESTS_MAX

__all__ = ["STRIKES", "Plan", "calm_plan", "draw_plan", "options_of", "small_limits"]


LEVEL_ENTRIES = 5
"""What a learner may lack when it is promoted: logs are short here."""

DAMAGE_TICKS = 10
"""Ticks between two looks for segments to be fetched: they are small here, and many."""


@dataclass(kw_only=True)
class Plan:
    """What one run is like."""

    members: int
    is_calm_at_first: bool
    """Trouble begins once the cluster is set up and everybody at work."""
    pace_s: float
    """Time between two strikes, on average."""
    buggify: float
    """Chance of a power loss right after a message that matters."""
    tiny_batches: bool
    election_ticks: int
    """Few make elections often and candidates many."""
    disk_delay_s: float
    weather: Weather
    strikes: list[str] = field(default_factory=list)
    drift: float
    """Clocks run fast or slow by at most this share."""
    slow_ticks: float
    """One member ticks so many times slower than the others: it is the last to notice anything."""
    caller_loss: float
    """Share of the calls, and of their answers, that are lost; as many come twice."""
    has_damage: bool
    """Bits of one member's files flip while it is down."""
    haste: float
    """Clients think for this share of the usual time."""
    writes: float
    """Share of the writes among what clients do with registers."""
    snapshot_entries: int
    """Entries after which a member writes another snapshot."""
    snapshot_lag: int
    """A member that lacks more entries is sent a snapshot."""
    memory_entries: int
    segment_entries: int
    """Entries of a ledger segment."""
    sync_ledger_every: int
    checkpoint_entries: int
    requests_max: int
    """Request ids that are remembered."""
    request_memory_s: int
    job_age_s: int
    """Ended jobs leave the state after this long."""
    requeue_policy: str
    has_changes: bool
    """Controllers are added, removed and replaced."""


STRIKES = (
    "power", "power", "kill", "pause", "storm", "halves", "one-way", "pair", "apart", "heal",
    "leader-apart", "leader-power", "leader-pause", "leader-pause", "operation", "operation",
    "clock", "slow-disk", "full-disk", "failing-sync", "silent-node", "silent-node",
)  # fmt: skip
"""What may strike; a name that stands twice strikes twice as often."""


def draw_plan(rng: Random, *, has_changes: bool) -> Plan:
    """Draw what a run will be like."""
    small_memory = rng.random() < 0.3
    plan = Plan(
        members=rng.choice((1, 3, 3, 3, 3, 3, 5, 5)),
        is_calm_at_first=rng.random() < 0.85,
        pace_s=rng.choice((0.5, 1.0, 3.0, 8.0)),
        buggify=rng.choice((0.0, 0.01, 0.05, 0.3)),
        tiny_batches=rng.random() < 0.5,
        election_ticks=rng.choice((10, 10, 4)),
        disk_delay_s=rng.choice((0.002, 0.02, 0.2)),
        weather=Weather(
            loss=rng.choice((0.0, 0.01, 0.1)),
            repeats=rng.choice((0.0, 0.05, 0.2)),
            delay_s=rng.choice((0.005, 0.05, 0.3)),
            late_votes=rng.choice((0.0, 0.0, 0.4)),
        ),
        drift=rng.choice((0.0, 0.0, 0.001)),
        slow_ticks=rng.choice((1.0, 1.0, 3.0)),
        caller_loss=rng.choice((0.0, 0.02, 0.1)),
        has_damage=rng.random() < 0.4,
        haste=rng.choice((1.0, 0.5, 0.25)),
        writes=rng.choice((0.5, 0.5, 0.1)),
        snapshot_entries=rng.choice((10, 30, 60)),
        snapshot_lag=rng.choice((10, 10, 200_000)),
        memory_entries=rng.choice((8, 40)),
        segment_entries=rng.choice((16, 64)),
        sync_ledger_every=rng.choice((4, 16, 64)),
        checkpoint_entries=rng.choice((25, 1000)),
        requests_max=8 if small_memory else REMEMBERED_REQUESTS_MAX,
        request_memory_s=4 if small_memory else 900,
        job_age_s=rng.choice((2, 86_400)),
        requeue_policy=rng.choice(("slurm", "confirmed")),
        has_changes=has_changes,
    )
    if has_changes:
        # Who is removed may have the last whole copy of what was damaged elsewhere.
        plan.has_damage = False
    kinds = sorted(set(STRIKES))
    absent = set(rng.sample(kinds, rng.randrange(len(kinds) * 2 // 3)))
    plan.strikes = [strike for strike in STRIKES if strike not in absent]
    return plan


def calm_plan(members: int) -> Plan:
    """Return a run without any trouble, for scripts that bring their own."""
    return Plan(
        members=members,
        is_calm_at_first=True,
        pace_s=1.0,
        buggify=0.0,
        tiny_batches=False,
        election_ticks=10,
        disk_delay_s=0.002,
        weather=Weather(),
        drift=0.0,
        slow_ticks=1.0,
        caller_loss=0.0,
        has_damage=False,
        haste=1.0,
        writes=0.5,
        snapshot_entries=1000,
        snapshot_lag=200_000,
        memory_entries=1000,
        segment_entries=64,
        sync_ledger_every=64,
        checkpoint_entries=1000,
        requests_max=REMEMBERED_REQUESTS_MAX,
        request_memory_s=900,
        job_age_s=86_400,
        requeue_policy="slurm",
        has_changes=False,
    )


def options_of(plan: Plan) -> ReplicaOptions:
    """Return small segments and short memories, so that each run meets their ends."""
    core = CoreSettings(election_ticks=plan.election_ticks)
    if plan.tiny_batches:
        core = replace(core, append_bytes_max=1, inflight_count_max=2)
    return ReplicaOptions(
        core=core,
        replica=ReplicaSettings(
            commit_slice=20,
            memory_entries=plan.memory_entries,
            memory_bytes=1 << 16,
            sync_ledger_every=plan.sync_ledger_every,
            snapshot_lag=plan.snapshot_lag,
        ),
        wal_segment_bytes=16 << 10,
    )


@contextmanager
def small_limits(plan: Plan) -> Iterator[None]:
    """Let the limits of the product that no setting reaches be those of the plan."""
    with ExitStack() as stack:
        stack.enter_context(
            replaced(
                requests,
                REMEMBERED_REQUESTS_MAX=plan.requests_max,
                REQUEST_MEMORY_NS=plan.request_memory_s * 1_000_000_000,
            )
        )
        stack.enter_context(replaced(members, LEVEL_ENTRIES=LEVEL_ENTRIES))
        stack.enter_context(replaced(front, CHECKPOINT_ENTRIES=plan.checkpoint_entries))
        stack.enter_context(replaced(replica, DAMAGE_TICKS=DAMAGE_TICKS))
        yield
