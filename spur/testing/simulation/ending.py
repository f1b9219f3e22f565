"""What must be true of every member's files once everything was healed.

history      every entry can be read from the ledger, the same on each member, since whatever
             was damaged came back from peers
blobs        what a row refers to is there, whole
debts        no row owes an effect any more
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.consensus.blobs import BlobState
from spur.consensus.faults import LedgerDamaged
from spur.projections.attachments import live_blobs
from spur.projections.react import resume
from spur.testing.simulation.checks import Checks
from spur.testing.simulation.member import SimMember, Violation

__all__ = ["check_ending", "is_whole"]


def is_whole(member: SimMember) -> bool:
    """Look at every byte, as a person with `spur log verify` would, and ask for what is damaged."""
    replica = member.replica
    storage = replica.storage
    try:
        storage.ledger.verify()
    except LedgerDamaged as damage:
        replica.repair.want_segment(damage.segment)
    for digest in storage.blobs.verify():
        replica.repair.want_blob(digest)
    return not replica.repair.wanted and not storage.ledger.missing


def check_ending(members: Sequence[SimMember], checks: Checks) -> None:
    """Check the files of healed members. Raises: Violation."""
    for member in members:
        _check_history(member, checks)
        _check_blobs(member)
    owed = resume(members[0].front.state)
    if owed:
        raise Violation(f"{len(owed)} effects are still owed, the first: {owed[0]}")


def _check_history(member: SimMember, checks: Checks) -> None:
    ledger = member.replica.storage.ledger
    try:
        report = ledger.verify()
    except LedgerDamaged as damage:
        raise Violation(f"member {member.me} was not repaired: {damage}") from damage
    if report.first != 1 or report.last != checks.last or report.missing:
        raise Violation(
            f"member {member.me} has history from {report.first} to {report.last}, lacking"
            f" {report.missing}; {checks.last} entries are committed"
        )
    for entry in ledger.read(1, report.last, 1 << 60):
        if checks.committed_by_index[entry.index] != (entry.term, entry.kind, entry.body):
            raise Violation(f"member {member.me} has another entry {entry.index} in its ledger")


def _check_blobs(member: SimMember) -> None:
    blobs = member.replica.storage.blobs
    for digest in live_blobs(member.front.state):
        if blobs.state(digest) is not BlobState.HELD or blobs.get(digest) is None:
            raise Violation(
                f"member {member.me} lacks a blob that a job refers to: {digest.hex()[:16]} is"
                f" {blobs.state(digest).value}"
            )
