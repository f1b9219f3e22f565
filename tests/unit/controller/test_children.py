"""Children of a front as real processes: started, started again, and hurried when they lag."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spur.controller.children import LAG_BYTES_MAX, Child, ChildRow
from spur.events.envelope import Actor, Entry
from spur.testing.loops import Run
from spur.wire.calls import Call, Reply
from spur.wire.followers import Cycled
from spur.wire.jobs import StartView

LAZY = """\
import asyncio, os, sys
from pathlib import Path
from spur.controller.follower import FrontLink

async def main():
    directory, channel, niceness = Path(sys.argv[1]), int(sys.argv[3]), sys.argv[5]
    link = FrontLink(
        channel,
        on_entries=lambda entries, commit: None,
        on_role=lambda role: None,
        on_history=lambda ask: None,
    )
    await link.open(1, 0)
    with (directory / "lives").open("a") as file:
        file.write(niceness + "\\n")
    while not (directory / "well").exists():
        await asyncio.sleep(0.01)
    link.reached(int((directory / "well").read_text()))
    await asyncio.sleep(60)

asyncio.run(main())
"""
"""A child that takes entries and does nothing with them."""

BODY = bytes(1 << 20)
READ_MAX = 3


class Front:
    """A log of megabytes, of which the child gets the first entries."""

    commit = READ_MAX
    incarnation = 1

    def foresaw(self, starts: tuple[StartView, ...]) -> None:
        """Take no notice."""

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None:
        raise AssertionError("the child asks nothing")

    def cycled(self, cycle: Cycled) -> None:
        """Take no note of it."""

    def read(self, first: int, bytes_max: int, done: Callable[[Sequence[Entry]], None]) -> None:
        if first <= READ_MAX:  # the rest is still being read from a disk
            done([Entry(first, 1, 2, BODY)])


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory in which a program is that can be run as a child."""
    (tmp_path / "lazy_child.py").write_text(LAZY)
    (tmp_path / "lives").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    return tmp_path


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  # another process is waited for
            await asyncio.sleep(0.01)


def test_a_child_that_lags_far_gives_way_no_longer(run: Run, directory: Path) -> None:
    """A projector can't keep up at low priority: once at normal one, until it has caught up."""

    def lives() -> list[str]:
        return (directory / "lives").read_text().split()

    async def story() -> None:
        front = Front()
        row = ChildRow(name="projector", module="lazy_child", niceness=5)
        child = Child(row, directory, front, front.read, logging.getLogger("test"))
        try:
            await _until(lambda: lives() == ["5"] and child.stream is not None)
            await _until(lambda: child.stream is not None and child.stream.lag_bytes > 0)
            front.commit = LAG_BYTES_MAX // len(BODY)
            child.committed()
            assert child.starts == 1
            front.commit += 1
            child.committed()
            await _until(lambda: lives() == ["5", "0"])
            await _until(lambda: child.stream is not None and child.stream.lag_bytes > 0)
            child.committed()
            (directory / "new").write_text(str(front.commit))
            (directory / "new").rename(directory / "well")
            await _until(lambda: child.stream is not None and child.stream.lag_bytes == 0)
            child.committed()
            os.kill(child.pid, 9)
            await _until(lambda: lives() == ["5", "0", "5"])
        finally:
            await child.stop()

    run(story())
