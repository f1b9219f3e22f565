"""Names of output and input files: what their patterns stand for.

    slurm-%j.out     ->  slurm-5.out
    %x_%A_%4a.txt    ->  fit_5_0003.txt
    a\\%j             ->  a%j: a backslash anywhere, and nothing is replaced

A number behind the % pads numbers with zeros, to ten places at most. What no letter stands for
stays as it is.

Source: sbatch(1) and srun(1), FILENAME PATTERN; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FileFacts", "default_output", "expand_pattern"]

NO_TASK = 0xFFFFFFFE
"""What %a is for a job that is no array."""

WIDTH_MAX = 10


class FileFacts(NamedTuple):
    """What the patterns of one task are filled from."""

    job_id: int
    array_id: int
    """The job's own id when it is no array."""
    array_task: int | None
    step: int | None
    """None for the batch script."""
    node: str
    """Short name of the host."""
    node_place: int
    """Of the node in the job, from 0."""
    task: int
    """Rank of the task in the step, 0 for the batch script."""
    user: str
    job_name: str


def default_output(is_array: bool) -> bytes:
    """Return the pattern of a batch job's output when it named none."""
    return b"slurm-%A_%a.out" if is_array else b"slurm-%j.out"


def expand_pattern(pattern: bytes, facts: FileFacts) -> bytes:
    """Return the name that a pattern stands for."""
    if b"\\" in pattern:
        return _without_backslashes(pattern)
    pieces = pattern.split(b"%")
    found = [pieces[0]]
    place = 1
    while place < len(pieces):
        piece = pieces[place]
        digits = piece[: len(piece) - len(piece.lstrip(b"0123456789"))]
        letter, rest = piece[len(digits) : len(digits) + 1], piece[len(digits) + 1 :]
        if not piece and place + 1 < len(pieces):  # two % in a row
            found.append(b"%" + pieces[place + 1])
            place += 2
            continue
        width = min(int(digits or b"0"), WIDTH_MAX)
        value = _value(letter, width, facts)
        if value is not None:
            found.append(value + rest)
        else:
            found.append(piece if digits else b"%" + piece)
        place += 1
    return b"".join(found)


def _value(letter: bytes, width: int, facts: FileFacts) -> bytes | None:
    """Return what a letter stands for; None when it stands for nothing."""
    number: int
    match letter:
        case b"a":
            number = NO_TASK if facts.array_task is None else facts.array_task
        case b"A":
            number = facts.array_id
        case b"j":
            number = facts.job_id
        case b"J":
            step = b"" if facts.step is None else b".%d" % facts.step
            return b"%0*d" % (width, facts.job_id) + step
        case b"n":
            number = facts.node_place
        case b"t":
            number = facts.task
        case b"s":
            if facts.step is None:
                return b"batch"
            number = facts.step
        case b"N":
            return facts.node.encode()
        case b"u":
            return facts.user.encode()
        case b"x":
            return facts.job_name.encode()
        case _:
            return None
    return b"%0*d" % (width, number)


def _without_backslashes(pattern: bytes) -> bytes:
    """Drop the backslashes; two in a row are one."""
    return b"\\".join(part.replace(b"\\", b"") for part in pattern.split(b"\\\\"))
