"""What the tasks of a step execute, and where."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from spur.slurm.multiprog import BadPrograms, Programs
from spur.slurm.wording import SlurmError, error_line

if TYPE_CHECKING:
    from spur_cli.slurm.rawterminal import RawTerminal

__all__ = ["Tasks"]


class Tasks(NamedTuple):
    """What was given behind srun's options, and what its files say."""

    words: list[str]
    programs: Programs | None
    """With --multi-prog: what each task executes."""
    terminal: RawTerminal | None
    """With --pty: what the first task has as its own."""
    names_nodes: bool
    """Whether --nodes was given."""

    def several(self, count: int) -> list[tuple[bytes, ...]]:
        """Return the words of each of so many tasks; empty when all have the same.

        Raises: SlurmError for a file that does not speak of all.
        """
        if self.programs is None:
            return []
        more = tuple(os.fsencode(word) for word in self.words[1:])
        try:
            return self.programs.argv(count, more)
        except BadPrograms as error:
            lines = (error_line("srun", text) for text in str(error).split("\n"))
            raise SlurmError(*lines) from error
