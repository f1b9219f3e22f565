"""What an agent does about each attempt: a pure machine, told what happened, saying what to do.

    WAITING --> PREPARING --> FORKING --> STARTED --> RUNNING --> OVER
       |            |            |           |           |         ^
       |            +----------- VOIDING <---+           +-- SWEEPING (its supervisor died)
       DORMANT (a manifest of the process before this one) --> FORKING or VOIDING

The shell performs the actions in their order and tells how each went. A claim is taken by the
supervisor or by VOIDING, never by both, so an attempt runs or is void. What is OVER is reported
until it is answered, one report of a node after the other. Source: LOG-CONTRACT 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import msgspec

from spur.agent.actions import (
    Action,
    Admit,
    Forget,
    Fork,
    Hold,
    Kill,
    Notify,
    Prepare,
    Say,
    Send,
    Signal,
    Steer,
    Sweep,
    TakeClaim,
    Watch,
)
from spur.agent.manifest import AttemptName, Launch, Manifest, Outcome
from spur.values.ids import JobId, NodeName
from spur.values.states import JobState, NodeShareState, Reach
from spur.values.steps import EXTERN_STEP
from spur.wire.agents import (
    KillOrder,
    KillStepOrder,
    LaunchOrder,
    LaunchStepOrder,
    LetInOrder,
    NotifyOrder,
    Numbered,
    Orders,
    SignalOrder,
    SignalStepOrder,
    SteerOrder,
)

__all__ = [
    "End",
    "Found",
    "Machine",
    "Outbox",
    "Report",
    "Stage",
    "is_void",
    "void_claim",
]

_VOID_CLAIM = b"void in "


def void_claim(incarnation: int) -> bytes:
    """Return the content of a claim that the agent takes, ordered in this incarnation."""
    return b"%s%d" % (_VOID_CLAIM, incarnation)


def is_void(claim: bytes) -> bool:
    """Return whether the agent has taken this claim."""
    return claim.startswith(_VOID_CLAIM)


class Stage(IntEnum):
    """How far an attempt has come on this node."""

    WAITING = 0
    """An older attempt of the job lives here and is being killed."""
    DORMANT = 1
    """Its manifest was found without a claim: forked when it is ordered again."""
    PREPARING = 2
    """The manifest is being written."""
    FORKING = 3
    """A supervisor has been asked for."""
    STARTED = 4
    """A supervisor lives; its claim was not seen yet."""
    RUNNING = 5
    """The supervisor has the claim."""
    VOIDING = 6
    """The agent tries to take the claim."""
    SWEEPING = 7
    """The supervisor died; what it left is being killed."""
    OVER = 8


_BEGINS = (Stage.WAITING, Stage.PREPARING, Stage.FORKING, Stage.STARTED)
"""How far one has come that may run yet, whose signals are kept for it."""


# -- what the shell tells


class Found(msgspec.Struct, frozen=True, gc=False):
    """What lies in an attempt's directory."""

    name: AttemptName
    manifest: Manifest | None
    """None where there is none that can be read."""
    claim: bytes | None
    outcome: Outcome | None
    """None where there is none that can be read."""
    lives: bool
    """Whether a supervisor holds the lock."""


class End(msgspec.Struct, frozen=True, gc=False):
    """What became of an attempt here."""

    state: NodeShareState
    """ENDED, VOID, or DEAD when its supervisor was lost."""
    exit_code: int = 0
    signal: int = 0
    out_of_memory: bool = False
    boot_id: str = ""
    ended_boot_ns: int = 0
    """CLOCK_BOOTTIME of that boot when the last process ended; 0 when nobody knows."""


class Report(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One report on its way, as it lies in the outbox."""

    number: int
    name: AttemptName
    state: NodeShareState
    exit_code: int
    signal: int
    out_of_memory: bool
    boot_id: str
    ended_boot_ns: int


@dataclass(kw_only=True, slots=True)
class Outbox:
    """The sequence of one node's reports (LOG-CONTRACT 7.6)."""

    id: bytes
    number: int = 0
    """Of the last report that was made."""
    sending: Report | None = None
    """Made and not answered; no other is made before it is."""
    queue: deque[AttemptName] = field(default_factory=deque)


@dataclass(kw_only=True, slots=True)
class _Attempt:
    """What is known of one attempt."""

    stage: Stage
    order: Launch | None = None
    incarnation: int = 0
    term: int = 0
    index: int = 0
    kill: tuple[str, int] | None = None
    """It shall end, as this and with this much time after SIGTERM."""
    end: End | None = None
    why: str = ""
    """Why it became void, for the log."""
    may_live: bool = False
    """A supervisor may have been forked: only the claim can tell that none will run."""
    is_queued: bool = False
    launch_told: bool = False
    end_told: bool = False
    signal_index: int = 0
    """The newest order to signal that was acted on."""
    notice_index: int = 0
    """The newest order to say something that was acted on."""
    steer: Steer | None = None
    """The newest order of how a run goes on; its steps follow it."""
    signals: list[Signal] = field(default_factory=list)
    """What came before the processes that it is for; they get it when they begin."""


class Machine:
    """All attempts of an agent's nodes."""

    def __init__(self, boot_id: str, outboxes: dict[NodeName, Outbox]) -> None:
        """Begin with the nodes that are served, and what their outboxes held."""
        self.boot_id = boot_id
        self.outboxes = outboxes
        self.heard = (0, 0)
        """The highest (incarnation, term) that gave orders."""
        self._attempts: dict[AttemptName, _Attempt] = {}
        self._of_job: dict[tuple[NodeName, JobId], set[AttemptName]] = {}

    def __contains__(self, name: AttemptName) -> bool:
        return name in self._attempts

    def stage_of(self, name: AttemptName) -> Stage | None:
        """Return how far an attempt has come; None for one that is not known."""
        attempt = self._attempts.get(name)
        return None if attempt is None else attempt.stage

    def order_of(self, name: AttemptName) -> Launch | None:
        """Return what an attempt was ordered by; None for one that is not known, or only void."""
        attempt = self._attempts.get(name)
        return None if attempt is None else attempt.order

    def find_step(
        self, node: NodeName, job_id: JobId, run: int, step: int | None
    ) -> AttemptName | None:
        """Return the newest attempt of a step, or of a run; None where it was not ordered."""
        known = self._of_job.get((node, job_id), ())
        found = [name for name in known if (name.run, name.step) == (run, step)]
        return max(found, key=_age, default=None)

    def end_of(self, name: AttemptName) -> End | None:
        """Return what became of an attempt; None while nothing has."""
        attempt = self._attempts.get(name)
        return None if attempt is None else attempt.end

    def is_told(self, name: AttemptName) -> bool:
        """Whether an attempt is over and its end was answered."""
        attempt = self._attempts.get(name)
        return attempt is not None and attempt.stage is Stage.OVER and attempt.end_told

    @property
    def alive(self) -> list[AttemptName]:
        """The attempts that are not over, in the order in which they came."""
        return [name for name, known in self._attempts.items() if known.stage is not Stage.OVER]

    # -- a new process looks at what the last one left

    def recover(self, found: Iterable[Found]) -> list[Action]:
        """Take over what lies on the disk; steps are looked at before the runs that hold them."""
        actions: list[Action] = []
        for each in sorted(found, key=lambda one: one.name.step is None):
            actions += self._recover(each)
        return actions

    def _recover(self, found: Found) -> list[Action]:
        name, manifest = found.name, found.manifest
        attempt = self._add(name, Stage.DORMANT)
        attempt.may_live = True
        if manifest is not None:
            attempt.order, attempt.index = manifest.order, manifest.index
            attempt.incarnation, attempt.term = manifest.incarnation, manifest.term
            self.heard = max(self.heard, (manifest.incarnation, manifest.term))
        elif found.claim is not None and is_void(found.claim):
            attempt.incarnation = int(found.claim[len(_VOID_CLAIM) :] or b"0")
        if _runs(found):
            attempt.stage = Stage.STARTED
            actions: list[Action] = [Watch(name)]
            return actions + (self.claimed(name) if found.claim is not None else [])
        if found.outcome is not None or found.claim is not None:
            return self._ended_as_found(name, attempt, found)
        if manifest is not None and manifest.boot_id == self.boot_id:
            return [Say(f"{_words(name)}: not launched yet; it is when it is ordered again")]
        return self._void(name, attempt, "its node booted before it was launched")

    def settled(self) -> list[Action]:
        """Void what was found unclaimed and not ordered again, though the leader has been heard."""
        actions: list[Action] = []
        for name, attempt in tuple(self._attempts.items()):
            if attempt.stage is Stage.DORMANT:
                actions += self._void(name, attempt, "nobody orders it any more")
        return actions

    # -- orders

    def take(self, orders: Orders) -> list[Action]:
        """Act on the leader's orders, each once; a leader of a lower term is not obeyed."""
        said_by = (orders.incarnation, orders.term)
        if said_by < self.heard:
            return [Say(f"orders of term {orders.term} came after those of term {self.heard[1]}")]
        actions: list[Action] = []
        if orders.incarnation != self.heard[0] and self.heard[0]:
            actions += self._relist_all()
        self.heard = said_by
        for numbered in orders.orders:
            actions += self._take(numbered)
        return actions

    def _take(self, numbered: Numbered) -> list[Action]:
        order = numbered.order
        if order.node not in self.outboxes:
            return [Say(f"an order for node {order.node}, which is not served here, is ignored")]
        name = AttemptName(order.node, order.job_id, order.run, None, order.attempt)
        if isinstance(order, LaunchStepOrder | KillStepOrder | SignalStepOrder):
            name = name._replace(step=order.step_id)
        match order:
            case LaunchOrder() | LaunchStepOrder():
                return self._launch(name, order, numbered.index)
            case KillOrder() | KillStepOrder():
                return self._stop(name, order.state, order.kill_wait_s)
            case SignalOrder():
                return self._signal_run(name, order.signal, order.reach, order.index)
            case NotifyOrder():
                return self._notify(name, order.text, order.index)
            case SteerOrder():
                return self._steer(Steer(name, order.paused, order.limit_ns, order.index))
            case LetInOrder():
                if order.step_id != EXTERN_STEP:
                    name = name._replace(step=order.step_id)
                return [Admit(name, order.key_digest)] if name in self else []
            case SignalStepOrder():
                # To the tasks alone: what they started hears of it from them.
                return self._signal(name, order.signal, index=order.index, mains_only=True)

    def _launch(self, name: AttemptName, order: Launch, index: int) -> list[Action]:
        attempt = self._attempts.get(name)
        if attempt is not None and not self._is_of_the_past(attempt):
            return self._launch_again(name, attempt, order)
        if name.step is not None:
            return self._launch_step(name, order, index)
        older, newer = self._others(name)
        if newer:
            return [Say(f"{_words(name)}: {_words(newer[0])} was ordered before; it is ignored")]
        attempt = self._ordered(name, order, index)
        if isinstance(order, LaunchOrder) and order.why_not:
            return self._void(name, attempt, order.why_not)
        actions: list[Action] = []
        for each in older:
            actions.append(Say(f"{_words(each)}: killed, because {_words(name)} is to begin"))
            actions += self._stop(each, JobState.CANCELLED, 0)
        return actions + self._begin(name, attempt)

    def _launch_step(self, name: AttemptName, order: Launch, index: int) -> list[Action]:
        """Launch a step where its run is held; its order may be quicker than the run's."""
        attempt = self._ordered(name, order, index)
        actions = self._begin(name, attempt)
        return actions or [Hold(name)]

    def not_held(self, name: AttemptName) -> list[Action]:
        """The order for a step's run did not come in time."""
        attempt = self._attempts.get(name)
        if attempt is None or attempt.stage is not Stage.WAITING:
            return []
        return self._void(name, attempt, "its run is not held here")

    def _ordered(self, name: AttemptName, order: Launch, index: int) -> _Attempt:
        attempt = self._add(name, Stage.WAITING)
        attempt.order, attempt.index = order, index
        attempt.incarnation, attempt.term = self.heard
        return attempt

    def _launch_again(self, name: AttemptName, attempt: _Attempt, order: Launch) -> list[Action]:
        """Act once: say again what is known; begin only what an earlier process left untouched."""
        if attempt.stage is Stage.DORMANT:
            attempt.order = attempt.order or order
            holder = self._attempts.get(name._replace(step=None))
            if holder is None or holder.kill is not None or holder.stage >= Stage.VOIDING:
                return self._void(name, attempt, "its run is not held here any more")
            return self._fork(name, attempt)
        if attempt.stage is Stage.RUNNING:
            attempt.launch_told = False
        attempt.end_told = False
        return self._queue(name, attempt)

    def _is_of_the_past(self, attempt: _Attempt) -> bool:
        """Whether the attempt ended before the cluster was restored, which used its name anew."""
        return attempt.stage is Stage.OVER and attempt.incarnation < self.heard[0]

    def _begin(self, name: AttemptName, attempt: _Attempt) -> list[Action]:
        """Go on with a launch: a run once no older attempt of its job lives, a step in its run."""
        if attempt.order is None:
            return []
        if name.step is None:
            if self._others(name)[0]:
                return []
        else:
            holder = self._attempts.get(name._replace(step=None))
            if holder is None or holder.stage is Stage.WAITING:
                return []
            if holder.kill is not None or holder.stage >= Stage.VOIDING:
                return self._void(name, attempt, "its run is not held here any more")
        attempt.stage = Stage.PREPARING
        actions: list[Action] = [
            Prepare(name, attempt.order, attempt.incarnation, attempt.term, attempt.index)
        ]
        for step in self._live_steps(name) if name.step is None else ():
            waiting = self._attempts[step]
            if waiting.stage is Stage.WAITING:
                actions += self._begin(step, waiting)
        return actions

    def _stop(self, name: AttemptName, state: str, kill_wait_s: int) -> list[Action]:
        """End an attempt and its steps, or see to it that it never begins."""
        attempt = self._attempts.get(name)
        if attempt is None:
            attempt = self._add(name, Stage.WAITING)
            attempt.incarnation = self.heard[0]
        attempt.kill = (state, kill_wait_s)
        actions: list[Action] = []
        if name.step is None:
            for step in self._live_steps(name):
                actions += self._stop(step, state, kill_wait_s)
        match attempt.stage:
            case Stage.WAITING | Stage.DORMANT | Stage.FORKING | Stage.STARTED:
                actions += self._void(name, attempt, f"stopped as {state} before it began")
            case Stage.RUNNING:
                actions.append(Kill(name, state, kill_wait_s))
            case Stage.OVER:
                attempt.end_told = False
                actions += self._queue(name, attempt)
            case Stage.PREPARING | Stage.VOIDING | Stage.SWEEPING:
                # What is on its way looks at `kill` when it has come.
                pass
        return actions

    def _signal_run(self, name: AttemptName, signal: int, reach: Reach, index: int) -> list[Action]:
        """Send a signal once to what of a run is meant; an agent that lost count sends nothing."""
        attempt = self._attempts.get(name)
        if attempt is None or index <= attempt.signal_index:
            return []
        actions: list[Action] = []
        if reach is not Reach.STEPS:
            actions += self._signal(name, signal, index=index, mains_only=reach is Reach.SCRIPT)
        if reach is not Reach.SCRIPT:
            for step in self._live_steps(name):
                actions += self._signal(step, signal, index=index, mains_only=False)
        attempt.signal_index = index
        return actions

    def _signal(
        self, name: AttemptName, signal: int, *, index: int, mains_only: bool
    ) -> list[Action]:
        """Send a signal once to the processes of a script or a step."""
        attempt = self._attempts.get(name)
        if attempt is None or index <= attempt.signal_index:
            return []
        attempt.signal_index = index
        order = Signal(name, signal, mains_only, index)
        if attempt.stage is Stage.RUNNING:
            return [order]
        if attempt.stage in _BEGINS:
            attempt.signals.append(order)
        return []

    def _notify(self, name: AttemptName, text: bytes, index: int) -> list[Action]:
        """Say something once to a script, or where none runs to the steps."""
        attempt = self._attempts.get(name)
        if attempt is None or index <= attempt.notice_index:
            return []
        attempt.notice_index = index
        is_batch = isinstance(attempt.order, LaunchOrder) and attempt.order.spec.batch
        names = (name,) if is_batch else tuple(self._live_steps(name))
        return [
            Notify(each, text, index)
            for each in names
            if self._attempts[each].stage is Stage.RUNNING
        ]

    def _steer(self, steer: Steer) -> list[Action]:
        """Have all of a run that runs here go on as is said last."""
        attempt = self._attempts.get(steer.name)
        if attempt is None or (attempt.steer is not None and steer.index <= attempt.steer.index):
            return []
        attempt.steer = steer
        names = (steer.name, *self._live_steps(steer.name))
        return [
            self._steered(name, steer)
            for name in names
            if self._attempts[name].stage is Stage.RUNNING
        ]

    def _steered(self, name: AttemptName, steer: Steer) -> Steer:
        return Steer(name, steer.paused, steer.limit_ns, steer.index)

    # -- how the shell's work went

    def prepared(self, name: AttemptName) -> list[Action]:
        """The manifest and its directory are synced."""
        attempt = self._attempts[name]
        if attempt.stage is not Stage.PREPARING:
            return []
        if attempt.kill is not None:
            return self._void(name, attempt, f"stopped as {attempt.kill[0]} before it began")
        return self._fork(name, attempt)

    def not_prepared(self, name: AttemptName, why: str) -> list[Action]:
        """The manifest could not be written: nothing will run."""
        return self._void(name, self._attempts[name], why)

    def forked(self, name: AttemptName) -> list[Action]:
        """A supervisor lives; its end will be told."""
        attempt = self._attempts[name]
        if attempt.stage is Stage.FORKING:
            attempt.stage = Stage.STARTED
        return []

    def not_forked(self, name: AttemptName, why: str) -> list[Action]:
        """No supervisor could be forked."""
        attempt = self._attempts[name]
        return self._void(name, attempt, why) if attempt.stage is Stage.FORKING else []

    def claimed(self, name: AttemptName) -> list[Action]:
        """The supervisor has the claim: user code runs, or is about to."""
        attempt = self._attempts[name]
        if attempt.stage not in (Stage.FORKING, Stage.STARTED, Stage.VOIDING):
            return []
        attempt.stage = Stage.RUNNING
        actions = self._queue(name, attempt)
        holder = self._attempts.get(name._replace(step=None))
        if holder is not None and holder.steer is not None:
            actions.append(self._steered(name, holder.steer))
        actions += attempt.signals
        attempt.signals = []
        if attempt.kill is not None:
            actions.append(Kill(name, *attempt.kill))
        return actions

    def gone(self, found: Found) -> list[Action]:
        """The supervisor ended, or has written its outcome; this is what it left."""
        name = found.name
        attempt = self._attempts.get(name)
        if attempt is None or attempt.stage in (Stage.OVER, Stage.SWEEPING):
            return []
        if _runs(found):
            # Another supervisor of the attempt came first; this one only stepped aside.
            return [Watch(name)]
        if found.outcome is not None or found.claim is not None:
            return self._ended_as_found(name, attempt, found)
        if attempt.stage is Stage.VOIDING:
            return []
        return self._void(name, attempt, "its supervisor ended before it began")

    def voided(self, name: AttemptName, *, won: bool) -> list[Action]:
        """The claim was taken for nobody; or not, because the supervisor has it."""
        attempt = self._attempts[name]
        if attempt.stage is not Stage.VOIDING:
            return []
        if not won:
            return [Watch(name), *self.claimed(name)]
        # One that waits to be told what a step executes would wait on, for nothing.
        ends = [Kill(name, JobState.CANCELLED, 0)] if attempt.may_live else []
        return [*ends, *self._over(name, attempt, End(NodeShareState.VOID))]

    def not_voided(self, name: AttemptName, why: str) -> list[Action]:
        """The disk takes no claim now: what was never forked is void without, else try again."""
        attempt = self._attempts[name]
        if attempt.stage is not Stage.VOIDING or attempt.may_live:
            return []
        attempt.why = f"{attempt.why}; {why}"
        return self._over(name, attempt, End(NodeShareState.VOID))

    def swept(self, name: AttemptName) -> list[Action]:
        """Nothing is left of what a dead supervisor had."""
        attempt = self._attempts[name]
        if attempt.stage is not Stage.SWEEPING:
            return []
        return self._over(name, attempt, End(NodeShareState.DEAD))

    # -- reports

    def relist(self, node: NodeName) -> list[Action]:
        """Report again all that lives on a node that was cut off: what is not known is killed."""
        actions: list[Action] = []
        for name, attempt in self._attempts.items():
            if name.node == node and attempt.stage is Stage.RUNNING:
                attempt.launch_told = False
                actions += self._queue(name, attempt)
        return actions

    def _relist_all(self) -> list[Action]:
        """Report all again, ends too: the state was restored and may know another story."""
        actions: list[Action] = []
        for name, attempt in self._attempts.items():
            attempt.launch_told = attempt.end_told = False
            actions += self._queue(name, attempt)
        return actions

    def next_report(self, node: NodeName) -> Report | None:
        """Return the report to be sent: the one that was not answered, or the next.

        A new one must be in the outbox on disk before it is sent.
        """
        outbox = self.outboxes[node]
        while outbox.sending is None and outbox.queue:
            name = outbox.queue.popleft()
            attempt = self._attempts.get(name)
            end = None if attempt is None else self._to_tell(name, attempt)
            if attempt is not None:
                attempt.is_queued = False
            if end is None:
                continue
            outbox.number += 1
            outbox.sending = Report(
                outbox.number,
                name,
                end.state,
                end.exit_code,
                end.signal,
                end.out_of_memory,
                end.boot_id,
                end.ended_boot_ns,
            )
        return outbox.sending

    def answered(self, node: NodeName, outcome: str) -> list[Action]:
        """The report on its way was taken: done, already, or void."""
        outbox = self.outboxes[node]
        report, outbox.sending = outbox.sending, None
        if report is None:
            return []
        actions: list[Action] = [Send(node)]
        attempt = self._attempts.get(report.name)
        if attempt is None:
            return actions
        if report.state is not NodeShareState.LAUNCHED:
            attempt.end_told = True
            return [*actions, Forget(report.name)]
        if outcome == "already":
            # What it was answered the first time went astray, and that may have been void.
            return actions + self._queue(report.name, attempt)
        attempt.launch_told = True
        if outcome == "void" and attempt.stage is not Stage.OVER:
            actions.append(Say(f"{_words(report.name)}: not known to the cluster; it is killed"))
            actions += self._stop(report.name, JobState.CANCELLED, 0)
        return actions

    def forget(self, name: AttemptName) -> None:
        """Drop what is over and told; an order for it would be taken as new."""
        if self.is_told(name):
            del self._attempts[name]
            of_job = self._of_job[name.node, name.job_id]
            of_job.discard(name)
            if not of_job:
                del self._of_job[name.node, name.job_id]

    # -- inside

    def _add(self, name: AttemptName, stage: Stage) -> _Attempt:
        attempt = self._attempts[name] = _Attempt(stage=stage)
        self._of_job.setdefault((name.node, name.job_id), set()).add(name)
        return attempt

    def _fork(self, name: AttemptName, attempt: _Attempt) -> list[Action]:
        attempt.stage = Stage.FORKING
        attempt.may_live = True
        return [Fork(name)]

    def _void(self, name: AttemptName, attempt: _Attempt, why: str) -> list[Action]:
        attempt.stage = Stage.VOIDING
        attempt.why = why
        return [TakeClaim(name, attempt.incarnation)]

    def _ended_as_found(self, name: AttemptName, attempt: _Attempt, found: Found) -> list[Action]:
        """Take the end that the files of a supervisor that is gone tell."""
        outcome = found.outcome
        if outcome is not None:
            attempt.why = outcome.why
            state = NodeShareState.VOID if outcome.void else NodeShareState.ENDED
            end = End(
                state,
                outcome.exit_code,
                outcome.signal,
                outcome.out_of_memory,
                outcome.boot_id,
                outcome.ended_boot_ns,
            )
            return self._over(name, attempt, end)
        if found.claim is not None and is_void(found.claim):
            return self._over(name, attempt, End(NodeShareState.VOID))
        if found.manifest is not None and found.manifest.boot_id != self.boot_id:
            attempt.why = "its node booted while it ran"
            return self._over(name, attempt, End(NodeShareState.DEAD))
        attempt.stage = Stage.SWEEPING
        attempt.why = "its supervisor died"
        return [Sweep(name)]

    def _over(self, name: AttemptName, attempt: _Attempt, end: End) -> list[Action]:
        """Note the end; what waited for it goes on: its run's report, the job's next attempt."""
        attempt.stage, attempt.end = Stage.OVER, end
        actions: list[Action] = []
        if attempt.why:
            actions.append(Say(f"{_words(name)}: {attempt.why}"))
        if name.step is None:
            for step in self._live_steps(name):
                actions += self._stop(step, JobState.CANCELLED, 0)
        actions += self._queue(name, attempt)
        if name.step is not None:
            run = name._replace(step=None)
            holder = self._attempts.get(run)
            if holder is not None and holder.stage is Stage.OVER:
                actions += self._queue(run, holder)
        for waiting in self._of_job[name.node, name.job_id]:
            other = self._attempts[waiting]
            if other.stage is Stage.WAITING and other.kill is None:
                actions += self._begin(waiting, other)
        return actions

    def _queue(self, name: AttemptName, attempt: _Attempt) -> list[Action]:
        """Put an attempt into its node's outbox if it has something to tell."""
        if attempt.is_queued or self._to_tell(name, attempt) is None:
            return []
        attempt.is_queued = True
        self.outboxes[name.node].queue.append(name)
        return [Send(name.node)]

    def _to_tell(self, name: AttemptName, attempt: _Attempt) -> End | None:
        """Return what is to be reported of an attempt now; a run's end comes after its steps'."""
        if attempt.stage is Stage.RUNNING and name.step is None and not attempt.launch_told:
            return End(NodeShareState.LAUNCHED)
        if attempt.end is None or attempt.end_told:
            return None
        if name.step is None and self._has_live_steps(name):
            return None
        return attempt.end

    def _has_live_steps(self, run: AttemptName) -> bool:
        return next(self._live_steps(run), None) is not None

    def _live_steps(self, run: AttemptName) -> Iterator[AttemptName]:
        """Yield the steps of a run's attempt that are not over, in order."""
        found = self._of_job.get((run.node, run.job_id), ())
        for name in sorted((each for each in found if each.step is not None), key=_step):
            if (name.run, name.attempt) == (run.run, run.attempt):
                if self._attempts[name].stage is not Stage.OVER:
                    yield name

    def _others(self, name: AttemptName) -> tuple[list[AttemptName], list[AttemptName]]:
        """Return the job's older attempts that are not over, and its newer ones."""
        older, newer = [], []
        for each in sorted(self._of_job.get((name.node, name.job_id), ()), key=_age):
            if each.step is not None or each == name:
                continue
            if _age(each) > _age(name):
                newer.append(each)
            elif self._attempts[each].stage is not Stage.OVER or self._has_live_steps(each):
                older.append(each)
        return older, newer


def _runs(found: Found) -> bool:
    """Whether a supervisor has still something to do, or will find out that it has not begun."""
    is_voided = found.claim is not None and is_void(found.claim)
    return found.lives and found.outcome is None and not is_voided


def _step(name: AttemptName) -> int:
    return -1 if name.step is None else name.step


def _age(name: AttemptName) -> tuple[int, int]:
    return name.run, name.attempt


def _words(name: AttemptName) -> str:
    """Return how a sentence calls an attempt."""
    step = "" if name.step is None else f", step {name.step}"
    return f"job {name.job_id} on {name.node} (run {name.run}, attempt {name.attempt}{step})"
