"""Snapshots: a state dumped and loaded is the same state."""

from __future__ import annotations

import msgspec
import pytest

from spur.projections.apply import apply
from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.projections.snapshot import HEADER, UnreadableSnapshot, dump, load
from spur.testing.builders import Cluster
from spur.wire.cluster import AddHost


def story() -> Cluster:
    """Return a cluster with rows in most tables."""
    cluster = Cluster()
    cluster.configure()
    for number in range(7):
        cluster.ask(AddHost(f"login{number}", "login"))
    return cluster


@pytest.mark.parametrize("rows_per_chunk", [1, 2, 1000])
def test_a_loaded_state_equals_the_dumped_one(rows_per_chunk: int) -> None:
    """A replica starts from a snapshot and goes on as the one that wrote it."""
    cluster = story()
    state = cluster.state
    loaded = load(dump(state, rows_per_chunk))
    assert (loaded.index, loaded.term, loaded.chain, loaded.time_ns) == (
        state.index,
        state.term,
        state.chain,
        state.time_ns,
    )
    assert state_digest(loaded) == state_digest(state)
    check_invariants(loaded)
    cluster.ask(AddHost("late", "login"))
    apply(loaded, cluster.entries[-1])
    assert state_digest(loaded) == state_digest(cluster.state)


def test_the_same_state_is_dumped_as_the_same_bytes() -> None:
    """Replicas compare the digests of their chunks, whatever order the rows came in."""
    state = story().state
    assert list(dump(load(dump(state, 3)), 2)) == list(dump(state, 2))


def test_an_uncommitted_tail_is_not_dumped() -> None:
    """A snapshot stands for committed entries alone."""
    cluster = Cluster(commits=False)
    with pytest.raises(ValueError, match="entries from 1 on are not committed"):
        next(dump(cluster.state, 10))


def spoiled(
    state_chunks: list[tuple[str, bytes]], number: int, data: bytes
) -> list[tuple[str, bytes]]:
    """Return the chunks with one of them replaced."""
    chunks = list(state_chunks)
    chunks[number] = (chunks[number][0], data)
    return chunks


def test_a_snapshot_of_other_tables_is_refused() -> None:
    """A release with other tables wrote it: the state is rebuilt from the log instead."""
    chunks = list(dump(story().state, 10))
    header = msgspec.msgpack.decode(chunks[0][1])
    header[4][0][1] += 1
    with pytest.raises(UnreadableSnapshot, match="not those of this release"):
        load(spoiled(chunks, 0, msgspec.msgpack.encode(header)))
    with pytest.raises(UnreadableSnapshot, match="'pots' is not known"):
        load([*chunks, ("pots", b"\x90")])


def test_a_snapshot_of_other_rows_is_refused() -> None:
    """A row has an element too many: nothing is guessed."""
    chunks = list(dump(story().state, 10))
    name = chunks[1][0]
    rows = msgspec.msgpack.decode(chunks[1][1])
    rows[0][1].append(0)
    with pytest.raises(UnreadableSnapshot, match=f"a row of '{name}' cannot be read"):
        load(spoiled(chunks, 1, msgspec.msgpack.encode(rows)))


def test_a_snapshot_without_a_header_is_refused() -> None:
    """An empty snapshot, and one that begins in the middle."""
    with pytest.raises(UnreadableSnapshot, match="no header"):
        load([])
    chunks = list(dump(story().state, 10))
    assert chunks[0][0] == HEADER
    with pytest.raises(UnreadableSnapshot):
        load(chunks[1:])
