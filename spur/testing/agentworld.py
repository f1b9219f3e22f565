"""A node, its disk, its supervisors and a leader, all in memory: what an agent's machine meets.

Whatever the machine wants done is done in any order that a real shell could bring about, and the
agent, a supervisor or the machine may die between any two steps. What never may be is checked as it
would happen; `drain` lets everything come to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

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
from spur.agent.machine import Found, Machine, Outbox, Report, Stage, is_void, void_claim
from spur.agent.manifest import AttemptName, Manifest, Outcome, Site, directory_name
from spur.testing.orders import kill_order, order_for, orders, step_order
from spur.values.errors import InvariantBroken
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState
from spur.wire.agents import Order

__all__ = ["AgentWorld"]

NODES = (NodeName("n1"), NodeName("n2"))
SITE = Site("", "", "", "")


@dataclass
class _Directory:
    manifest: Manifest | None = None
    claim: bytes | None = None
    outcome: Outcome | None = None


@dataclass
class _Supervisor:
    name: AttemptName
    has_claimed: bool = False
    is_told_to_end: bool = False
    heard_by: int = 0
    """Life of the agent that hears its end; 0 for none."""


@dataclass
class _Row:
    """What the cluster holds of an attempt."""

    state: NodeShareState = NodeShareState.OWED
    is_killed: bool = False
    is_known: bool = True
    """False once the job was given up here: a lost node's, requeued."""


@dataclass
class AgentWorld:
    """Everything around one machine, and the machine."""

    rng: Random
    disk: dict[AttemptName, _Directory] = field(default_factory=dict)
    outboxes: dict[NodeName, Outbox] = field(default_factory=dict)
    supervisors: list[_Supervisor] = field(default_factory=list)
    left: set[AttemptName] = field(default_factory=set)
    """Whose processes live on without a supervisor."""
    rows: dict[AttemptName, _Row] = field(default_factory=dict)
    ran: Counter[AttemptName] = field(default_factory=Counter)
    heard: dict[tuple[NodeName, int], Report] = field(default_factory=dict)
    told_ends: set[AttemptName] = field(default_factory=set)
    told: Counter[str] = field(default_factory=Counter)
    is_draining: bool = False
    """From now on, what the cluster does not know ends only when it is told to."""
    boot: int = 1
    life: int = 0

    def __post_init__(self) -> None:
        self.todo: list[Callable[[], None]] = []
        for node in NODES:
            self.outboxes[node] = Outbox(id=node.encode() * 8)
        self.start()

    # -- the agent's process

    def start(self) -> None:
        """Let a new agent process take over the disk and attend anew."""
        self.life += 1
        boxes = {
            node: Outbox(id=box.id, number=box.number, sending=box.sending)
            for node, box in self.outboxes.items()
        }
        self.machine = Machine(f"boot {self.boot}", boxes)
        found = [self.found(name) for name in self.disk]
        self.perform(self.machine.recover(found))
        self.attend()

    def crash(self) -> None:
        """Kill the agent, and start another: what was under way is as far as it had come."""
        self.todo.clear()
        self.start()

    def reboot(self) -> None:
        """Let the machine lose its power: all processes die, the agent with them."""
        self.boot += 1
        self.supervisors.clear()
        self.left.clear()
        self.crash()

    def attend(self) -> None:
        """Tell the agent all that rows owe."""
        for name in self._names():
            row = self.rows[name]
            if not row.is_known or row.state not in (
                NodeShareState.OWED,
                NodeShareState.LAUNCHED,
            ):
                continue
            if row.is_killed:
                self._kill_order(name)
            elif row.state is NodeShareState.OWED:
                self._launch_order(name)

    def perform(self, actions: list[Action]) -> None:
        """Take note of what the machine wants; each is done at some later step."""
        for action in actions:
            match action:
                case Say() | Send() | Forget():
                    pass
                case Watch():
                    self._later(self._watch, action.name)
                case Prepare():
                    self._later(self._prepare, action)
                case Fork():
                    self._later(self._fork, action.name)
                case TakeClaim():
                    self._later(self._take_claim, action)
                case Kill():
                    self._later(self._kill, action.name)
                case Signal():
                    self.told["signal"] += 1
                case Steer() | Notify() | Admit():
                    self.told["word"] += 1
                case Sweep():
                    self._later(self._sweep, action.name)
                case Hold():
                    self._tell(self.machine.not_held, action.name)

    def found(self, name: AttemptName) -> Found:
        """Return what an agent would read of an attempt."""
        directory = self.disk.get(name, _Directory())
        lives = any(one.name == name for one in self.supervisors)
        return Found(name, directory.manifest, directory.claim, directory.outcome, lives)

    def _later(self, work: Callable[..., None], *arguments: object) -> None:
        self.todo.append(partial(work, *arguments))

    def _tell(self, tell: Callable[..., list[Action]], *arguments: object, **named: object) -> None:
        """Let the machine hear, a step later, how something went."""
        self.todo.append(lambda: self.perform(tell(*arguments, **named)))

    # -- what the shell does

    def _prepare(self, action: Prepare) -> None:
        name = action.name
        if self.rng.random() < 0.05:
            self._tell(self.machine.not_prepared, name, "disk full")
            return
        boot_id = self.machine.boot_id
        self.disk[name] = _Directory(
            Manifest(boot_id, action.incarnation, action.term, action.index, action.order, SITE)
        )
        self._tell(self.machine.prepared, name)

    def _fork(self, name: AttemptName) -> None:
        if self.rng.random() < 0.05:
            self._tell(self.machine.not_forked, name, "no process")
            return
        self.supervisors.append(_Supervisor(name, heard_by=self.life))
        self._tell(self.machine.forked, name)

    def _take_claim(self, action: TakeClaim) -> None:
        name = action.name
        if self.rng.random() < 0.05:
            self._tell(self.machine.not_voided, name, "disk full")
            if self.machine.stage_of(name) is Stage.VOIDING:
                self._later(self._take_claim, action)
            return
        directory = self.disk.setdefault(name, _Directory())
        if directory.claim is None:
            directory.claim = void_claim(action.incarnation)
        self._tell(self.machine.voided, name, won=is_void(directory.claim))

    def _watch(self, name: AttemptName) -> None:
        for one in self.supervisors:
            if one.name == name:
                one.heard_by = self.life
                return
        self._tell(self.machine.gone, self.found(name))

    def _kill(self, name: AttemptName) -> None:
        for one in self.supervisors:
            if one.name == name:
                one.is_told_to_end = True

    def _sweep(self, name: AttemptName) -> None:
        self.left.discard(name)
        self._tell(self.machine.swept, name)

    # -- supervisors

    def step_supervisor(self) -> None:
        """Let a supervisor go on: take the claim, or end."""
        if not self.supervisors:
            return
        one = self.rng.choice(self.supervisors)
        directory = self.disk[one.name]
        if one.has_claimed:
            if self.is_draining and not (one.is_told_to_end or self.rows[one.name].is_known):
                return
            directory.outcome = Outcome(f"boot {self.boot}", False, 0, 0, False, 7)
            self._end(one)
        elif directory.claim is not None:
            self._end(one)
        else:
            directory.claim = b"run"
            one.has_claimed = True
            self._check_start(one.name)
            if one.heard_by == self.life:
                self._tell(self.machine.claimed, one.name)

    def kill_supervisor(self) -> None:
        """Kill a supervisor; what it ran lives on until somebody ends it."""
        if self.supervisors:
            one = self.rng.choice(self.supervisors)
            if one.has_claimed:
                self.left.add(one.name)
            self._end(one)

    def _end(self, one: _Supervisor) -> None:
        self.supervisors.remove(one)
        if one.heard_by == self.life:
            self._tell(self.machine.gone, self.found(one.name))

    def _check_start(self, name: AttemptName) -> None:
        self.ran[name] += 1
        if self.ran[name] > 1:
            raise InvariantBroken(f"{name} ran twice")
        if name in self.told_ends:
            raise InvariantBroken(f"{name} began after its end was told")
        busy = [one.name for one in self.supervisors if one.has_claimed] + sorted(
            self.left, key=directory_name
        )
        for other in busy:
            is_of_job = (other.node, other.job_id) == (name.node, name.job_id)
            if is_of_job and (other.run, other.attempt) != (name.run, name.attempt):
                raise InvariantBroken(f"{name} began while {other} was alive")

    # -- the cluster

    def submit(self) -> None:
        """Let the cluster start a run, or the next run or attempt of a job that it gave up."""
        node, job_id = self.rng.choice(NODES), JobId(self.rng.randrange(1, 4))
        known = [
            name
            for name in self.rows
            if (name.node, name.job_id, name.step) == (node, job_id, None)
        ]
        if any(self.is_open(name) for name in known):
            return
        name = AttemptName(node, job_id, len(known) // 2, None, len(known) + 1)
        self.rows[name] = _Row()
        self._launch_order(name)

    def start_step(self) -> None:
        """Let somebody start a step in a run that was launched."""
        run = self._pick()
        if run is not None and self.rows[run].state is NodeShareState.LAUNCHED:
            step = sum(name[:3] == run[:3] for name in self.rows)
            name = run._replace(step=step)
            self.rows[name] = _Row()
            self._launch_order(name)

    def is_open(self, name: AttemptName) -> bool:
        """Whether the cluster waits for the end of an attempt here."""
        row = self.rows[name]
        is_owed = row.state in (NodeShareState.OWED, NodeShareState.LAUNCHED)
        return row.is_known and is_owed

    def cancel(self) -> None:
        """Let the cluster end a run."""
        name = self._pick()
        if name is not None:
            self.rows[name].is_killed = True
            self._kill_order(name)

    def give_up(self) -> None:
        """Let the cluster take the node for lost and requeue a job of it at once, unfenced."""
        name = self._pick()
        if name is not None:
            for each in self._of_run(name):
                self.rows[each].is_known = False

    def repeat_order(self) -> None:
        """Let an order that was on its way come once more."""
        if self.rows:
            name = self.rng.choice(self._names())
            if name in self.machine:
                self._launch_order(name)

    def _pick(self) -> AttemptName | None:
        """Return a run that the cluster holds."""
        known = [name for name in self._names() if name.step is None and self.is_open(name)]
        return self.rng.choice(known) if known else None

    def _names(self) -> list[AttemptName]:
        return sorted(self.rows, key=directory_name)

    def _of_run(self, run: AttemptName) -> list[AttemptName]:
        return [name for name in self.rows if name._replace(step=None) == run]

    def _launch_order(self, name: AttemptName) -> None:
        node, job_id, run, step, attempt = name
        if step is None:
            self._order(order_for(node, job_id, run=run, attempt=attempt))
        else:
            self._order(step_order(node, job_id, step, run=run, attempt=attempt))

    def _kill_order(self, name: AttemptName) -> None:
        if name.step is None:
            self._order(kill_order(name.node, name.job_id, run=name.run, attempt=name.attempt))

    def _order(self, order: Order) -> None:
        self._tell(lambda: self.machine.take(orders(order)))

    def step_report(self) -> None:
        """Let a node's report be written down, sent and answered; any of it may not happen."""
        node = self.rng.choice(NODES)
        report = self.machine.next_report(node)
        if report is None:
            return
        box = self.outboxes[node]
        box.number, box.sending = report.number, report
        if self.rng.random() < 0.1:
            return
        outcome = self._hear(node, report)
        if self.rng.random() < 0.8:
            self.perform(self.machine.answered(node, outcome))

    def _hear(self, node: NodeName, report: Report) -> str:
        """Judge a report as the cluster does."""
        before = self.heard.get((node, report.number))
        if before is not None:
            if before != report:
                raise InvariantBroken(f"report {report.number} is {before}, then {report}")
            return "already"
        if report.number > 1 and (node, report.number - 1) not in self.heard:
            raise InvariantBroken(f"report {report.number} of {node} came too early")
        self.heard[node, report.number] = report
        self._check_report(report)
        row = self.rows.get(report.name)
        if row is None or not self.is_open(report.name):
            return "void"
        if row.state is report.state:
            return "done"
        row.state = report.state
        if report.name.step is None and report.state is not NodeShareState.LAUNCHED:
            for each in self._of_run(report.name):
                self.rows[each].is_known = False
        return "done"

    def _check_report(self, report: Report) -> None:
        name, is_final = report.name, report.state is not NodeShareState.LAUNCHED
        if is_final:
            self.told_ends.add(name)
        if is_final and any(one.name == name and one.has_claimed for one in self.supervisors):
            raise InvariantBroken(f"{name} is told to have ended, and lives")
        for each in self._of_run(name) if is_final and name.step is None else ():
            if each != name and any(
                one.name == each and one.has_claimed for one in self.supervisors
            ):
                raise InvariantBroken(f"{name} is told to have ended, and its step {each} lives")
        if is_final and name in self.left:
            raise InvariantBroken(f"{name} is told to have ended, and has processes")
        if (report.state is NodeShareState.VOID) == bool(self.ran[name]):
            raise InvariantBroken(f"{name} is told as {report.state}, and ran {self.ran[name]}")

    # -- time

    def step(self) -> None:
        """Do one of the things that are under way."""
        if self.todo:
            self.todo.pop(self.rng.randrange(len(self.todo)))()

    def drain(self) -> None:
        """Let everything come to its end, a new agent process listing all that it holds."""
        self.is_draining = True
        self.crash()
        for _ in range(4000):
            if self.todo:
                self.step()
            elif not self.rng.randrange(3):
                self.step_supervisor()
            else:
                self.step_report()
        self.perform(self.machine.settled())
        for _ in range(1000):
            self.step()
            self.step_report()
