"""Rules of appending: what is acknowledged is in the log, once, whole and in one order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.contract.log.cluster import LogCluster, commit, commit_all, wait_applied, wait_leader
from tests.contract.log.engines import Engine
from tests.contract.log.stories import numbered, story

AWKWARD = (
    b"",
    b"\n",
    b"\x00",
    b"\x0a\x0a\x0a\x0a",
    b"10",
    b'{"term": 99, "command": {}}\n',
    b"\x80\x04K\x05.",
    b"\xff" * 300,
    bytes(range(256)),
    "Grüße, 世界".encode(),
)


def test_single_node_commits(engine: Engine, tmp_path: Path) -> None:
    """A cluster of one node needs nobody else to commit."""

    async def tell(cluster: LogCluster) -> None:
        pieces = numbered(10)
        assert await commit_all(cluster, pieces) == list(range(1, 11))
        await wait_applied(cluster, 1, pieces)

    story(engine, tmp_path, tell, nodes=1)


def test_all_nodes_apply_in_one_order(engine: Engine, tmp_path: Path) -> None:
    """Every node applies the acknowledged entries, all of them, in the same order."""

    async def tell(cluster: LogCluster) -> None:
        pieces = numbered(60)
        places = await commit_all(cluster, pieces)
        assert places == list(range(1, 61)), f"the places of 60 entries are {places}"
        for node in cluster.nodes:
            await wait_applied(cluster, node, pieces)

    story(engine, tmp_path, tell)


def test_concurrent_appends_get_their_own_answers(engine: Engine, tmp_path: Path) -> None:
    """64 clients append at once; each is answered once, with the place of its own entry."""

    async def tell(cluster: LogCluster) -> None:
        leader = await wait_leader(cluster)
        pieces = numbered(64)
        answers = await asyncio.gather(
            *(cluster.append(leader, data) for data in pieces), return_exceptions=True
        )
        places = [answer for answer in answers if isinstance(answer, int)]
        assert len(places) == 64, f"{len(places)} of 64 concurrent appends were answered"
        applied = await cluster.applied(leader)
        wrong = sum(
            applied[place - 1 : place] != [data] for place, data in zip(places, pieces, strict=True)
        )
        assert wrong == 0, f"{wrong} of 64 answers name the place of another entry"
        assert len(applied) == 64, f"64 appends are {len(applied)} entries"

    story(engine, tmp_path, tell)


def test_any_bytes_come_back_as_they_were(engine: Engine, tmp_path: Path) -> None:
    """Data is bytes: empty, line ends, zeros, other formats' text; none is changed or cut."""

    async def tell(cluster: LogCluster) -> None:
        await commit_all(cluster, AWKWARD)
        for node in cluster.nodes:
            await wait_applied(cluster, node, AWKWARD)

    story(engine, tmp_path, tell)


@pytest.mark.parametrize("size_kib", [200, 1024], ids=["200 KiB", "1 MiB"])
def test_large_entry_commits(engine: Engine, tmp_path: Path, size_kib: int) -> None:
    """An entry of 200 KiB, and one of 1 MiB, commits, and so does what follows it."""

    async def tell(cluster: LogCluster) -> None:
        large = bytes(48 + number % 10 for number in range(size_kib * 1024))
        await commit(cluster, large, when=f"with {size_kib} KiB")
        await commit(cluster, b"behind it", when=f"behind {size_kib} KiB")
        for node in cluster.nodes:
            await wait_applied(cluster, node, [large, b"behind it"])

    story(engine, tmp_path, tell)
