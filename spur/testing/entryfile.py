"""Entries in a file, one after another: for golden logs and benchmarks, where no ledger is meant.

Each is a length of four bytes, big-endian, and the entry without blobs in MessagePack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from spur.events.envelope import Entry

__all__ = ["append_entries", "read_entries"]

_FRAME = msgspec.msgpack.Decoder(tuple[int, int, int, bytes])
_LENGTH_SIZE = 4


def append_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Write entries behind those that are in the file."""
    with path.open("ab") as file:
        for entry in entries:
            frame = msgspec.msgpack.encode((entry.index, entry.term, entry.kind, entry.body))
            file.write(len(frame).to_bytes(_LENGTH_SIZE, "big") + frame)


def read_entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a file. Raises: ValueError when it ends within one."""
    with path.open("rb") as file:
        while head := file.read(_LENGTH_SIZE):
            size = int.from_bytes(head, "big")
            frame = file.read(size)
            if len(head) < _LENGTH_SIZE or len(frame) < size:
                raise ValueError(f"{path} ends within an entry")
            yield Entry(*_FRAME.decode(frame))
