"""The supervisors of an agent: forked by the warm process, watched, told to signal and to end.

A supervisor outlives the agent and the warm process that it came from. One that the warm process
can't tell about any more is watched by its process id, which its lock names.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from spur.agent import control
from spur.agent.actions import Kill, Notify, Signal, Steer
from spur.agent.manifest import AttemptName, directory_name, parse_directory_name
from spur.agent.notices import Claimed, Ended
from spur.agent.spool import Spool
from spur.agent.warm import Lost, Warm, WarmNotice

__all__ = ["Supervisors"]

FORKS_MAX = 3
"""Tries to have one supervisor forked, each by a new warm process."""

UNHEARD_S = 5.0
"""How long a supervisor may leave an order unheard before it is killed itself."""

PAUSE_S = 0.05

LOOK_S = 0.5
"""Between two looks at a supervisor that has not said its process id yet."""

ORDERS_AT_ONCE = 8


class Supervisors:
    """All supervisors of one agent."""

    def __init__(
        self,
        spool: Spool,
        *,
        claimed: Callable[[AttemptName], None],
        gone: Callable[[AttemptName], None],
        say: Callable[[str], None],
    ) -> None:
        """Prepare. `claimed` and `gone` hear of each supervisor, from the loop, perhaps twice."""
        self._spool = spool
        self._claimed = claimed
        self._gone = gone
        self._say = say
        self._warm: Warm | None = None
        self._warming = asyncio.Lock()
        self._told: set[AttemptName] = set()
        """Whose end the warm process tells."""
        self._settled: set[AttemptName] = set()
        """Of these, who said that its outcome is on the disk: that it is gone tells no more."""
        self._watched: dict[AttemptName, int] = {}
        """File of the process, for those whose end nobody tells."""
        self._looking: set[AttemptName] = set()
        self._threads = ThreadPoolExecutor(ORDERS_AT_ONCE, "orders")

    async def fork(self, name: AttemptName) -> None:
        """Have a supervisor begin. Raises: OSError when no process can be made."""
        directory = str(self._spool.directory(name))
        for left in reversed(range(FORKS_MAX)):
            try:
                warm = await self._get_warm()
                await warm.fork(directory)
            except (OSError, Lost) as error:
                if not left:
                    raise OSError(f"no supervisor can be forked: {error}") from error
                await asyncio.sleep(PAUSE_S)
            else:
                self._note(name, warm)
                return

    def watch(self, name: AttemptName) -> None:
        """Hear the end of a supervisor that the warm process knows nothing of."""
        if name in self._told or name in self._watched or name in self._looking:
            return
        holder = self._spool.holder(name)
        if holder is None:
            self._gone(name)
            return
        try:
            process = os.pidfd_open(holder) if holder else -1
        except ProcessLookupError:
            process = -1
        loop = asyncio.get_running_loop()
        if process < 0:
            # It holds its lock and has not written its id, or has just ended.
            self._looking.add(name)
            loop.call_later(LOOK_S, self._look_again, name)
            return
        self._watched[name] = process
        loop.add_reader(process, self._unwatch, name)

    async def kill(self, order: Kill) -> None:
        """Tell a supervisor to end what it runs; one that does not listen is killed."""
        name = order.name
        message = control.Kill(str(order.state), order.kill_wait_s)
        if await self._deliver(name, message):
            return
        holder = self._spool.holder(name)
        if holder:
            self._say(f"the supervisor in {directory_name(name)} does not listen; it is killed")
            with suppress(ProcessLookupError):
                os.kill(holder, signal.SIGKILL)

    async def signal(self, order: Signal) -> None:
        """Tell a supervisor to send a signal; one that does not listen has nobody to send it to."""
        await self._deliver(order.name, control.Signal(order.signal, order.mains_only, order.index))

    async def notify(self, order: Notify) -> None:
        """Tell a supervisor to say something; one that does not listen has nobody to say it to."""
        await self._deliver(order.name, control.Notify(order.text, order.index))

    async def steer(self, order: Steer) -> None:
        """Tell a supervisor how to go on; one that does not listen ends already."""
        message = control.Steer(order.paused, order.limit_ns, order.index)
        await self._deliver(order.name, message)

    def close(self) -> None:
        """Let go of all supervisors; they go on."""
        for name in tuple(self._watched):
            self._let_go(name)
        if self._warm is not None:
            self._warm.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- inside

    def _note(self, name: AttemptName, warm: Warm) -> None:
        """Remember whose end the warm process tells: none, if it has ended since it said so."""
        if self._warm is warm:
            self._told.add(name)
        else:
            self.watch(name)

    async def _get_warm(self) -> Warm:
        async with self._warming:
            if self._warm is None:
                self._warm = await Warm.start(self._noticed, self._lost)
            return self._warm

    def _noticed(self, notice: WarmNotice) -> None:
        """Hear how far a supervisor has come."""
        name = parse_directory_name(os.path.basename(notice.directory))
        if name is None:
            return
        if isinstance(notice, Claimed):
            self._claimed(name)
            return
        if isinstance(notice, Ended):
            self._settled.add(name)
        else:
            self._told.discard(name)
            if name in self._settled:
                self._settled.discard(name)
                return
        self._gone(name)

    def _lost(self) -> None:
        """Watch what the warm process would have told of."""
        self._say("the warm process ended; another one is started when it is needed")
        self._warm = None
        told, self._told = self._told, set()
        self._settled.clear()
        for name in told:
            self.watch(name)

    async def _deliver(self, name: AttemptName, message: control.Order) -> bool:
        """Return whether a supervisor has heard an order, or is gone."""
        loop = asyncio.get_running_loop()
        directory = str(self._spool.directory(name))
        until_s = loop.time() + UNHEARD_S
        while loop.time() < until_s:
            try:
                await loop.run_in_executor(self._threads, control.deliver, directory, message)
            except OSError:
                if self._spool.holder(name) is None:
                    return True
                await asyncio.sleep(PAUSE_S)
            else:
                return True
        return False

    def _look_again(self, name: AttemptName) -> None:
        self._looking.discard(name)
        self.watch(name)

    def _unwatch(self, name: AttemptName) -> None:
        self._let_go(name)
        self._gone(name)

    def _let_go(self, name: AttemptName) -> None:
        process = self._watched.pop(name)
        asyncio.get_running_loop().remove_reader(process)
        os.close(process)
