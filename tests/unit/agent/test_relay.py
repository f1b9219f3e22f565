"""The relay of a host's commands: which polls are merged, and what each of their askers gets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from spur.agent.relay import Relay
from spur.client.client import Client
from spur.events.envelope import Actor
from spur.values.ids import JobId
from spur.wire.calls import Answered, Call, Reply
from spur.wire.controllers import ControllersFound
from spur.wire.declare import Request, encode_request
from spur.wire.jobs import CancelJob, JobFilter, QueryJobs

POLL = QueryJobs(JobFilter(), JobId(0), 1000)


class Leader(Client):
    """A client whose leader answers when the test says so, with the index that it then has."""

    def __init__(self) -> None:
        self.asked: list[tuple[Call, tuple[int, int], asyncio.Future[Reply]]] = []

    @property
    def position(self) -> tuple[int, int]:
        return 1, 5

    async def forward(self, call: Call, *, speaks_for: tuple[int, int], **_: Any) -> Reply:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.asked.append((call, speaks_for, future))
        return await future

    def answer(self, place: int, index: int) -> None:
        """Answer a call that was asked."""
        call, _, future = self.asked[place]
        future.set_result(Reply(call.number, 1, index, Answered(b"%d" % index)))


async def _heed(found: ControllersFound, client: Client) -> None:
    """Nobody says where the controllers are."""


class Host:
    """Commands of a host, on one relay."""

    def __init__(self) -> None:
        self.leader = Leader()
        self.relay = Relay(self.leader, _heed)
        self.replies: list[Reply] = []

    async def call(
        self, number: int, request: Request = POLL, *, uid: int = 7, at_least: int = 0
    ) -> None:
        """Let a command ask, and the relay do what it can."""
        actor = Actor(uid=uid, gid=uid, host_id=0, host_role="", via="socket")
        call = Call(number, bytes(16), 0, 1, at_least, None, encode_request(request))
        self.relay.handle(call, actor, self.replies.append)
        await asyncio.sleep(0)

    async def answered(self, place: int, index: int) -> list[tuple[int, int]]:
        """Let the leader answer; return number and index of all replies so far."""
        self.leader.answer(place, index)
        for _ in range(5):
            await asyncio.sleep(0)
        return [(reply.number, reply.index) for reply in self.replies]


def tell(story: Callable[[Host], Awaitable[None]]) -> None:
    async def run() -> None:
        host = Host()
        await story(host)
        await host.relay.close()

    asyncio.run(run())


def test_polls_that_come_while_one_is_under_way_are_answered_by_the_next() -> None:
    """Squeue runs in a loop in many shells of one user."""

    async def story(host: Host) -> None:
        for number in (1, 2, 3):
            await host.call(number)
        assert len(host.leader.asked) == 1
        assert await host.answered(0, 10) == [(1, 10)]
        assert len(host.leader.asked) == 2
        assert await host.answered(1, 12) == [(1, 10), (2, 12), (3, 12)]
        await host.call(4)
        assert len(host.leader.asked) == 3

    tell(story)


def test_nobody_is_shown_less_than_they_have_seen() -> None:
    """One of those who wait has just submitted: the shared answer must hold its job."""

    async def story(host: Host) -> None:
        for number, at_least in ((1, 3), (2, 4), (3, 9), (4, 0)):
            await host.call(number, at_least=at_least)
        await host.answered(0, 5)
        assert [call.at_least for call, _, _ in host.leader.asked] == [3, 9]

    tell(story)


def test_only_equal_polls_of_the_same_user_are_merged() -> None:
    """Others see other jobs, and a command must be carried out as often as it was given."""

    async def story(host: Host) -> None:
        await host.call(1)
        await host.call(2, uid=8)
        await host.call(3, QueryJobs(JobFilter(uids=(7,)), JobId(0), 1000))
        await host.call(4, CancelJob(JobId(1), None))
        await host.call(5, CancelJob(JobId(1), None))
        assert [(call.number, who) for call, who, _ in host.leader.asked] == [
            (1, (7, 7)),
            (2, (8, 8)),
            (3, (7, 7)),
            (4, (7, 7)),
            (5, (7, 7)),
        ]

    tell(story)
