"""Lines of squeue that are equal but for their number and their times, made together.

Ten thousand waiting tasks, or as many jobs of one loop, differ in a column or two: all the others
are made once for the whole bunch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from spur.slurm.columns import jobline as at
from spur.slurm.columns.jobline import JobLine
from spur.slurm.formats import Layout, plain, shape_of
from spur.values.arrays import TaskSet
from spur.wire.jobs import JobOwn, with_own

__all__ = ["Bunch", "Typesetter"]


class Bunch(NamedTuple):
    """One line, or several that differ in columns and sort keys marked `is_own` alone."""

    line: JobLine
    """The first of them."""
    tasks: Sequence[int] = ()
    """Of an array's waiting tasks, ascending."""
    owns: Sequence[JobOwn] = ()
    """Of equal jobs that are no arrays, by number."""

    @property
    def size(self) -> int:
        """How many lines it is."""
        return len(self.tasks) or len(self.owns) or 1

    def at(self, place: int) -> JobLine:
        """Return one of its lines."""
        if self.tasks:
            return self.line._replace(tasks=TaskSet.single(self.tasks[place]))
        if self.owns:
            [job] = with_own(self.line.job, (self.owns[place],))
            return self.line._replace(job=job)
        return self.line

    def apart(self) -> Iterator[Bunch]:
        """Yield each of its lines for itself."""
        for place in range(self.size):
            yield Bunch(self.at(place))

    def split(self) -> Bunch:
        """Return a line that stands for waiting tasks of an array as one line for each."""
        tasks = self.line.tasks
        if tasks is None:
            return self
        return Bunch(self.line._replace(tasks=TaskSet.single(tasks.first)), tasks=tuple(tasks))


class Typesetter:
    """Makes the text of lines."""

    def __init__(self, layout: Layout[JobLine]) -> None:
        self._layout = layout
        self._columns = [cell.column for cell in layout.cells if cell.column is not None]
        self._shape = _line_of([plain(layout.prefix), *map(shape_of, layout.cells)])
        self._bunches: dict[int, Callable[[Sequence[int]], str]] = {}

    def text(self, found: Iterable[tuple[Bunch, Sequence[int]]]) -> str:
        """Return the text of lines, told by their bunch and their places in it.

        No job is in two bunches.
        """
        texts: list[str] = []
        for bunch, places in found:
            if bunch.size == 1:
                values = [column.value(bunch.line) for column in self._columns]
                texts.append(self._shape % tuple(values))
                continue
            job_id = bunch.line.job.job_id
            make = self._bunches.get(job_id)
            if make is None:
                make = self._bunches[job_id] = self._maker(bunch)
            texts.append(make(places))
        return "".join(texts)

    def _maker(self, bunch: Bunch) -> Callable[[Sequence[int]], str]:
        """Return what makes the text of places in a bunch."""
        parts = [plain(self._layout.prefix)]
        own = []
        for cell in self._layout.cells:
            column = cell.column
            if column is None or column.is_own:
                parts.append(shape_of(cell))
            else:
                parts.append(plain(shape_of(cell) % column.value(bunch.line)))
            if column is not None and column.is_own:
                own.append(column.value)
        shape = _line_of(parts)
        if own == [at.job_id] or (bunch.owns and own == [at.raw_job_id]):
            names, everything = _names(bunch), range(bunch.size)

            def pick(places: Sequence[int]) -> str:
                picked = names if places == everything else [names[place] for place in places]
                return shape * len(places) % tuple(picked)

            return pick

        def make(places: Sequence[int]) -> str:
            lines = [bunch.at(place) for place in places]
            return shape * len(lines) % tuple([value(line) for line in lines for value in own])

        return make


def _line_of(parts: Iterable[str]) -> str:
    return "".join([*parts, "\n"])


def _names(bunch: Bunch) -> list[str]:
    """Return how the lines of a bunch are called."""
    if bunch.tasks:
        start = f"{bunch.line.job.array_id}_"
        return [start + name for name in map(str, bunch.tasks)]
    return [str(own.job_id) for own in bunch.owns]
