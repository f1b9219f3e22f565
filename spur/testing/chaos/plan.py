"""What is drawn from a seed: who strikes when and how long, and which jobs come when.

A plan names roles ("whoever leads"), not processes: the same seed gives the same plan, though not
the same run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from spur.values.config import RequeuePolicy

__all__ = ["AGENTS", "LEADER", "Kind", "Plan", "PlannedJob", "Strike", "Task", "draw"]

AGENTS = 3
"""Agents: two with one node each, and one with four."""

LEADER = 0
"""As the target of a strike: the controller that leads at that moment."""

SIEGE_S = 6.0
"""How long an agent is out of reach at least once: twice SlurmdTimeout."""

CALM_S = 1.2
"""The longest pause between the beginnings of two strikes."""


class Kind(StrEnum):
    """What strikes."""

    KILL_FRONT = "kill front"
    KILL_SCHEDULER = "kill scheduler"
    KILL_PROJECTOR = "kill projector"
    KILL_PARENT = "kill parent"
    KILL_CONTROLLER = "kill controller"
    RESTART_CONTROLLER = "restart controller"
    FREEZE_CONTROLLER = "freeze controller"
    CUT_CONTROLLER = "cut controller"
    DEAFEN_CONTROLLER = "deafen controller"
    MUTE_CONTROLLER = "mute controller"
    FILL_DISK = "fill disk"
    STEP_CLOCK = "step clock"
    KILL_AGENT = "kill agent"
    RESTART_AGENT = "restart agent"
    FREEZE_AGENT = "freeze agent"
    KILL_WARM = "kill warm process"
    KILL_SUPERVISOR = "kill supervisor"
    CUT_AGENT = "cut agent"
    DEAFEN_AGENT = "deafen agent"
    MUTE_AGENT = "mute agent"
    CUT_BETWEEN_AGENTS = "cut between agents"
    FILL_AGENT_DISK = "fill agent's disk"
    KILL_LOGIN = "kill login agent"
    CUT_LOGIN = "cut login agent"


_WEIGHTS = {
    Kind.KILL_FRONT: 4,
    Kind.KILL_SCHEDULER: 1,
    Kind.KILL_PROJECTOR: 1,
    Kind.KILL_PARENT: 1,
    Kind.KILL_CONTROLLER: 2,
    Kind.RESTART_CONTROLLER: 2,
    Kind.FREEZE_CONTROLLER: 4,
    Kind.CUT_CONTROLLER: 3,
    Kind.DEAFEN_CONTROLLER: 2,
    Kind.MUTE_CONTROLLER: 2,
    Kind.FILL_DISK: 1,
    Kind.STEP_CLOCK: 2,
    Kind.KILL_AGENT: 3,
    Kind.RESTART_AGENT: 1,
    Kind.FREEZE_AGENT: 2,
    Kind.KILL_WARM: 1,
    Kind.KILL_SUPERVISOR: 1,
    Kind.CUT_AGENT: 3,
    Kind.DEAFEN_AGENT: 2,
    Kind.MUTE_AGENT: 2,
    Kind.CUT_BETWEEN_AGENTS: 2,
    Kind.FILL_AGENT_DISK: 1,
    Kind.KILL_LOGIN: 1,
    Kind.CUT_LOGIN: 1,
}

_OF_CONTROLLERS = frozenset(list(Kind)[: list(Kind).index(Kind.FILL_DISK)]) | {Kind.STEP_CLOCK}
_OF_AGENTS = (
    frozenset(kind for kind in Kind if "agent" in kind and "login" not in kind)
    | {Kind.KILL_WARM, Kind.KILL_SUPERVISOR}
) - {Kind.FILL_AGENT_DISK}

_FAR = frozenset((Kind.CUT_AGENT, Kind.MUTE_AGENT, Kind.DEAFEN_AGENT, Kind.FREEZE_AGENT))
"""These keep an agent from the controllers."""

_LONG = _FAR | {Kind.CUT_BETWEEN_AGENTS, Kind.FILL_AGENT_DISK}
"""These may last longer than SlurmdTimeout."""

_AGENT_WEIGHTS = {kind: weight for kind, weight in _WEIGHTS.items() if kind in _OF_AGENTS}


@dataclass(frozen=True)
class Strike:
    """One thing that goes wrong for a while."""

    at_s: float
    kind: Kind
    target: int
    """Number of a controller or agent from 1; `LEADER`."""
    lasts_s: float
    amount_ms: int = 0
    """How far a clock is stepped."""

    def __str__(self) -> str:
        who = "the leader" if self.target == LEADER else str(self.target)
        amount = f" by {self.amount_ms} ms" if self.amount_ms else ""
        return f"{self.at_s:7.2f} s  {self.kind} {who}{amount} for {self.lasts_s:.2f} s"


class Task(StrEnum):
    """What kind of job somebody submits."""

    PLAIN = "plain"
    FAILING = "failing"
    ARRAY = "array"
    DEPENDENT = "dependent"
    CANCELLED = "cancelled"
    HELD = "held"
    STEPS = "steps"
    WIDE = "wide"


_TASK_WEIGHTS = {
    Task.PLAIN: 6,
    Task.FAILING: 1,
    Task.ARRAY: 2,
    Task.DEPENDENT: 2,
    Task.CANCELLED: 2,
    Task.HELD: 2,
    Task.STEPS: 2,
    Task.WIDE: 1,
}


@dataclass(frozen=True)
class PlannedJob:
    """One submission."""

    at_s: float
    task: Task
    name: str
    runs_s: float
    """How long its script takes."""
    members: int
    """Tasks of an array; 1 for any other."""
    requeue: bool
    after: str
    """Name of the job that it waits for; empty for none."""
    then_s: float
    """So long after its submission it is cancelled or released, if it is of that kind."""

    def __str__(self) -> str:
        extra = f" of {self.members}" if self.task is Task.ARRAY else ""
        extra += f" after {self.after}" if self.after else ""
        extra += "" if self.requeue else ", not to be requeued"
        return f"{self.at_s:7.2f} s  {self.name}: {self.task}{extra}, {self.runs_s:.2f} s"


@dataclass(frozen=True)
class Plan:
    """All that is drawn."""

    seed: int
    seconds: float
    controllers: int
    policy: RequeuePolicy
    skews_ms: tuple[int, ...]
    """How far each controller's clock is off all the while."""
    small_disk: int
    """Number of the controller whose directory is a small file system."""
    small_agent: int
    """Number of the agent of which the same is true."""
    strikes: tuple[Strike, ...]
    jobs: tuple[PlannedJob, ...]

    def lines(self) -> Iterator[str]:
        """Yield the plan as a person reads it."""
        yield (
            f"seed {self.seed}: {self.controllers} controllers, requeue policy {self.policy},"
            f" clocks off by {', '.join(map(str, self.skews_ms))} ms, controller"
            f" {self.small_disk} and agent {self.small_agent} on small disks,"
            f" {self.seconds:.0f} s"
        )
        yield from map(str, self.strikes)
        yield from map(str, self.jobs)


def draw(seed: int, *, jobs: int, seconds: float, controllers: int = 3) -> Plan:
    """Draw a plan: so many jobs, tasks of arrays counted, while strikes go on for so long."""
    rng = random.Random(f"chaos {seed}")
    return Plan(
        seed=seed,
        seconds=seconds,
        controllers=controllers,
        policy=rng.choice(list(RequeuePolicy)),
        skews_ms=tuple(rng.randint(-900, 900) for _ in range(controllers)),
        small_disk=rng.randint(1, controllers),
        small_agent=rng.randint(1, AGENTS),
        strikes=tuple(_strikes(rng, seconds, controllers)),
        jobs=tuple(_jobs(rng, jobs, seconds)),
    )


def _strikes(rng: random.Random, seconds: float, controllers: int) -> Iterator[Strike]:
    """Yield strikes by their time.

    In the middle controllers have peace: a new leader gives each node the whole time-out, so no
    node would ever be lost while they are killed. One agent is out of reach then.
    """
    at_s = rng.random()
    siege_s = seconds / 2
    while at_s < siege_s:
        yield _strike(rng, at_s, _WEIGHTS, controllers)
        at_s += 0.1 + rng.random() * CALM_S
    end_s = at_s + SIEGE_S + 1
    kind = rng.choice(sorted(_FAR))
    yield Strike(round(at_s, 3), kind, rng.randint(1, AGENTS), SIEGE_S)
    while at_s < end_s:
        at_s += 0.5 + rng.random() * CALM_S
        yield _strike(rng, at_s, _AGENT_WEIGHTS, controllers)
    while at_s < seconds:
        yield _strike(rng, at_s, _WEIGHTS, controllers)
        at_s += 0.1 + rng.random() * CALM_S


def _strike(
    rng: random.Random, at_s: float, weights: Mapping[Kind, int], controllers: int
) -> Strike:
    kind = rng.choices(list(weights), list(weights.values()))[0]
    lasts_s = rng.choice((0.3, 0.8, 1.5, 3.0)) * (0.4 + 0.6 * rng.random())
    if kind in _LONG and rng.random() < 0.4:
        lasts_s += SIEGE_S
    if kind in _OF_CONTROLLERS:
        target = LEADER if rng.random() < 0.4 else rng.randint(1, controllers)
    else:
        target = rng.randint(1, AGENTS) if kind in _OF_AGENTS else 1
    amount_ms = 0
    if kind is Kind.STEP_CLOCK:
        amount_ms = rng.choice((-1, 1)) * rng.choice((1_500, 5_000, 60_000, 3_600_000))
    return Strike(round(at_s, 3), kind, target, round(lasts_s, 3), amount_ms)


def _jobs(rng: random.Random, count: int, seconds: float) -> Iterator[PlannedJob]:
    kinds, weights = list(_TASK_WEIGHTS), list(_TASK_WEIGHTS.values())
    made = 0
    names: list[str] = []
    while made < count:
        task = rng.choices(kinds, weights)[0]
        if task is Task.DEPENDENT and not names:
            task = Task.PLAIN
        members = min(rng.randint(2, 5), count - made) if task is Task.ARRAY else 1
        name = f"job-{len(names) + 1}"
        yield PlannedJob(
            at_s=round(0.9 * seconds * made / count, 3),
            task=task,
            name=name,
            runs_s=round(rng.choice((0.1, 0.5, 1.0, 3.0, 6.0)) * (0.5 + rng.random()), 2),
            members=members,
            requeue=rng.random() < 0.7,
            after=rng.choice(names[-10:]) if task is Task.DEPENDENT else "",
            then_s=round(rng.random() * 3.0, 2),
        )
        names.append(name)
        made += members
