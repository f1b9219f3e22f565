"""Carrying out what a plan says: each strike at its time, undone when its time is over.

What a person would do in the field is done here when a strike is over: a controller that was killed
with its parent is started again, as is one that ended because its disk failed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from spur.controller.parent import EXIT_DISK
from spur.testing.agentprocess import AgentProcess
from spur.testing.chaos.plan import Kind, Strike
from spur.testing.chaos.stage import AGENT_MARK_MIB, SECOND_MARK_MIB, Stage
from spur.testing.controllers import ControllerProcess
from spur.testing.live.load import Wrong
from spur.testing.small_disk import SmallDisk
from spur.values.errors import SpurError
from spur.wire.cluster import ReplicaInfo, ShowReplica

__all__ = ["Strikes"]

Undo = Callable[[], None]
Cut = tuple[int, int]

_MODULES = {
    Kind.KILL_FRONT: "spur.controller.frontmain",
    Kind.KILL_SCHEDULER: "spur.controller.scheduler",
    Kind.KILL_PROJECTOR: "spur.controller.projector",
}

_ENDS = frozenset(
    (Kind.KILL_FRONT, Kind.KILL_PARENT, Kind.KILL_CONTROLLER, Kind.RESTART_CONTROLLER)
)
"""These end what serves on a controller."""

ENDS_MAX = 2
"""How often a controller is ended before it has served again: on a machine so busy that a start
takes many seconds no cluster would ever be whole."""

FULL_MIB = (SECOND_MARK_MIB - 8, 0)
"""What is left of a disk that fills: a little below the second mark, or nothing."""

FULL_AGENT_MIB = (AGENT_MARK_MIB - 4, 0)


class Strikes:
    """What was done, and what is still to be undone."""

    def __init__(self, stage: Stage) -> None:
        self.counts: Counter[str] = Counter()
        """How often each kind struck."""
        self.told: list[str] = []
        """What was done when, for a look afterwards."""
        self._stage = stage
        self._rng = random.Random(stage.plan.seed)
        self._cuts: Counter[Cut] = Counter()
        self._steps: Counter[int] = Counter()
        self._down: set[int] = set()
        self._ended: Counter[int] = Counter()
        """How often each controller was ended since it was last seen to serve."""
        self._hand = asyncio.Lock()
        """One thing is done at a time, though their times overlap."""
        self._began_s = time.monotonic()

    async def rage(self) -> None:
        """Let every strike of the plan come. Raises: Wrong when a controller ended by itself."""
        self._began_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for strike in self._stage.plan.strikes:
                wait_s = self._began_s + strike.at_s - time.monotonic()
                await asyncio.sleep(max(0.0, wait_s))
                self._look_at_processes()
                tasks.create_task(self._strike(strike))

    def heal(self) -> None:
        """Start what ended."""
        self._stage.start()

    async def _strike(self, strike: Strike) -> None:
        target = strike.target or await self._leader()
        if strike.kind in _ENDS and not await self._may_end(target):
            self._tell(f"{strike.kind} {target} is spared: it has not served again")
            return
        async with self._hand:
            undo = await asyncio.to_thread(self._begin, strike, target)
        self.counts[strike.kind] += 1
        self._tell(f"{strike.kind} {target}" + (f" {strike.amount_ms}" * bool(strike.amount_ms)))
        await asyncio.sleep(strike.lasts_s)
        async with self._hand:
            await asyncio.to_thread(undo)
        self._tell(f"{strike.kind} {target} is over")

    def _tell(self, text: str) -> None:
        self.told.append(f"{time.monotonic() - self._began_s:7.2f} s  {text}")

    async def _leader(self) -> int:
        """Return the controller that leads, or any when none says so."""
        for number in self._stage.controller_hosts:
            found = await self._asked(number)
            if found is not None and found.leads:
                return number
        return self._rng.choice(self._stage.controller_hosts)

    async def _may_end(self, number: int) -> bool:
        """Whether a controller may be ended, or has been often enough since it served."""
        if await self._asked(number) is not None:
            self._ended[number] = 0
        if self._ended[number] >= ENDS_MAX:
            return False
        self._ended[number] += 1
        return True

    async def _asked(self, number: int) -> ReplicaInfo | None:
        """Return what a controller says of itself; None when it does not answer."""
        member = self._stage.member(number)
        with suppress(SpurError):
            async with self._stage.controllers.local(member, deadline_s=0.3) as client:
                answer = await client.ask(ShowReplica(), ReplicaInfo)
            return answer if isinstance(answer, ReplicaInfo) else None
        return None

    def _begin(self, strike: Strike, target: int) -> Undo:
        """Strike; return what undoes it."""
        stage = self._stage
        match strike.kind:
            case Kind.KILL_FRONT | Kind.KILL_SCHEDULER | Kind.KILL_PROJECTOR:
                _kill(_below(stage.member(target), _MODULES[strike.kind]))
                return _nothing
            case Kind.KILL_PARENT:
                return self._with_parent(target, lambda member: _kill([member.pid]))
            case Kind.KILL_CONTROLLER:
                return self._with_parent(target, ControllerProcess.kill)
            case Kind.RESTART_CONTROLLER:
                return self._with_parent(target, self._stop)
            case Kind.FREEZE_CONTROLLER:
                return self._freeze(_group(stage.member(target)))
            case Kind.CUT_CONTROLLER:
                return self._cut(_both(self._others(target), target))
            case Kind.DEAFEN_CONTROLLER:
                return self._cut([(other, target) for other in self._others(target)])
            case Kind.MUTE_CONTROLLER:
                return self._cut([(target, other) for other in self._others(target)])
            case Kind.FILL_DISK:
                return self._fill_controller()
            case Kind.STEP_CLOCK:
                return self._step(target, strike.amount_ms)
            case _:
                return self._begin_at_agent(strike.kind, target)

    def _begin_at_agent(self, kind: Kind, target: int) -> Undo:
        stage = self._stage
        if kind is Kind.KILL_LOGIN:
            return self._restarted(stage.login, AgentProcess.kill)
        if kind is Kind.CUT_LOGIN:
            some = self._rng.sample(stage.controller_hosts, self._rng.randint(1, 2))
            return self._cut(_both(some, stage.login_host))
        agent, host = stage.agents[target - 1], stage.agent_host(target)
        controllers = stage.controller_hosts
        match kind:
            case Kind.KILL_AGENT:
                return self._restarted(agent, AgentProcess.kill)
            case Kind.RESTART_AGENT:
                return self._restarted(agent, AgentProcess.stop)
            case Kind.FREEZE_AGENT:
                return self._freeze([] if agent.process is None else [agent.pid])
            case Kind.KILL_WARM:
                if agent.process is not None:
                    _kill(_children(agent.pid))
            case Kind.KILL_SUPERVISOR:
                living = stage.supervisors(agent)
                _kill(self._rng.sample(living, min(1, len(living))))
            case Kind.CUT_AGENT:
                return self._cut(_both(controllers, host))
            case Kind.DEAFEN_AGENT:
                return self._cut([(each, host) for each in controllers])
            case Kind.MUTE_AGENT:
                return self._cut([(host, each) for each in controllers])
            case Kind.CUT_BETWEEN_AGENTS:
                others = [stage.agent_host(each + 1) for each in range(len(stage.agents))]
                other = self._rng.choice([each for each in others if each != host])
                return self._cut(_both([other], host))
            case Kind.FILL_AGENT_DISK:
                return self._fill(stage.agent_disk, FULL_AGENT_MIB)
        return _nothing

    # -- controllers
    def _others(self, target: int) -> list[int]:
        return [number for number in self._stage.controller_hosts if number != target]

    def _with_parent(self, target: int, end: Callable[[ControllerProcess], object]) -> Undo:
        """End a controller with its parent, to be started again."""
        if target in self._down:
            return _nothing
        self._down.add(target)
        member = self._stage.member(target)
        if member.is_running:
            end(member)

        def undo() -> None:
            member.kill()
            member.start()
            self._down.discard(target)

        return undo

    def _stop(self, member: ControllerProcess) -> None:
        # It may be frozen: SIGTERM is then taken when it thaws, or it is killed.
        member.signal(signal.SIGTERM)

    def _look_at_processes(self) -> None:
        """See that nothing ended but those who were made to. Raises: Wrong."""
        stage = self._stage
        for number in stage.controller_hosts:
            member = stage.member(number)
            process = member.process
            if number in self._down or process is None or process.poll() is None:
                continue
            if process.returncode == EXIT_DISK and number == stage.plan.small_disk:
                continue
            raise Wrong(
                f"controller {number} ended by itself with status {process.returncode}:"
                f" {member.words()[-2000:]}"
            )
        for agent in (*stage.agents, stage.login):
            if agent.process is not None and agent.process.poll() is not None:
                raise Wrong(f"{agent.directory.name} ended by itself: {agent.words()[-2000:]}")

    # -- everything that is counted, since strikes overlap
    def _freeze(self, pids: list[int]) -> Undo:
        handles: list[int] = []
        for pid in pids:
            with suppress(ProcessLookupError):
                handles.append(os.pidfd_open(pid))
                signal.pidfd_send_signal(handles[-1], signal.SIGSTOP)

        def undo() -> None:
            for handle in handles:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGCONT)
                os.close(handle)

        return undo

    def _cut(self, cuts: list[Cut]) -> Undo:
        self._cuts.update(cuts)
        self._set_cuts()

        def undo() -> None:
            self._cuts.subtract(cuts)
            self._set_cuts()

        return undo

    def _set_cuts(self) -> None:
        self._stage.hosts.set_cuts({cut for cut, count in self._cuts.items() if count > 0})

    def _step(self, target: int, amount_ms: int) -> Undo:
        self._steps[target] += amount_ms
        self._stage.set_clock(target, self._steps[target])

        def undo() -> None:
            self._steps[target] -= amount_ms
            self._stage.set_clock(target, self._steps[target])

        return undo

    def _fill(self, disk: SmallDisk, left_mib: Sequence[int]) -> Undo:
        with suppress(OSError):
            disk.fill(self._rng.choice(left_mib))

        def undo() -> None:
            with suppress(FileNotFoundError):
                disk.clear()

        return undo

    def _fill_controller(self) -> Undo:
        stage = self._stage
        clear = self._fill(stage.disk, FULL_MIB)

        def undo() -> None:
            clear()
            member = stage.member(stage.plan.small_disk)
            process = member.process
            if process is not None and process.poll() == EXIT_DISK:
                member.kill()
                member.start()

        return undo

    def _restarted(self, agent: AgentProcess, end: Callable[[AgentProcess], object]) -> Undo:
        if agent.process is not None:
            _send(agent.pid, signal.SIGCONT)
            end(agent)

        def undo() -> None:
            if agent.process is None or agent.process.poll() is not None:
                agent.start()

        return undo


def _nothing() -> None:
    """Nothing has to be undone."""


def _both(side: list[int], other: int) -> list[Cut]:
    return [cut for each in side for cut in ((each, other), (other, each))]


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _kill(pids: list[int]) -> None:
    for pid in pids:
        _send(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in _children(pid):
        yield from _tree(child)


def _group(member: ControllerProcess) -> list[int]:
    """Return all processes of a controller, its parent first."""
    return list(_tree(member.pid)) if member.is_running else []


def _below(member: ControllerProcess, module: str) -> list[int]:
    """Return those of a controller's processes that run a module."""
    found = []
    for pid in _group(member):
        with suppress(OSError):
            if module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found
