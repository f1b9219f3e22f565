"""`scontrol create`, `update` and `delete` of partitions. Source: scontrol(1)."""

from __future__ import annotations

from spur.slurm.partitionupdates import BadPartition, read_partition
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.config import SlurmParameter
from spur.values.errors import Rejection
from spur.values.ids import PartitionName
from spur.wire.declare import Done
from spur.wire.partitions import CreatePartition, DeletePartition, UpdatePartition
from spur_cli.slurm.session import Session

__all__ = ["create_partition", "delete_partition", "update_partition"]

_WORDS = {"not-permitted": "Invalid user id", "already-exists": "Invalid partition name specified"}


def _sentence(refused: Rejection) -> str:
    return _WORDS.get(refused.code) or sentence_of(refused)


def _read(
    pairs: list[tuple[str, str]], ending: str
) -> tuple[PartitionName, tuple[SlurmParameter, ...]]:
    try:
        name, changes = read_partition(pairs)
    except BadPartition as error:
        lines = [error_line("scontrol", line) for line in error.lines]
        raise SlurmError(*lines, f"{ending}: No error") from error
    return PartitionName(name), changes


def update_partition(session: Session, pairs: list[tuple[str, str]]) -> int:
    """Change a partition."""
    name, changes = _read(pairs, "slurm_update error")
    if not changes:
        raise SlurmError("No changes specified")
    answer = session.ask(UpdatePartition(name, None, changes), Done)
    if isinstance(answer, Rejection):
        raise SlurmError(f"slurm_update error: {_sentence(answer)}")
    return 0


def create_partition(session: Session, pairs: list[tuple[str, str]]) -> int:
    """Make a partition."""
    name, changes = _read(pairs, "Error creating the partition")
    if not name:
        raise SlurmError("PartitionName must be given.")
    if name.upper() == "DEFAULT":
        raise SlurmError('PartitionName cannot be "DEFAULT".')
    answer = session.ask(CreatePartition(name, changes), Done)
    if isinstance(answer, Rejection):
        raise SlurmError(f"Error creating the partition: {_sentence(answer)}")
    return 0


def delete_partition(session: Session, typed: str, name: str) -> int:
    """Take a partition away; `typed` is what Slurm names it by when it cannot."""
    answer = session.ask(DeletePartition(PartitionName(name)), Done)
    if isinstance(answer, Rejection):
        raise SlurmError(f"delete_partition {typed}: {_sentence(answer)}")
    return 0
