"""The genesis record: the same bytes everywhere, and never believed when they changed."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from spur.consensus.faults import GenesisDamaged, NewerFormat, NotCreated
from spur.consensus.genesis import (
    Genesis,
    genesis_chain,
    genesis_entry,
    load_genesis,
    store_genesis,
)
from spur.events.envelope import EntryKind
from spur.testing.disk import SimDisk
from spur.testing.storage import GENESIS


def _stored(genesis: Genesis = GENESIS) -> SimDisk:
    disk = SimDisk()
    store_genesis(disk, genesis)
    return disk


def test_stored_genesis_comes_back() -> None:
    """What was written at birth is what every start reads."""
    assert load_genesis(_stored()) == GENESIS


def test_chain_begins_with_the_digest_of_the_record() -> None:
    """Replicas of two clusters share no chain value."""
    assert genesis_chain(GENESIS) == hashlib.sha256(GENESIS.encoded).digest()
    other = msgspec.structs.replace(GENESIS, cluster_id=b"another cluster!")
    assert genesis_chain(other) != genesis_chain(GENESIS)


def test_entry_1_is_the_first_membership() -> None:
    """The log begins with who founded the cluster."""
    entry = genesis_entry(GENESIS)
    assert (entry.index, entry.kind, entry.body) == (1, EntryKind.MEMBERSHIP, GENESIS.membership)


def test_directory_without_a_log_is_told() -> None:
    """Somebody starts a controller before creating one."""
    with pytest.raises(NotCreated, match="holds no log"):
        load_genesis(SimDisk())


def test_flipped_bit_anywhere_is_found() -> None:
    """Each bit of the file counts; the sentence says where good bytes are."""
    size = _stored().open("genesis").size()
    for offset in range(size):
        disk = _stored()
        disk.flip("genesis", offset, offset % 8)
        with pytest.raises(GenesisDamaged, match="every member of the cluster holds the same"):
            load_genesis(disk)


def test_shortened_genesis_is_found() -> None:
    """The file was copied in part."""
    disk = _stored()
    disk.open("genesis").truncate(20)
    with pytest.raises(GenesisDamaged):
        load_genesis(disk)


def test_genesis_of_a_newer_release_is_refused() -> None:
    """A downgrade does not read what it does not know."""
    with pytest.raises(NewerFormat, match="has format 2, written by a newer release"):
        load_genesis(_stored(msgspec.structs.replace(GENESIS, format=2)))
