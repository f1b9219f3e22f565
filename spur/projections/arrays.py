"""Which jobs stand for which tasks of an array: an index over the table of jobs.

Most rows of a started array stand for one task and are found by it. Rows that stand for several
are few, and are searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sortedcontainers import SortedList

from spur.values.ids import JobId

if TYPE_CHECKING:
    from spur.projections.jobs import JobRow

__all__ = ["ArrayJobs"]


class _Members:
    """The rows of one array."""

    __slots__ = ("jobs", "several", "single")

    def __init__(self) -> None:
        self.jobs: SortedList[JobId] = SortedList()
        #: Rows that stand for several tasks; the rest are in `single`.
        self.several: set[JobId] = set()
        #: Row by its one task.
        self.single: dict[int, JobId] = {}


class ArrayJobs:
    """Rows by array, and by array and task."""

    def __init__(self) -> None:
        self._arrays: dict[JobId, _Members] = {}

    def change(self, key: JobId, old: JobRow | None, new: JobRow | None) -> None:
        """Follow one row."""
        before = None if old is None else old.tasks
        after = None if new is None else new.tasks
        if before is after:
            return
        if old is not None and before is not None:
            members = self._arrays[old.array_id]
            if before.is_single:
                del members.single[before.first]
            else:
                members.several.remove(key)
            if after is None:
                members.jobs.remove(key)
                if not members.jobs:
                    del self._arrays[old.array_id]
        if new is not None and after is not None:
            known = self._arrays.get(new.array_id)
            if known is None:
                known = self._arrays[new.array_id] = _Members()
            if before is None:
                known.jobs.add(key)
            if after.is_single:
                known.single[after.first] = key
            else:
                known.several.add(key)

    def fill(self, rows: Mapping[JobId, JobRow]) -> None:
        """Follow every row of a table at once; the index must be empty."""
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> ArrayJobs:
        """Return an empty index."""
        return ArrayJobs()

    def contents(self) -> object:
        """Return all that the index holds."""
        return {
            array_id: (list(members.jobs), members.several, members.single)
            for array_id, members in self._arrays.items()
        }

    def count(self, array_id: JobId) -> int:
        """Return how many rows the array has."""
        members = self._arrays.get(array_id)
        return 0 if members is None else len(members.jobs)

    def jobs(self, array_id: JobId) -> list[JobId]:
        """Return the rows of an array, in order."""
        members = self._arrays.get(array_id)
        return [] if members is None else list(members.jobs)

    def several(self, array_id: JobId) -> list[JobId]:
        """Return the rows of an array that stand for several tasks, in order."""
        members = self._arrays.get(array_id)
        return [] if members is None else sorted(members.several)

    def single(self, array_id: JobId, task: int) -> JobId | None:
        """Return the row that stands for just this task, or None."""
        members = self._arrays.get(array_id)
        return None if members is None else members.single.get(task)
