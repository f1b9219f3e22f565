"""Commands of this host's users: taken on a Unix socket, passed on to whoever leads.

The kernel says who is calling; the host's certificate says that it may speak for them, and the
cluster judges how far (LOG-CONTRACT 6.1). A call keeps its id and its `since`, so it is carried
out once however often either side asks again. Whoever calls over TLS is no user of this host and is
refused; what they may bring is a stream.

Equal polls of one user are merged: those that come while one is under way are answered together by
the next, which begins when all of them were there and so shows each what it would have seen alone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from spur.client.client import Client
from spur.client.faults import Unreachable
from spur.events.envelope import Actor
from spur.server.once import Once
from spur.server.sessions import Respond
from spur.values.errors import PeerFault, SpurError
from spur.values.ids import JobId
from spur.wire.calls import Call, Refused, Reply
from spur.wire.controllers import ControllersFound, FindControllers
from spur.wire.declare import encode_request
from spur.wire.jobs import CancelJob, QueryJobs
from spur.wire.registry import UnreadableRequest, decode_request

__all__ = ["Relay"]

LOG = logging.getLogger("spurd")

UNSENT_S = 1.5
"""How long a call waits for a controller that takes it. Less than a command waits for us."""

UNANSWERED_S = 30.0
"""How long a call that was taken waits for its answer."""

LOOK_S = 10.0
"""Between two looks at where the cluster stands, and its controllers are: a new command begins
from there, and what is older than the cluster's memory of requests would be refused."""

LOOK_AGAIN_S = 0.2

LOOKING_S = 2.0


POLL_BYTES_MAX = 1024
"""A longer request is passed on unseen."""


class _Poll(NamedTuple):
    """What is asked, and for whom: equal ones have the same answer."""

    uid: int
    gid: int
    request: bytes


class _Waiting(NamedTuple):
    call: Call
    respond: Respond


class Relay:
    """Passes calls on."""

    def __init__(
        self, client: Client, found: Callable[[ControllersFound, Client], Awaitable[None]]
    ) -> None:
        """Prepare; `found` hears where the controllers are."""
        self._client = client
        self._found = found
        self._tasks: set[asyncio.Task[None]] = set()
        self._once = Once(LOG.warning)
        self._polls: dict[_Poll, list[_Waiting]] = {}
        """Polls under way, and who waits for the next one."""
        self._down = ""
        """Why no controller takes calls; while it is known, a command is told so at once."""

    def position(self) -> tuple[int, int]:
        """Return the highest (incarnation, index) seen, for a command's welcome."""
        return self._client.position

    async def find(self) -> None:
        """Return once a controller has said where the cluster stands: only then may one listen."""
        while not self.position()[1]:
            await self._look()
            if not self.position()[1]:
                await asyncio.sleep(LOOK_AGAIN_S)

    async def keep_up(self) -> None:
        """Go on looking where the cluster stands."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self._look()

    async def close(self) -> None:
        """Give up what is on its way; whoever asked asks again."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def handle(self, call: Call, actor: Actor, respond: Respond) -> None:
        """Pass a call on, and the reply back."""
        if actor.via != "socket":
            refused = Refused("not-permitted", "an agent answers no calls of other hosts")
            respond(self._reply(call, refused))
            return
        if self._down:
            respond(self._reply(call, Refused("not-leader", self._down)))
            return
        if not _is_poll(call):
            self._begin(self._pass_on(call, actor, respond))
            return
        poll = _Poll(actor.uid, actor.gid, call.request)
        if poll in self._polls:
            self._polls[poll].append(_Waiting(call, respond))
        else:
            self._polls[poll] = [_Waiting(call, respond)]
            self._begin(self._ask_on(poll, actor))

    async def cancel(self, job_id: JobId, who: Actor) -> None:
        """Cancel a job in its user's name, however long no controller answers."""
        incarnation, index = self.position()
        request = encode_request(CancelJob(job_id, None))
        call = Call(0, secrets.token_bytes(16), index, incarnation, index, None, request)
        while True:
            with suppress(SpurError):
                await self._client.forward(
                    call,
                    speaks_for=(who.uid, who.gid),
                    unsent_s=UNANSWERED_S,
                    deadline_s=UNANSWERED_S,
                )
                return
            await asyncio.sleep(LOOK_AGAIN_S)

    # -- inside

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask_on(self, poll: _Poll, actor: Actor) -> None:
        """Ask a poll for those who wait for it, as long as there are any."""
        while waiting := self._polls[poll]:
            self._polls[poll] = []
            newest = max(waiting, key=lambda each: (each.call.incarnation, each.call.at_least))
            reply = await self._reply_to(newest.call, actor)
            for each in waiting:
                each.respond(replace(reply, number=each.call.number))
        del self._polls[poll]

    async def _pass_on(self, call: Call, actor: Actor, respond: Respond) -> None:
        respond(await self._reply_to(call, actor))

    async def _reply_to(self, call: Call, actor: Actor) -> Reply:
        try:
            reply = await self._client.forward(
                call,
                speaks_for=(actor.uid, actor.gid),
                unsent_s=UNSENT_S,
                deadline_s=UNANSWERED_S,
            )
        except Unreachable as fault:
            reply = self._reply(call, Refused("not-leader", str(fault)))
            if not self._down:
                self._down = str(fault)
                self._begin(self._watch_for_one())
        except PeerFault as fault:
            reply = self._reply(call, Refused("protocol", str(fault)))
        except SpurError as fault:
            reply = self._reply(call, Refused("ask-again", str(fault)))
        return reply

    def _reply(self, call: Call, refused: Refused) -> Reply:
        incarnation, index = self.position()
        return Reply(number=call.number, incarnation=incarnation, index=index, outcome=refused)

    async def _watch_for_one(self) -> None:
        """Look until a controller answers again."""
        while True:
            if await self._look():
                self._down = ""
                return
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _look(self) -> bool:
        """Ask a controller where the cluster stands; return whether one answered."""
        try:
            answer = await self._client.ask(
                FindControllers(), ControllersFound, deadline_s=LOOKING_S
            )
        except SpurError as fault:
            self._once.report("cluster", f"no controller is found: {fault}")
            return False
        self._once.forget("cluster")
        if isinstance(answer, ControllersFound):
            await self._found(answer, self._client)
        return True


def _is_poll(call: Call) -> bool:
    """Whether a call asks for the queue, as `watch squeue` does on many hosts."""
    if len(call.request) > POLL_BYTES_MAX:
        return False
    try:
        return isinstance(decode_request(call.request), QueryJobs)
    except UnreadableRequest:
        return False
