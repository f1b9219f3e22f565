"""Who hears the end of a supervisor, whatever becomes of the warm process that forked it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from spur.agent import supervisors as module
from spur.agent.manifest import AttemptName
from spur.agent.spool import Spool
from spur.agent.supervisors import Supervisors
from spur.agent.warm import WarmNotice
from spur.values.ids import JobId, NodeName

NAME = AttemptName(NodeName("n1"), JobId(5), 0, None, 1)


class DyingWarm:
    """A warm process that forks, says so, and is dead before anybody has looked."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost

    @classmethod
    async def start(
        cls, on_notice: Callable[[WarmNotice], None], on_lost: Callable[[], None]
    ) -> DyingWarm:
        return cls(on_lost)

    async def fork(self, directory: str) -> int:
        loop = asyncio.get_running_loop()
        forked: asyncio.Future[int] = loop.create_future()
        loop.call_soon(forked.set_result, 7)
        loop.call_soon(self._on_lost)
        return await forked

    def close(self) -> None:
        """Let it end."""


def test_supervisor_of_a_warm_process_that_died_at_once_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent was stopped for a while; what it hears then is the fork, and that death."""
    monkeypatch.setattr(module, "Warm", DyingWarm)
    gone: list[AttemptName] = []

    async def fork() -> None:
        with closing(Spool(tmp_path)) as spool:
            supervisors = Supervisors(
                spool, claimed=lambda name: None, gone=gone.append, say=lambda text: None
            )
            await supervisors.fork(NAME)
            supervisors.close()

    asyncio.run(fork())
    assert gone == [NAME]
