"""spurd's shell: it carries the machine's actions out, and tells the machine how they went.

Whatever blocks runs in a thread; one attempt's actions are done one after the other, because the
machine says the next when it hears of the last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

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
from spur.agent.attendance import Attendance
from spur.agent.host import HostFacts, read_facts
from spur.agent.machine import Machine, Stage
from spur.agent.manifest import AttemptName, Manifest, Site
from spur.agent.processes import kill_leftovers
from spur.agent.reports import Reporter
from spur.agent.room import Room
from spur.agent.spool import Spool
from spur.agent.supervisors import Supervisors
from spur.client.client import Client
from spur.server.agentsettings import Settings
from spur.server.once import Once
from spur.values.ids import NodeName
from spur.wire.agents import LaunchOrder, LaunchStepOrder, Orders

__all__ = ["Agent"]

LOG = logging.getLogger("spurd")

DISK_THREADS = 4

LAUNCHED_AFTER_S = 0.1
"""A job that ends sooner than this after its start is reported once, not twice."""

SETTLED_AFTER_S = 10.0
"""From the leader's first answer: what was found unclaimed and is not ordered again is void."""

KEEP_DIRECTORY_S = 30.0
"""How long a directory stays after all of it was told: an order that was on its way meets it."""

KEEP_NAME_S = 300.0
"""How long the name of an attempt is known after its directory went."""

HELD_S = 10.0
"""How long an order for a step waits for the order for its run."""

CLAIM_AGAIN_S = 1.0

SWEEP_ROUNDS = 20
SWEEP_PAUSE_S = 0.05

T = TypeVar("T")


class Agent:
    """The nodes of one agent, from its start to its end."""

    def __init__(self, directory: Path, settings: Settings, client: Client) -> None:
        """Take over the spool.

        Raises: OperatorFault when another agent has it, or it can't be used; OSError when its disk
        does not take what is to be kept there.
        """
        self.facts: HostFacts = read_facts(settings)
        self.nodes = tuple(NodeName(node) for node in settings.nodes)
        self.spool = Spool(directory / settings.spool)
        self._room = Room(self.spool.free_bytes, settings.disk_mark_mib)
        self._settings = settings
        self._client = client
        self._relay = str((directory / settings.socket).absolute())
        self._once = Once(LOG.warning)
        self._disk = ThreadPoolExecutor(DISK_THREADS, "disk")
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_settled = False
        self._is_closed = False
        self._cluster_name = ""
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            outboxes = {node: self.spool.outbox(node) for node in self.nodes}
        except OSError:
            self.spool.close()
            raise
        self.machine = Machine(self.facts.boot_id, outboxes)
        self.supervisors = Supervisors(
            self.spool, claimed=self._claimed, gone=self._gone, say=LOG.warning
        )
        self.guests: dict[AttemptName, set[bytes]] = {}
        """Digests of the keys by which others than its own srun may speak with an attempt."""
        self._reporters = {
            node: Reporter(
                node,
                self.machine,
                client=client,
                keep=self.spool.keep_report,
                disk=self._in_thread,
                perform=self.perform,
                once=self._once,
            )
            for node in self.nodes
        }
        self._attendance = Attendance(
            self.nodes,
            settings=settings,
            facts=self.facts,
            client=client,
            look=lambda: self._in_thread(self._room.fault),
            take=self._take,
            registered=lambda node: self.perform(self.machine.relist(node)),
            once=self._once,
        )

    async def run(self) -> None:
        """Serve the nodes until cancelled; what runs goes on without the agent.

        Raises: ExceptionGroup with what was not foreseen.
        """
        found = await self._in_thread(self.spool.scan)
        mine = [each for each in found if each.name.node in self._reporters]
        for each in found:
            if each.name.node not in self._reporters:
                LOG.warning("%s lies in the spool; its node is not served here", each.name)
        await self._attendance.look_again()
        self.perform(self.machine.recover(mine))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._attendance.run())
                for reporter in self._reporters.values():
                    group.create_task(reporter.run())
                await self._failed
        finally:
            await self._close()

    async def _close(self) -> None:
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.supervisors.close()
        self._disk.shutdown()
        self.spool.close()

    # -- what is heard

    async def _take(self, orders: Orders) -> None:
        for numbered in orders.orders:
            if isinstance(numbered.order, LaunchOrder | LaunchStepOrder):
                self._cluster_name = numbered.order.cluster_name
        self.perform(self.machine.take(orders))
        if not self._is_settled:
            self._is_settled = True
            self._later(SETTLED_AFTER_S, self._settle)

    def _settle(self) -> None:
        self.perform(self.machine.settled())

    def _claimed(self, name: AttemptName) -> None:
        """Hear that user code runs; said a little later, when it may have ended already."""
        self._later(LAUNCHED_AFTER_S, partial(self._is_claimed, name))

    def _is_claimed(self, name: AttemptName) -> None:
        if name in self.machine:
            self.perform(self.machine.claimed(name))

    def _gone(self, name: AttemptName) -> None:
        """Hear that a supervisor has nothing more to do, and look at what it left."""
        self._begin(self._look(name))

    async def _look(self, name: AttemptName) -> None:
        found = await self._in_thread(lambda: self.spool.found(name))
        self.perform(self.machine.gone(found))

    # -- what is done

    def perform(self, actions: list[Action]) -> None:
        """Begin to do what the machine says, in its order."""
        for action in actions:
            match action:
                case Say():
                    LOG.info("%s", action.text)
                case Send():
                    self._reporters[action.node].wake()
                case Watch():
                    self.supervisors.watch(action.name)
                case Prepare():
                    self._begin(self._prepare(action))
                case Fork():
                    self._begin(self._fork(action.name))
                case TakeClaim():
                    self._begin(self._take_claim(action))
                case Kill():
                    self._begin(self.supervisors.kill(action))
                case Signal():
                    self._begin(self.supervisors.signal(action))
                case Admit():
                    self.guests.setdefault(action.name, set()).add(action.key_digest)
                case Notify():
                    self._begin(self.supervisors.notify(action))
                case Steer():
                    self._begin(self.supervisors.steer(action))
                case Sweep():
                    self._begin(self._sweep(action.name))
                case Hold():
                    self._later(HELD_S, partial(self._not_held, action.name))
                case Forget():
                    self._later(KEEP_DIRECTORY_S, partial(self._remove, action.name))

    def _not_held(self, name: AttemptName) -> None:
        self.perform(self.machine.not_held(name))

    async def _prepare(self, action: Prepare) -> None:
        name = action.name
        manifest = Manifest(
            boot_id=self.facts.boot_id,
            incarnation=action.incarnation,
            term=action.term,
            index=action.index,
            order=action.order,
            site=self._site(name.node),
        )
        try:
            await self._in_thread(lambda: self._write_manifest(name, manifest))
        except OSError as error:
            # The cluster knows the node's fault before it places the job anew.
            await self._attendance.tell_fault(name.node)
            why = f"nothing can be launched: {error}"
            self.perform(self.machine.not_prepared(name, why))
        else:
            self.perform(self.machine.prepared(name))

    def _write_manifest(self, name: AttemptName, manifest: Manifest) -> None:
        if fault := self._room.fault():
            raise OSError(fault)
        self.spool.prepare(name, manifest)

    def _site(self, node: NodeName) -> Site:
        controller = self._settings.controllers[0]
        is_known = self._cluster_name and not controller.startswith("unix:")
        return Site(
            relay=self._relay,
            slurm_conf=self._settings.slurm_conf,
            host_name=node if self._settings.own_host_names else "",
            working_cluster=f"{self._cluster_name}:{controller}:9728:109" if is_known else "",
        )

    async def _fork(self, name: AttemptName) -> None:
        try:
            await self.supervisors.fork(name)
        except OSError as error:
            self.perform(self.machine.not_forked(name, str(error)))
        else:
            self.perform(self.machine.forked(name))

    async def _take_claim(self, action: TakeClaim) -> None:
        name = action.name
        while True:
            try:
                won = await self._in_thread(lambda: self.spool.take_claim(name, action.incarnation))
            except OSError as error:
                self.perform(self.machine.not_voided(name, f"its spool takes no claim: {error}"))
                if self.machine.stage_of(name) is not Stage.VOIDING:
                    return
                await asyncio.sleep(CLAIM_AGAIN_S)
            else:
                self.perform(self.machine.voided(name, won=won))
                return

    async def _sweep(self, name: AttemptName) -> None:
        """Kill until nothing is left; what can't be killed is said, and not waited for."""
        for _ in range(SWEEP_ROUNDS):
            sweep = partial(kill_leftovers, name.job_id, name.node, self._relay)
            if not await self._in_thread(sweep):
                break
            await asyncio.sleep(SWEEP_PAUSE_S)
        else:
            LOG.warning("job %d on %s has processes that do not die", name.job_id, name.node)
        self.perform(self.machine.swept(name))

    def _remove(self, name: AttemptName) -> None:
        """Remove what was told, unless it has to be told again or its supervisor is still there."""
        if self.spool.holder(name) is not None:
            self._later(KEEP_DIRECTORY_S, partial(self._remove, name))
        elif self.machine.is_told(name):
            self.guests.pop(name, None)
            self._begin(self._in_thread(partial(self.spool.remove, name)))
            self._later(KEEP_NAME_S, partial(self.machine.forget, name))

    # -- tools

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if not self._failed.done():
                self._failed.set_exception(error)

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, self._unless_closed, work)

    def _unless_closed(self, work: Callable[[], None]) -> None:
        if not self._is_closed:
            work()
