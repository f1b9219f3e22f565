"""Rules of storage: an acknowledgement means a disk, and damage is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from spur.testing.edge import AppendUnknown
from tests.contract.log.cluster import (
    CrashableCluster,
    commit,
    commit_all,
    wait_applied,
    wait_leader,
)
from tests.contract.log.engines import Engine
from tests.contract.log.pages import can_see_pages, is_on_disk
from tests.contract.log.stories import crash_story

SETTLE_S = 3.0
"""The kernel writes by itself only what has been dirty for 30 s."""


def test_acknowledged_data_is_on_disk(crashable: Engine, tmp_path: Path) -> None:
    """Power may fail after an acknowledgement: the data is on the disks of a majority."""
    if not can_see_pages(tmp_path):
        pytest.skip("only root on a real disk can see which pages the kernel has written")

    async def tell(cluster: CrashableCluster) -> None:
        pieces = [b"%09d\t" % number for number in range(4000)]
        await commit(cluster, b"".join(pieces))
        deadline = asyncio.get_running_loop().time() + SETTLE_S
        while True:
            safe = {
                node
                for node in cluster.nodes
                if any(holds(path, pieces) for path in cluster.files(node))
            }
            if len(safe) > len(cluster.nodes) // 2:
                return
            late = asyncio.get_running_loop().time() > deadline
            assert not late, (
                f"{SETTLE_S:.0f} s after the acknowledgement the data is on "
                f"{len(safe)} of {len(cluster.nodes)} disks, elsewhere only in memory"
            )
            await asyncio.sleep(0.1)

    crash_story(crashable, tmp_path, tell)


def holds(path: Path, pieces: Sequence[bytes]) -> bool:
    """Return whether a file of a running node has the pieces on the disk."""
    try:
        return is_on_disk(path, pieces)
    except FileNotFoundError:
        return False  # the node renamed or removed it meanwhile


def test_flipped_bit_is_noticed(crashable: Engine, tmp_path: Path) -> None:
    """A bit of an old entry flips on one node's disk: it refuses or repairs, never serves it."""
    pieces = [b"account-%04d holds 0000100000" % number for number in range(20)]

    async def tell(cluster: CrashableCluster) -> None:
        await commit_all(cluster, pieces)
        for node in cluster.nodes:
            await wait_applied(cluster, node, pieces)
        leader = await wait_leader(cluster)
        victim = next(node for node in cluster.nodes if node != leader)
        cluster.kill(victim)
        flipped = [flip_a_bit(path, pieces[7]) for path in cluster.files(victim)]
        assert any(flipped), "the entry was found in no file of the node"
        cluster.restart(victim)
        deadline = asyncio.get_running_loop().time() + cluster.patience_s
        while asyncio.get_running_loop().time() < deadline:
            if not cluster.is_running(victim):
                assert cluster.last_words(victim).strip(), "the node ended and did not say why"
                return
            try:
                applied = await cluster.applied(victim)
            except AppendUnknown:
                applied = []
            altered = [data for data in applied if data not in pieces]
            assert not altered, f"the node serves {altered[0].decode()!r}, which nobody appended"
            if applied == pieces:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the node neither serves the entries nor ends with a reason")

    crash_story(crashable, tmp_path, tell)


def flip_a_bit(path: Path, data: bytes) -> bool:
    """Turn the 1 of the data into a 0 wherever the file holds it; return whether it does."""
    content = path.read_bytes()
    altered = content.replace(data, data.replace(b"holds 0000100000", b"holds 0000000000"))
    path.write_bytes(altered)
    return altered != content


def test_torn_last_write_is_survived(crashable: Engine, tmp_path: Path) -> None:
    """Power fails in the middle of the last write: the node starts again and catches up."""
    pieces = [b"record %04d " % number + b"." * 4000 for number in range(20)]

    async def tell(cluster: CrashableCluster) -> None:
        # What one sync covered is torn as one, so the last piece is a write of its own everywhere.
        last = len(pieces) - 1
        for first, end in ((0, last), (last, len(pieces))):
            await commit_all(cluster, pieces[first:end])
            for node in cluster.nodes:
                await wait_applied(cluster, node, pieces[:end])
        # All restart, so that no leader remembers the acknowledgement that the tear takes back.
        for node in cluster.nodes:
            cluster.kill(node)
        victim = cluster.nodes[-1]
        torn = [tear_off(path, pieces[-1]) for path in cluster.files(victim)]
        assert any(torn), "the last entry was found in no file of the node"
        for node in cluster.nodes:
            cluster.restart(node)
        await wait_up(cluster, victim)
        rest = [node for node in cluster.nodes if node != victim]
        await commit(cluster, b"afterwards", rest, "after the restart")
        await wait_applied(cluster, victim, [*pieces, b"afterwards"])

    crash_story(crashable, tmp_path, tell)


async def wait_up(cluster: CrashableCluster, node: int) -> None:
    """Wait until a node answers. Raises: AssertionError with what it said when it ended instead."""
    deadline = asyncio.get_running_loop().time() + cluster.patience_s
    while await cluster.status(node) is None:
        said = cluster.last_words(node).strip().splitlines()[-1:]
        assert cluster.is_running(node), f"the node does not start: {said}"
        assert asyncio.get_running_loop().time() < deadline, f"the node does not answer: {said}"
        await asyncio.sleep(0.05)


def tear_off(path: Path, data: bytes) -> bool:
    """Undo the write of the data's second half and of all behind it; return whether it is there.

    A file that had been filled with zeros ahead gets them back; one that grew is cut.
    """
    content = path.read_bytes()
    at = content.rfind(data[:11])  # a format may put bytes of its own into the rest
    if at < 0:
        return False
    sector = (at + len(data) // 2) // 512 * 512
    was_zeroed = content.endswith(bytes(4096))
    path.write_bytes(content[:sector] + bytes(len(content) - sector) * was_zeroed)
    return True
