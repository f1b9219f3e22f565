"""Spoiling the files of a controller that is stopped, as failing disks and people do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.consensus.ledger import Ledger
from spur.consensus.opening import identity_of
from spur.consensus.records import (
    SECTOR,
    Group,
    decode_header,
    encode_group,
    encode_records,
    read_group,
)
from spur.consensus.wal import Wal
from spur.events.envelope import (
    ENVELOPE_VERSION,
    Actor,
    Entry,
    EntryKind,
    Envelope,
    RequestMark,
    StoredEvent,
)

__all__ = [
    "LogPlace",
    "append_entry",
    "flip_bit",
    "flip_bit_of",
    "last_group",
    "tear_tail",
    "unknown_event",
    "wal_groups",
    "wal_segments",
]


def flip_bit(path: Path, offset: int) -> None:
    """Change one bit of a file, in place."""
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes((byte ^ 0x10,)))


def flip_bit_of(path: Path, text: bytes) -> int:
    """Change one bit of the first place where these bytes stand; return its offset.

    Raises: ValueError when they are nowhere.
    """
    offset = path.read_bytes().index(text)
    flip_bit(path, offset)
    return offset


# -- the write-ahead log
@dataclass(frozen=True)
class LogPlace:
    """A group of the write-ahead log, and where it is."""

    path: Path
    offset: int
    seed: int
    group: Group


def wal_segments(directory: Path) -> list[Path]:
    """Return the segments of a controller's write-ahead log, oldest first."""
    return sorted((directory / "wal").glob("*.wal"))


def wal_groups(path: Path) -> list[LogPlace]:
    """Return the groups of a segment, oldest first."""
    image = path.read_bytes()
    header, seed = decode_header(path.name, image[:SECTOR])
    places: list[LogPlace] = []
    offset, number = SECTOR, header.next_group
    while offset < len(image):
        group = read_group(path.name, image, offset, len(image), seed, number)
        if not isinstance(group, Group):
            break
        places.append(LogPlace(path, offset, seed, group))
        offset, number = group.end, number + 1
    return places


def last_group(directory: Path) -> LogPlace:
    """Return the newest group."""
    return wal_groups(wal_segments(directory)[-1])[-1]


def tear_tail(directory: Path) -> int:
    """Leave a group whose sync never returned, as a power failure does; return its offset.

    Its first sector reached the disk and the others did not, so nobody was told of its entry.
    """
    last = last_group(directory)
    known = last.group
    index = known.first + len(known.entries)
    entry = Entry(index, known.term, EntryKind.EVENTS, b"never acknowledged " * 100)
    data = encode_group(
        last.seed,
        known.number + 1,
        0,
        known.term,
        known.vote,
        known.commit,
        index,
        encode_records([entry]),
    )
    with last.path.open("r+b") as file:
        file.seek(known.end)
        file.write(data[:SECTOR])
    return known.end


def append_entry(directory: Path, me: int, body: bytes, *, also_to_ledger: bool = False) -> int:
    """Put an entry into a controller's log as a committed one; return its index."""
    disk = OsDisk(str(directory))
    genesis = load_genesis(disk)
    wal, found = Wal.open(disk, identity_of(genesis, me))
    entry = Entry(found.last + 1, found.hard.term, EntryKind.EVENTS, body)
    wal.write_group(None, entry.index, [entry], entry.index)
    wal.close()
    if also_to_ledger:
        ledger = Ledger.open(disk, genesis, covered_from=found.first)
        behind = [each for each in found.entries if each.index > ledger.last]
        ledger.append([*behind, entry])
        ledger.sync()
        ledger.close()
    return entry.index


def unknown_event(time_ns: int) -> bytes:
    """Return the body of an entry with an event that only a later release knows."""
    payload = msgspec.Raw(msgspec.msgpack.encode([1, "somewhere"]))
    envelope = Envelope(
        ENVELOPE_VERSION,
        time_ns,
        "job.teleport",
        RequestMark("uid:0", b"", 0, bytes(32), b"", 1, 1),
        Actor(uid=0, gid=0, host_id=0, host_role="controller", via="socket"),
        (StoredEvent("job.teleported", 1, 0, payload),),
        (),
    )
    return msgspec.msgpack.encode(envelope)
