"""What every engine of the replicated log is asked to be: a few nodes that append and apply bytes.

The rules in this folder speak only to `LogCluster`. Nodes are numbered from 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from spur.testing.edge import AppendRefused, AppendUnknown, NodeStatus

__all__ = [
    "CrashableCluster",
    "LogCluster",
    "SizeRefused",
    "commit",
    "commit_all",
    "live_leader",
    "wait_applied",
    "wait_leader",
]

_POLL_S = 0.02


class SizeRefused(Exception):
    """The engine does not run with this many nodes, and says so at the start."""


class LogCluster(Protocol):
    """A cluster of one engine."""

    nodes: Sequence[int]
    """The nodes, whether up or not."""
    patience_s: float
    """What this engine is given to elect a leader and answer; generous."""

    async def start(self, count: int) -> None:
        """Start `count` empty nodes. Raises: SizeRefused."""

    async def append(self, node: int, data: bytes) -> int:
        """Append through one node and return the data's place once that is acknowledged.

        Raises: AppendRefused when it was not appended and never will be; AppendUnknown when nobody
        can tell, a lack of any answer within `patience_s` included.
        """

    async def applied(self, node: int) -> list[bytes]:
        """Return what a node has applied, in order. Raises: AppendUnknown when it does not say."""

    async def status(self, node: int) -> NodeStatus | None:
        """Return what a node believes; None when it is down or does not answer."""

    def ended(self) -> str:
        """Return which nodes ended by themselves and their last words; empty when none did."""

    async def stop(self) -> None:
        """End all processes."""


class CrashableCluster(LogCluster, Protocol):
    """A cluster whose nodes are processes with a directory each."""

    def kill(self, node: int) -> None:
        """End the node's process as a crash would (SIGKILL)."""

    def restart(self, node: int) -> None:
        """Start a killed node on what its directory holds; return before it is ready."""

    def pause(self, node: int) -> None:
        """Freeze the process (SIGSTOP): its connections stay, but nothing moves."""

    def resume(self, node: int) -> None:
        """Let a frozen process go on."""

    def is_running(self, node: int) -> bool:
        """Return whether the node's process is there."""

    def last_words(self, node: int) -> str:
        """Return the end of what the node's process wrote for people."""

    def files(self, node: int) -> list[Path]:
        """Return the files in the node's directory."""


async def live_leader(cluster: LogCluster, among: Iterable[int] | None = None) -> int | None:
    """Return a node that says it leads, the one of the highest term; None when none does."""
    best: tuple[int, int] | None = None
    for node in cluster.nodes if among is None else among:
        status = await cluster.status(node)
        if status is not None and status.leads:
            best = max(best or (-1, -1), (status.term, node))
    return None if best is None else best[1]


async def wait_leader(cluster: LogCluster, among: Iterable[int] | None = None) -> int:
    """Wait until a node leads. Raises: AssertionError after the engine's patience."""
    nodes = list(cluster.nodes if among is None else among)
    deadline = _deadline(cluster)
    while _now() < deadline:
        leader = await live_leader(cluster, nodes)
        if leader is not None:
            return leader
        await asyncio.sleep(_POLL_S)
    raise AssertionError(
        f"none of {len(nodes)} live nodes leads {cluster.patience_s:.0f} s later{cluster.ended()}"
    )


async def commit(
    cluster: LogCluster,
    data: bytes,
    among: Iterable[int] | None = None,
    when: str = "at first",
) -> int:
    """Append through whoever leads, asking again only after a refusal; return the place.

    Raises: AssertionError, saying when it was, if the engine's patience ends before an answer.
    """
    nodes = list(cluster.nodes if among is None else among)
    deadline = _deadline(cluster)
    reason = "no node led"
    while _now() < deadline:
        leader = await live_leader(cluster, nodes)
        if leader is not None:
            try:
                return await cluster.append(leader, data)
            except AppendRefused as refusal:
                reason = f"refused: {refusal}"
            except AppendUnknown as unknown:
                # A change of leader under a busy machine; the log itself tells what became of it.
                reason = f"unknown: {unknown}"
                place = await _place(cluster, data, nodes)
                if place is not None:
                    return place
        await asyncio.sleep(_POLL_S)
    raise AssertionError(
        f"{when}, nothing is acknowledged within {cluster.patience_s:.0f} s: {reason}"
        f"{cluster.ended()}"
    )


async def _place(cluster: LogCluster, data: bytes, nodes: Sequence[int]) -> int | None:
    leader = await live_leader(cluster, nodes)
    if leader is None:
        return None
    try:
        applied = await cluster.applied(leader)
    except AppendUnknown:
        return None
    return applied.index(data) + 1 if data in applied else None


async def commit_all(
    cluster: LogCluster,
    pieces: Sequence[bytes],
    among: Iterable[int] | None = None,
    when: str = "at first",
) -> list[int]:
    """Commit one piece after the other and return their places.

    Raises: AssertionError, as `commit`, saying how many were acknowledged before.
    """
    return [
        await commit(cluster, data, among, f"{when}, after {number} of {len(pieces)} appends")
        for number, data in enumerate(pieces)
    ]


async def wait_applied(cluster: LogCluster, node: int, wanted: Sequence[bytes]) -> None:
    """Wait until a node has applied exactly `wanted`, in this order.

    Raises: AssertionError after the engine's patience, saying what differs.
    """
    deadline = _deadline(cluster)
    found: list[bytes] | None = None
    while _now() < deadline:
        try:
            found = await cluster.applied(node)
        except AppendUnknown:
            found = None
        if found == list(wanted):
            return
        await asyncio.sleep(_POLL_S)
    raise AssertionError(f"node {node} {_difference(found, wanted)}")


def _difference(found: Sequence[bytes] | None, wanted: Sequence[bytes]) -> str:
    if found is None:
        return "does not answer"
    if len(found) < len(wanted) and list(wanted[: len(found)]) == list(found):
        return f"has only the first {len(found)} of {len(wanted)} acknowledged"
    missing = [data for data in wanted if data not in found]
    extra = [data for data in found if data not in wanted]
    if not missing and not extra:
        return f"has the {len(wanted)} acknowledged in another order, or some twice"
    parts = []
    if missing:
        parts.append(
            f"lacks {len(missing)} of {len(wanted)} acknowledged, first {missing[0][:40]!r}"
        )
    if extra:
        parts.append(f"has {len(extra)} that nobody appended, first {extra[0][:40]!r}")
    return " and ".join(parts)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _deadline(cluster: LogCluster) -> float:
    return _now() + cluster.patience_s
