"""The dispatcher: agents that attend, what each is still to be told, and which fell silent.

    effect released --> queue of the node's host --> orders, when that agent asks --> heard

It is soft: all of it is forgotten when leadership is lost, since rows owe what matters. An agent
that the leader does not know gets all that rows owe its nodes. An order keeps its number until the
agent says that it heard it, so an answer that is lost is given again; acting once is the agent's.

No clock, socket or thread: the shell calls `on_tick` with how much time passed, and reads blobs.
Source: LOG-CONTRACT 3.4, 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from spur.commands.decide import Attendance
from spur.controller.orders import ORDERS, blobs_of_effect, order_of
from spur.controller.services import OrdersDone
from spur.projections.cluster import settings_of
from spur.projections.dispatch import SignalRun
from spur.projections.react import EFFECTS, Effect, resume_node
from spur.projections.state import State
from spur.projections.stepdispatch import LaunchStep, SignalStep
from spur.values.ids import HostId, JobId, NodeName
from spur.wire.agents import AttendOrders, Numbered, Orders

__all__ = ["Dispatcher"]

ORDERS_MAX = 500
"""Orders of one answer."""

ORDERS_BYTES = 8 << 20
"""Bytes of attachments in one answer; one order may have more alone."""

RETRY_NS = 500_000_000
"""Between two looks for an attachment that is missing here and fetched from a peer."""

LOST_NS = 60_000_000_000
"""How long an attachment may be missing until it is taken for lost, and the launch has failed."""

STEP_NS_MAX = 2_000_000_000
"""The most that one tick counts for: a controller that was stopped itself blames no agent."""

SWEEP_NS = 100_000_000
"""Between two looks at agents that wait."""

SILENCE_CHECK_NS = 1_000_000_000
"""Between two looks for silent agents."""

LOST_PER_CHECK_MAX = 64
"""Nodes that one look finds lost; the others are found by the next."""

ReadBlobs = Callable[[Sequence[bytes], Callable[[Sequence[bytes | None]], None]], None]
MarkLost = Callable[[NodeName, int], None]
"""Takes a node and how long its agent has been silent, in nanoseconds."""


class _Item:
    """An effect on its way to an agent."""

    __slots__ = ("effect", "index", "missing_ns", "not_before_ns", "number")

    def __init__(self, effect: Effect, index: int) -> None:
        self.effect = effect
        self.index = index
        """The entry that it rests on; it is told nobody before that is committed."""
        self.number = 0
        """0 until it is given to the agent."""
        self.not_before_ns = 0
        self.missing_ns: int | None = None
        """Since when one of its attachments was not to be had."""


class _Poll:
    """An agent that waits for an answer."""

    __slots__ = ("done", "is_read", "until_ns")

    def __init__(self, done: OrdersDone, until_ns: int) -> None:
        self.done = done
        self.until_ns = until_ns
        self.is_read = False
        """Attachments for its answer are being read."""


class _Agent:
    """One session of one host's agent."""

    def __init__(self, session: bytes, heard: int, fresh_index: int) -> None:
        self.session = session
        self.last_number = heard
        self.fresh_index = fresh_index
        """What rows owed at this entry is in the queue already."""
        self.queue: deque[_Item] = deque()
        self.given: deque[_Item] = deque()
        """Numbered, and not yet heard."""
        self.poll: _Poll | None = None
        self.register: tuple[NodeName, ...] = ()
        """Nodes that it is to register, and was told of."""


class Dispatcher:
    """Queues by host, and a table of what agents said last."""

    def __init__(
        self, *, state: Callable[[], State], read_blobs: ReadBlobs, mark_lost: MarkLost
    ) -> None:
        self.health: dict[NodeName, Attendance] = {}
        """What agents said of their nodes."""
        self._state = state
        self._read_blobs = read_blobs
        self._mark_lost = mark_lost
        self._agents: dict[HostId, _Agent] = {}
        self._heard_ns: dict[HostId, int] = {}
        self._stirred: dict[HostId, _Agent] = {}
        """Agents whose queue grew since the last commit, or waits for another."""
        self._leads = False
        self._term = 0
        self._commit = 0
        self._now_ns = 0
        """Time that passed on this loop, without what it was stopped for."""
        self._led_ns = 0
        self._swept_ns = self._checked_ns = 0

    @property
    def agent_count(self) -> int:
        """Return how many hosts attend."""
        return len(self._agents)

    # -- what the front says
    def leading(self, term: int) -> None:
        """Begin with nothing; each agent has the whole time-out to come."""
        self._leads, self._term = True, term
        self._led_ns = self._checked_ns = self._now_ns

    def following(self) -> None:
        """Forget everything; who waits is sent to the new leader."""
        self._leads = False
        agents, self._agents = self._agents, {}
        self._stirred.clear()
        self._heard_ns.clear()
        self.health.clear()
        for agent in agents.values():
            _answer(agent, None)

    def committed(self, index: int) -> None:
        """Let go what rests on these entries."""
        self._commit = index
        stirred, self._stirred = self._stirred, {}
        for host_id, agent in stirred.items():
            if self._agents.get(host_id) is agent:
                self._serve(agent)
                if agent.queue and agent.queue[-1].index > index:
                    self._stirred[host_id] = agent

    def release(self, effect: Effect, index: int) -> None:
        """Queue an effect for the agent of its node, if one attends; else its row owes it."""
        if type(effect) not in ORDERS:
            return
        node: NodeName = effect.node  # type: ignore[attr-defined]  # every effect of ORDERS has one
        row = self._state().nodes.get(node)
        if row is None:
            return
        agent = self._agents.get(row.host_id)
        if agent is None or (EFFECTS[type(effect)].table and index <= agent.fresh_index):
            return
        agent.queue.append(_Item(effect, index))
        self._stirred[row.host_id] = agent

    # -- what agents say
    def heard(self, host_id: HostId) -> None:
        """Note that an agent asked or reported something."""
        self._heard_ns[host_id] = self._now_ns

    def attend(self, request: AttendOrders, host_id: HostId, done: OrdersDone) -> None:
        """Answer an agent as soon as there is something, or when its patience ends."""
        self.heard(host_id)
        agent = self._agents.get(host_id)
        if (
            agent is None
            or agent.session != request.session
            or (agent.last_number and not request.heard)
            or request.heard > agent.last_number
        ):
            agent = self._begin(request, host_id, agent)
        elif agent.poll is not None:
            _answer(agent, self._orders(agent, ()))
        while agent.given and agent.given[0].number <= request.heard:
            agent.given.popleft()
        register = tuple(self._to_register(request, host_id))
        is_new = bool(register) and register != agent.register
        agent.register = register
        wait_ns = min(request.wait_ms * 1_000_000, self._patience_ns() // 3)
        agent.poll = _Poll(done, self._now_ns + (0 if is_new else wait_ns))
        self._serve(agent)
        if is_new:
            self._give_up_waiting(agent)

    def _begin(self, request: AttendOrders, host_id: HostId, known: _Agent | None) -> _Agent:
        """Take up a session with all that rows owe its nodes."""
        if known is not None:
            _answer(known, self._orders(known, ()))
        state = self._state()
        agent = self._agents[host_id] = _Agent(request.session, request.heard, state.index)
        for node in state.nodes_of_host.keys(host_id):
            agent.queue.extend(_Item(effect, state.index) for effect in resume_node(state, node))
        self._stirred[host_id] = agent
        return agent

    def _to_register(self, request: AttendOrders, host_id: HostId) -> Iterator[NodeName]:
        """Take the health of nodes; yield those that the state takes for lost or another's."""
        state = self._state()
        for each in request.health:
            row = state.nodes.get(each.node)
            if row is None or row.host_id != host_id or row.lost_ns:
                yield each.node
            else:
                self.health[each.node] = Attendance(each.load_milli, each.free_memory_mib)

    # -- answers
    def _serve(self, agent: _Agent) -> None:
        """Answer a waiting agent when there are orders for it."""
        poll = agent.poll
        if poll is None or poll.is_read:
            return
        items = self._next_items(agent)
        if not items:
            return
        blobs = [blobs_of_effect(item.effect) for item in items]
        digests = [digest for each in blobs for _, digest, _ in each]
        if not digests:
            self._give(agent, poll, items, [{} for _ in items])
            return
        poll.is_read = True

        def read(contents: Sequence[bytes | None]) -> None:
            if agent.poll is not poll:
                return
            poll.is_read = False
            left = iter(contents)
            named = [{name: next(left) for name, _, _ in each} for each in blobs]
            self._give(agent, poll, items, named)

        self._read_blobs(digests, read)

    def _next_items(self, agent: _Agent) -> list[_Item]:
        """Return what the next answer holds: what was given and not heard, then what is new."""
        items: list[_Item] = []
        held: set[JobId] = set()
        size = 0
        for item in (*agent.given, *agent.queue):
            if item.index > self._commit:
                break
            # What follows about the same job would find nothing of it there.
            if item.not_before_ns > self._now_ns or _is_behind(item, held):
                held.add(_job_of(item))
                continue
            size += sum(length for _, _, length in blobs_of_effect(item.effect))
            if items and (size > ORDERS_BYTES or len(items) == ORDERS_MAX):
                break
            items.append(item)
        return items

    def _give(
        self,
        agent: _Agent,
        poll: _Poll,
        items: Sequence[_Item],
        contents: Sequence[Mapping[str, bytes | None]],
    ) -> None:
        """Number the orders that are complete, and answer with them."""
        state = self._state()
        orders: list[Numbered] = []
        gone: set[int] = set()
        held: set[JobId] = set()
        for item, named in zip(items, contents, strict=True):
            whole = {name: blob for name, blob in named.items() if blob is not None}
            is_lacking = len(whole) < len(named) and not self._is_lost(item)
            if is_lacking or _is_behind(item, held):
                item.not_before_ns = self._now_ns + RETRY_NS
                held.add(_job_of(item))
                continue
            order = order_of(state, item.effect, item.index, whole)
            if not item.number:
                gone.add(id(item))
            if order is None:
                continue
            if not item.number:
                agent.last_number += 1
                item.number = agent.last_number
                agent.given.append(item)
            orders.append(Numbered(item.number, item.index, order))
        if gone:
            agent.queue = deque(item for item in agent.queue if id(item) not in gone)
        if orders:
            _answer(agent, self._orders(agent, tuple(orders)))

    def _is_lost(self, item: _Item) -> bool:
        """Whether an attachment that is missing now has been so for too long."""
        if item.missing_ns is None:
            item.missing_ns = self._now_ns
        return self._now_ns - item.missing_ns >= LOST_NS

    def _orders(self, agent: _Agent, orders: tuple[Numbered, ...]) -> Orders:
        incarnation = self._state().cluster[1].incarnation
        return Orders(incarnation, self._term, orders, agent.register)

    def _give_up_waiting(self, agent: _Agent) -> None:
        poll = agent.poll
        if poll is not None and not poll.is_read and poll.until_ns <= self._now_ns:
            _answer(agent, self._orders(agent, ()))

    # -- time
    def on_tick(self, passed_ns: int) -> None:
        """Let time pass: answer who waited long enough, and look for silent agents."""
        self._now_ns += min(passed_ns, STEP_NS_MAX)
        if not self._leads:
            return
        if self._now_ns - self._swept_ns >= SWEEP_NS:
            self._swept_ns = self._now_ns
            for agent in self._agents.values():
                if agent.poll is not None:
                    self._serve(agent)
                    self._give_up_waiting(agent)
        if self._now_ns - self._checked_ns >= SILENCE_CHECK_NS:
            self._checked_ns = self._now_ns
            self._look_for_silence()

    def _patience_ns(self) -> int:
        """Return how long an agent may be silent. Source: slurm.conf(5) SlurmdTimeout."""
        state = self._state()
        timeout_s = settings_of(state).slurmd_timeout_s if 1 in state.config else 0
        return (timeout_s or 1 << 30) * 1_000_000_000

    def _look_for_silence(self) -> None:
        state, patience_ns = self._state(), self._patience_ns()
        found: list[tuple[NodeName, int]] = []
        for host_id in state.nodes_of_host.values():
            silence_ns = self._now_ns - max(self._heard_ns.get(host_id, 0), self._led_ns)
            if silence_ns < patience_ns:
                continue
            silent = self._agents.pop(host_id, None)
            if silent is not None:
                _answer(silent, self._orders(silent, ()))
            for node in state.nodes_of_host.keys(host_id):
                row = state.nodes[node]
                if row.boot_id and not row.lost_ns and len(found) < LOST_PER_CHECK_MAX:
                    found.append((node, silence_ns))
        for node, silence_ns in found:
            self.health.pop(node, None)
            self._mark_lost(node, silence_ns)


def _is_behind(item: _Item, held: set[JobId]) -> bool:
    """Whether it has to wait for an order of its job that is held up; a death never does."""
    return isinstance(item.effect, LaunchStep | SignalRun | SignalStep) and _job_of(item) in held


def _job_of(item: _Item) -> JobId:
    job_id: JobId = item.effect.job_id  # type: ignore[attr-defined]  # every effect of ORDERS has one
    return job_id


def _answer(agent: _Agent, orders: Orders | None) -> None:
    """Answer the agent's waiting request, if there is one."""
    poll, agent.poll = agent.poll, None
    if poll is not None:
        poll.done(orders)
