"""An agent's attendance: it registers its nodes, asks the leader for orders, and passes them on.

Whoever leads answers; when the lead moves, the client finds it. The first question of a process
is numbered 0, and the leader then says everything that rows owe to its nodes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from spur.agent.host import HostFacts, boot_clock_ns, health_of
from spur.client.client import Client
from spur.server.agentsettings import Settings
from spur.server.once import Once
from spur.values.errors import Rejection, SpurError
from spur.values.ids import NodeName
from spur.wire.agents import SESSION_SIZE, AttendOrders, Orders
from spur.wire.declare import Done
from spur.wire.nodes import RegisterNode

__all__ = ["Attendance"]

PAUSE_S = 0.2
"""After a question that nobody answered, and between two empty answers that came at once."""

REGISTER_S = 10.0
"""How long a registration is tried at a time."""

REGISTER_AGAIN_S = 5.0
"""After a refusal: the node may be configured later."""

LATE_S = 3.0
"""Patience with an answer beyond the time that the leader was given."""

REGISTERS_AT_ONCE = 16

TELL_S = 3.0
"""How long a launch that came to nothing waits until the cluster knows the host's fault."""

SOURCE = "attendance"
SOURCE_FAULT = "fault of the host"


class Attendance:
    """Keeps the leader told that the agent is there, and the agent told what to do."""

    def __init__(
        self,
        nodes: tuple[NodeName, ...],
        *,
        settings: Settings,
        facts: HostFacts,
        client: Client,
        look: Callable[[], Awaitable[str]],
        take: Callable[[Orders], Awaitable[None]],
        registered: Callable[[NodeName], None],
        once: Once,
    ) -> None:
        """Prepare.

        `look` says why the host can launch nothing now, or nothing; `take` acts on orders;
        `registered` hears of nodes that are known again.
        """
        self._nodes = nodes
        self._settings = settings
        self._facts = facts
        self._client = client
        self._look = look
        self._take = take
        self._registered = registered
        self._once = once
        self._session = os.urandom(SESSION_SIZE)
        self._heard = 0
        self._fault = ""
        self._registering: dict[NodeName, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(REGISTERS_AT_ONCE)

    async def run(self) -> None:
        """Attend for as long as the agent lives."""
        self._register(self._nodes)
        patience_ns = int((self._settings.attend_ms / 1000 + LATE_S) * 1e9)
        while True:
            asked_ns = boot_clock_ns()
            orders = await self._ask()
            if boot_clock_ns() - asked_ns > patience_ns:
                # It was cut off, or stopped: the nodes may have been taken for lost meanwhile, and
                # orders so old may be about what was forgotten since.
                self._session, self._heard, orders = os.urandom(SESSION_SIZE), 0, None
                self._register(self._nodes)
            if orders is None:
                await asyncio.sleep(PAUSE_S)
                continue
            self._register(orders.register)
            if orders.orders:
                await self._take(orders)
                self._heard = orders.orders[-1].number
                continue
            # A launch looks for itself, and waits for nothing else.
            await self.look_again()
            if boot_clock_ns() - asked_ns < PAUSE_S * 1e9:
                await asyncio.sleep(PAUSE_S)

    async def look_again(self) -> None:
        """Look at the host, and register the nodes anew when a fault came or went."""
        try:
            fault = await self._look()
        except OSError as error:
            fault = f"spool of {os.uname().nodename}: {error.strerror}"
        if bool(fault) == bool(self._fault):
            return
        self._fault = fault
        if fault:
            self._once.report(SOURCE_FAULT, f"{fault}; nothing is launched")
        else:
            self._once.forget(SOURCE_FAULT)
        self._register(self._nodes)

    async def tell_fault(self, node: NodeName) -> None:
        """Look at the host; return once the leader knows what is wrong with it, or late."""
        await self.look_again()
        if (task := self._registering.get(node)) is not None:
            await asyncio.wait((task,), timeout=TELL_S)

    async def _ask(self) -> Orders | None:
        wait_s = self._settings.attend_ms / 1000
        request = AttendOrders(
            session=self._session,
            heard=self._heard,
            wait_ms=self._settings.attend_ms,
            health=health_of(self._nodes),
        )
        try:
            answer = await self._client.ask(
                request, Orders, attempt_s=wait_s + LATE_S, deadline_s=wait_s + 2 * LATE_S
            )
        except SpurError as fault:
            self._once.report(SOURCE, f"no orders: {fault}; what runs goes on")
            return None
        if isinstance(answer, Rejection):
            self._once.report(SOURCE, f"no orders: {answer.text}; what runs goes on")
            return None
        self._once.forget(SOURCE)
        return answer

    def _register(self, nodes: tuple[NodeName, ...]) -> None:
        """Begin to register nodes, unless that is going on."""
        for node in nodes:
            if node not in self._registering:
                task = asyncio.get_running_loop().create_task(self._register_one(node))
                self._registering[node] = task

    async def _register_one(self, node: NodeName) -> None:
        source = f"registration of {node}"
        try:
            while True:
                request = self._registration(node)
                try:
                    async with self._slots:
                        answer = await self._client.ask(request, Done, deadline_s=REGISTER_S)
                except SpurError as fault:
                    self._once.report(source, f"{source}: {fault}; it is tried again")
                    await asyncio.sleep(PAUSE_S)
                    continue
                if not isinstance(answer, Rejection):
                    if request.fault == self._fault:
                        break
                    continue
                self._once.report(source, f"{source} is refused: {answer.text}")
                await asyncio.sleep(REGISTER_AGAIN_S)
        finally:
            del self._registering[node]
        self._once.forget(source)
        self._registered(node)

    def _registration(self, node: NodeName) -> RegisterNode:
        facts = self._facts
        return RegisterNode(
            node=node,
            boot_id=facts.boot_id.encode(),
            cpus=facts.cpus,
            memory_mib=facts.memory_mib,
            gpu_kind=facts.gpu_kind,
            gpus=facts.gpus,
            address=self._settings.address,
            fault=self._fault,
            machine=facts.machine,
        )
