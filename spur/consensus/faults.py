"""What can be wrong with a replica's directory; each message is one whole sentence.

OperatorFault
  DiskFault            the disk refused an operation (full, failing, missing file)
  DirectoryBusy        another process works on this directory
  NotCreated           there is no log here yet
  AlreadyCreated       there is one already
  ForeignDirectory     files of another cluster, disk or incarnation
  NewerFormat          written by a newer release
  RemovedFromCluster   the members go on without this one
  StorageDamaged       bytes are not what was written
    GenesisDamaged     the same bytes are on every member
    WalDamaged         not repairable: what was acknowledged may be missing
    WalLost            likewise: the vote is gone
        PromiseLost        likewise: entries that were acknowledged are missing
    LedgerDamaged      repaired from a peer's segment
    SnapshotDamaged    the older snapshot, or a peer's, takes its place
"""

from __future__ import annotations

import errno as errnos
import os

from spur.values.errors import OperatorFault

__all__ = [
    "AlreadyCreated",
    "DirectoryBusy",
    "DiskFault",
    "ForeignDirectory",
    "GenesisDamaged",
    "LedgerDamaged",
    "NewerFormat",
    "NotCreated",
    "PromiseLost",
    "RemovedFromCluster",
    "SnapshotDamaged",
    "StorageDamaged",
    "WalDamaged",
    "WalLost",
]


class DiskFault(OperatorFault):
    """The disk refused an operation; what it was asked to keep may not be there."""

    def __init__(self, operation: str, name: str, errno: int) -> None:
        self.operation = operation
        self.name = name
        self.errno = errno
        super().__init__(f"the disk refused to {operation} {name or '.'}: {os.strerror(errno)}")

    def __reduce__(self) -> tuple[type[DiskFault], tuple[str, str, int]]:
        return type(self), (self.operation, self.name, self.errno)

    @property
    def is_full(self) -> bool:
        """True when there is no room, rather than a failing device."""
        return self.errno in (errnos.ENOSPC, errnos.EDQUOT)


class DirectoryBusy(OperatorFault):
    """Another process holds the lock of this directory."""


class NotCreated(OperatorFault):
    """The directory holds no log."""


class AlreadyCreated(OperatorFault):
    """The directory holds a log already."""


class ForeignDirectory(OperatorFault):
    """The files belong to another cluster, disk or incarnation."""


class NewerFormat(OperatorFault):
    """The files were written by a newer release."""


class RemovedFromCluster(OperatorFault):
    """The cluster goes on without this replica."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        super().__init__(
            f"controller {node_id} was removed from the cluster, so it stops; its directory is of"
            " no use any more, and a host is added again with an empty one"
        )

    def __reduce__(self) -> tuple[type[RemovedFromCluster], tuple[int]]:
        return type(self), (self.node_id,)


class StorageDamaged(OperatorFault):
    """Bytes on the disk are not what was written there."""


class GenesisDamaged(StorageDamaged):
    """The genesis record can't be read; every member holds the same bytes."""


class WalDamaged(StorageDamaged):
    """The write-ahead log is damaged beyond a torn tail."""

    def __init__(self, name: str, offset: int, what: str) -> None:
        self.name = name
        self.offset = offset
        super().__init__(
            f"{name} is damaged at byte {offset}: {what}; what this replica acknowledged may be "
            "missing, so it does not start: remove this controller and add it again"
        )


class WalLost(StorageDamaged):
    """The write-ahead log, and with it the vote, is not there."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; without it this replica can't know how it voted, so it does not start: "
            "remove this controller and add it again"
        )


class PromiseLost(StorageDamaged):
    """The leader shows that entries are missing which this replica acknowledged."""

    def __init__(self, last: int) -> None:
        self.last = last
        super().__init__(
            f"this replica acknowledged entries behind {last} to its leader and lacks them, so it "
            "stops: remove this controller and add it again"
        )

    def __reduce__(self) -> tuple[type[PromiseLost], tuple[int]]:
        return type(self), (self.last,)


class LedgerDamaged(StorageDamaged):
    """A segment of the ledger is damaged or missing; a peer's bytes repair it."""

    def __init__(self, segment: int, offset: int, index: int, what: str) -> None:
        self.segment = segment
        self.offset = offset
        """Byte within the uncompressed segment; 0 where the whole of it is in doubt."""
        self.index = index
        """First index that can't be read."""
        self.what = what
        super().__init__(
            f"ledger segment {segment} is damaged at byte {offset} (entry {index}): {what}; "
            "it is to be repaired from a peer"
        )


class SnapshotDamaged(StorageDamaged):
    """A snapshot is damaged; the older one or a peer's takes its place."""

    def __init__(self, index: int, part: str, what: str) -> None:
        self.index = index
        self.part = part
        super().__init__(f"the snapshot at {index} is damaged in its {part}: {what}")
