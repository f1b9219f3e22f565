"""Rules of crashes: what was acknowledged outlives them, and too few nodes acknowledge nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from spur.testing.edge import AppendRefused, AppendUnknown
from tests.contract.log.cluster import (
    CrashableCluster,
    SizeRefused,
    commit,
    commit_all,
    wait_applied,
    wait_leader,
)
from tests.contract.log.engines import Engine
from tests.contract.log.stories import crash_story, numbered

SILENCE_S = 3.0
"""How long a minority is watched: long enough for several elections of every engine."""


async def try_append(cluster: CrashableCluster, node: int, data: bytes) -> bool:
    """Return whether one append was acknowledged within the time a minority is watched."""
    try:
        await asyncio.wait_for(cluster.append(node, data), SILENCE_S)
    except (AppendRefused, AppendUnknown, TimeoutError):
        return False
    return True


def test_killed_leader_is_replaced(crashable: Engine, tmp_path: Path) -> None:
    """The leader dies (kill -9): another leads, and nothing that was acknowledged is lost."""

    async def tell(cluster: CrashableCluster) -> None:
        before, after = numbered(20, "before"), numbered(20, "after")
        await commit_all(cluster, before)
        leader = await wait_leader(cluster)
        cluster.kill(leader)
        rest = [node for node in cluster.nodes if node != leader]
        await commit_all(cluster, after, rest, "with the leader dead")
        for node in rest:
            await wait_applied(cluster, node, before + after)
        cluster.restart(leader)
        await wait_applied(cluster, leader, before + after)

    crash_story(crashable, tmp_path, tell)


def test_leader_killed_under_load_loses_nothing(crashable: Engine, tmp_path: Path) -> None:
    """The leader dies among appends under way: all that it acknowledged is on the others."""

    async def tell(cluster: CrashableCluster) -> None:
        leader = await wait_leader(cluster)
        acknowledged: list[bytes] = []
        enough = asyncio.Event()

        async def client(name: int) -> None:
            for number in range(1000):
                data = b"%d-%d" % (name, number)
                try:
                    await cluster.append(leader, data)
                except (AppendRefused, AppendUnknown):
                    return
                acknowledged.append(data)
                if len(acknowledged) == 50:
                    enough.set()

        clients = asyncio.gather(*(client(name) for name in range(8)))
        try:
            await asyncio.wait_for(enough.wait(), cluster.patience_s)
        except TimeoutError:
            raise AssertionError(
                f"of 8 clients' appends only {len(acknowledged)} are acknowledged within "
                f"{cluster.patience_s:.0f} s"
            ) from None
        cluster.kill(leader)
        await clients
        rest = [node for node in cluster.nodes if node != leader]
        await commit(cluster, b"afterwards", rest, "with the leader dead")
        applied = await cluster.applied(await wait_leader(cluster, rest))
        lost = [data for data in acknowledged if data not in applied]
        assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged are lost"
        assert len(set(applied)) == len(applied), "an entry was applied twice"

    crash_story(crashable, tmp_path, tell)


def test_whole_cluster_restarts(crashable: Engine, tmp_path: Path) -> None:
    """All nodes die at once (kill -9) and start again: all is there, and commits go on."""

    async def tell(cluster: CrashableCluster) -> None:
        before, after = numbered(20, "before"), numbered(5, "after")
        await commit_all(cluster, before)
        for node in cluster.nodes:
            cluster.kill(node)
        for node in cluster.nodes:
            cluster.restart(node)
        await commit_all(cluster, after, when="after the restart")
        for node in cluster.nodes:
            await wait_applied(cluster, node, before + after)

    crash_story(crashable, tmp_path, tell)


def test_frozen_majority_acknowledges_nothing(crashable: Engine, tmp_path: Path) -> None:
    """Two of three nodes hang: the third acknowledges nothing, and they all go on afterwards."""

    async def tell(cluster: CrashableCluster) -> None:
        before = numbered(5)
        await commit_all(cluster, before)
        leader = await wait_leader(cluster)
        rest = [node for node in cluster.nodes if node != leader]
        for node in rest:
            cluster.pause(node)
        acknowledged = await try_append(cluster, leader, b"in the minority")
        for node in rest:
            cluster.resume(node)
        assert not acknowledged, "one of three nodes acknowledged an append by itself"
        await commit(cluster, b"together again", when="with all nodes awake again")
        applied = await cluster.applied(await wait_leader(cluster))
        assert applied[:5] == before
        assert applied.count(b"in the minority") <= 1

    crash_story(crashable, tmp_path, tell)


@pytest.mark.parametrize("size", [2, 4], ids=["2 nodes", "4 nodes"])
def test_half_is_no_majority(crashable: Engine, tmp_path: Path, size: int) -> None:
    """Half of an even cluster is no majority: it acknowledges nothing (or the size is refused)."""

    async def tell(cluster: CrashableCluster) -> None:
        await commit(cluster, b"by all")
        leader = await wait_leader(cluster)
        others = [node for node in cluster.nodes if node != leader]
        for node in others[: size // 2]:
            cluster.kill(node)
        acknowledged = await try_append(cluster, leader, b"by half")
        assert not acknowledged, f"{size - size // 2} of {size} nodes acknowledged an append"

    try:
        crash_story(crashable, tmp_path, tell, nodes=size)
    except SizeRefused:
        return


def test_frozen_leader_is_not_believed_afterwards(crashable: Engine, tmp_path: Path) -> None:
    """A leader hangs, another takes over, the first wakes: all logs end the same."""

    async def tell(cluster: CrashableCluster) -> None:
        await commit(cluster, b"under the first leader")
        old = await wait_leader(cluster)
        rest = [node for node in cluster.nodes if node != old]
        cluster.pause(old)
        await commit(cluster, b"under the second leader", rest, "with the leader frozen")
        cluster.resume(old)
        by_old = await try_append(cluster, old, b"asked of the first leader")
        await commit(cluster, b"at the end", when="with the first leader awake again")
        applied = await cluster.applied(await wait_leader(cluster))
        assert applied[:2] == [b"under the first leader", b"under the second leader"]
        if by_old:
            lost = applied.count(b"asked of the first leader") != 1
            assert not lost, "the woken leader acknowledged an append that is not in the log"
        for node in cluster.nodes:
            await wait_applied(cluster, node, applied)

    crash_story(crashable, tmp_path, tell)
