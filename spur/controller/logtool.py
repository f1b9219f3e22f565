"""Reading a controller's log where it lies: what `spur log` executes.

The directory may belong to a running controller. It is read as it is at this moment, and nothing in
it is changed: the ledger is opened as a view.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import spur.events
from spur.consensus.blobs import BlobState, BlobStore
from spur.consensus.disk import OsDisk
from spur.consensus.genesis import Genesis, genesis_chain, load_genesis
from spur.consensus.ledger import Ledger
from spur.controller.logrows import Row, entry_row, event_rows, format_time, full_row
from spur.events.codec import decode_envelope
from spur.events.envelope import Entry, EntryKind, chain_next
from spur.projections.apply import follow
from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.projections.state import State, new_state
from spur.values.errors import OperatorFault

__all__ = ["export", "head", "show", "show_events", "verify"]

_READ_BYTES = 4 << 20
"""Bytes of bodies read from the ledger at once."""


class _Log(NamedTuple):
    disk: OsDisk
    genesis: Genesis
    ledger: Ledger


@contextmanager
def _open(directory: str) -> Iterator[_Log]:
    """Open the log of a directory for reading alone."""
    if not os.path.isdir(directory):
        raise OperatorFault(f"{directory!r} is no directory; nothing was read")
    for module in pkgutil.iter_modules(spur.events.__path__, "spur.events."):
        importlib.import_module(module.name)
    disk = OsDisk(directory)
    genesis = load_genesis(disk)
    ledger = Ledger.view(disk, genesis)
    try:
        yield _Log(disk, genesis, ledger)
    finally:
        ledger.close()


@contextmanager
def _blobs(log: _Log) -> Iterator[BlobStore]:
    blobs = BlobStore.view(log.disk)
    try:
        yield blobs
    finally:
        blobs.close()


def _entries(ledger: Ledger, first: int, last: int) -> Iterator[Entry]:
    while first <= last:
        batch = ledger.read(first, last, _READ_BYTES)
        yield from batch
        first = batch[-1].index + 1


def _range(ledger: Ledger, first: int | None, last: int | None) -> tuple[int, int]:
    """Return the indexes that were asked for, as far as they are here.

    Raises: OperatorFault when the first one is older than what this replica keeps.
    """
    if first is not None and first < ledger.first:
        raise OperatorFault(
            f"entry {first} is not here: this replica has history from entry {ledger.first} on"
        )
    least = ledger.first if first is None else first
    return least, ledger.last if last is None else min(last, ledger.last)


def show(
    directory: str, *, first: int | None = None, last: int | None = None, tail: int | None = None
) -> Iterator[Row]:
    """Yield a row for each entry, oldest first; `tail` keeps only so many of the newest."""
    for entry in _chosen(directory, first, last, tail):
        yield entry_row(entry)


def show_events(
    directory: str, *, first: int | None = None, last: int | None = None, tail: int | None = None
) -> Iterator[Row]:
    """Yield a row for each event of the chosen entries."""
    for entry in _chosen(directory, first, last, tail):
        yield from event_rows(entry)


def _chosen(
    directory: str, first: int | None, last: int | None, tail: int | None
) -> Iterator[Entry]:
    with _open(directory) as log:
        least, most = _range(log.ledger, first, last)
        if tail is not None:
            least = max(least, most - tail + 1)
        yield from _entries(log.ledger, least, most)


def head(directory: str) -> Row:
    """Return where the log ends: what a person writes down to compare it later."""
    with _open(directory) as log:
        return {
            "cluster": log.genesis.cluster_id.hex(),
            "era": log.genesis.era,
            "first": log.ledger.first,
            "index": log.ledger.last,
            "term": log.ledger.last_term,
            "time": _last_time(log.ledger),
            "chain": log.ledger.chain.hex(),
        }


def _last_time(ledger: Ledger) -> str | None:
    """Return the stamp of the last entry that has one."""
    for index in range(ledger.last, ledger.first - 1, -1):
        (entry,) = ledger.read(index, index, 1)
        if entry.kind == EntryKind.EVENTS:
            return format_time(decode_envelope(entry.body, index)[0].time_ns)
    return None


def verify(directory: str, *, replay: bool = False) -> Row:
    """Read every byte of the log and return what was found whole.

    Checks: each record and its place in the chain, each seal, that this release can read every
    entry, and each blob. With `replay` the state is rebuilt, compared with every checkpoint, and
    its invariants are checked.

    Raises: OperatorFault naming the first thing that is wrong and its place.
    """
    with _open(directory) as log, _blobs(log) as blobs:
        report = log.ledger.verify()
        if damaged := blobs.verify():
            raise OperatorFault(
                f"{len(damaged)} attachments are damaged, the first with digest"
                f" {damaged[0].hex()}; a running controller finds and fetches them from its peers"
            )
        missing: set[bytes] = set()
        entries = _missing_noted(
            _entries(log.ledger, log.ledger.first, log.ledger.last), blobs, missing
        )
        state = _replay(log, entries) if replay else None
        deque(entries, maxlen=0)  # decodes each that a replay has not taken already
        row: Row = {
            "cluster": log.genesis.cluster_id.hex(),
            "first": report.first,
            "index": report.last,
            "chain": report.chain.hex(),
            "segments": report.segments,
            "entries": report.entries,
            "missing": [f"{first} to {last}" for first, last in report.missing],
            "torn": log.ledger.cut,
            "attachments": len(blobs.held()),
            "attachments_missing": len(missing),
        }
        if state is not None:
            row["state"] = state_digest(state).hex()
        return row


def _missing_noted(
    entries: Iterable[Entry], blobs: BlobStore, missing: set[bytes]
) -> Iterator[Entry]:
    """Yield the entries, noting the attachments that are neither here nor known to be erased."""
    for entry in entries:
        if entry.kind == EntryKind.EVENTS:
            for ref in decode_envelope(entry.body, entry.index)[0].attachments:
                if blobs.state(ref.digest) is BlobState.MISSING:
                    missing.add(ref.digest)
        yield entry


def _replay(log: _Log, entries: Iterable[Entry]) -> State:
    """Rebuild the state from entry 1 on."""
    if log.ledger.first > 1:
        raise OperatorFault(
            f"this replica has history from entry {log.ledger.first} on; the state can be rebuilt"
            " only where entry 1 is; nothing was replayed"
        )
    genesis = log.genesis
    state = new_state(
        genesis.encoded, cluster_id=genesis.cluster_id, incarnation=genesis.incarnation
    )
    follow(state, entries)
    check_invariants(state)
    return state


def export(directory: str, *, first: int | None = None, last: int | None = None) -> Iterator[Row]:
    """Yield everything about each entry except the content of its attachments."""
    with _open(directory) as log, _blobs(log) as blobs:
        least, most = _range(log.ledger, first, last)
        chain = log.ledger.chain_at(least - 1) if least > 1 else genesis_chain(log.genesis)
        for entry in _entries(log.ledger, least, most):
            chain = chain_next(chain, entry)
            yield full_row(entry, chain, lambda digest: blobs.state(digest) is BlobState.GONE)
