"""Sets of array tasks: kept as ranges, so that 100 000 tasks take one row.

    parse_array("1-10:3,20%4")  ->  ArrayAsk(tasks 1 4 7 10 20, throttle 4)

A set is a tuple of (first, last, step), ascending, each ending before the next begins. Two equal
sets may be spelled by different ranges, when they came about by different removals; compare their
tasks, not their ranges, where that matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

__all__ = ["ArrayAsk", "TaskSet", "format_tasks", "parse_array"]

Range = tuple[int, int, int]


class TaskSet(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A set of array task indexes."""

    ranges: tuple[Range, ...]
    """(first, last, step), each ending before the next begins; none is empty."""

    def __iter__(self) -> Iterator[int]:
        """Yield the tasks, ascending."""
        for first, last, step in self.ranges:
            yield from range(first, last + 1, step)

    def __contains__(self, task: object) -> bool:
        return any(task in range(first, last + 1, step) for first, last, step in self.ranges)

    @property
    def count(self) -> int:
        """How many tasks the set holds."""
        return sum((last - first) // step + 1 for first, last, step in self.ranges)

    @property
    def is_single(self) -> bool:
        """Whether the set holds exactly one task."""
        ranges = self.ranges
        return len(ranges) == 1 and ranges[0][0] == ranges[0][1]

    @property
    def first(self) -> int:
        """The smallest task. Raises: IndexError when the set is empty."""
        return self.ranges[0][0]

    @property
    def last(self) -> int:
        """The largest task. Raises: IndexError when the set is empty."""
        return self.ranges[-1][1]

    def without(self, other: TaskSet) -> TaskSet:
        """Return the tasks of this set that are not in the other."""
        ranges = self.ranges
        for gone in other.ranges:
            ranges = tuple(left for mine in ranges for left in _subtract(mine, gone))
        return TaskSet(ranges)

    def common(self, other: TaskSet) -> TaskSet:
        """Return the tasks that are in both sets."""
        return self.without(self.without(other))

    def is_within(self, other: TaskSet) -> bool:
        """Whether every task of this set is in the other."""
        return not self.without(other).ranges

    @staticmethod
    def single(task: int) -> TaskSet:
        """Return the set of this one task."""
        return TaskSet(((task, task, 1),))

    @staticmethod
    def of(tasks: Iterable[int]) -> TaskSet:
        """Return the set of these tasks, in the fewest ranges a single pass finds."""
        return TaskSet(tuple(_compress(sorted(set(tasks)))))


class ArrayAsk(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What --array asks for."""

    tasks: TaskSet
    throttle: int
    """At most this many tasks run at a time; 0 is no limit."""


def _subtract(mine: Range, gone: Range) -> Iterator[Range]:
    """Yield what is left of one range without another."""
    first, last, step = mine
    gone_first, gone_last, gone_step = gone
    if gone_last < first or gone_first > last:
        yield mine
    elif gone_step == 1 or gone_first == gone_last:
        # The part taken out is one stretch, so at most two ranges are left. Both ends are rounded
        # to the tasks that this range really has.
        below = first + (gone_first - 1 - first) // step * step
        above = first + -(-(gone_last + 1 - first) // step) * step
        if below >= first:
            yield first, below, step
        if above <= last:
            yield above, last, step
    else:
        taken = range(gone_first, gone_last + 1, gone_step)
        left = [task for task in range(first, last + 1, step) if task not in taken]
        yield from _compress(left)


def _compress(tasks: list[int]) -> Iterator[Range]:
    """Yield ranges of ascending tasks, each as long as its first step carries."""
    position = 0
    while position < len(tasks):
        first = tasks[position]
        if position + 1 == len(tasks):
            yield first, first, 1
            return
        step = tasks[position + 1] - first
        end = position + 1
        while end + 1 < len(tasks) and tasks[end + 1] - tasks[end] == step:
            end += 1
        if step > 1 and end == position + 1:
            # Two tasks apart are no progression: the second may begin a better range.
            yield first, first, 1
            position += 1
        else:
            yield first, tasks[end], step
            position = end + 1


_THROTTLE_MAX = (1 << 32) - 1


def parse_array(text: str, *, index_max: int) -> ArrayAsk:
    """Read an array expression such as ``0-15:4,20%4``.

    Raises: ValueError for a malformed expression or a task over `index_max`.
    Source: sbatch(1) --array.
    """
    body, percent, throttle_text = text.partition("%")
    throttle = _number(throttle_text, text) if percent else 0
    if throttle > _THROTTLE_MAX:
        raise ValueError(f"throttle {throttle} of array {text!r} is over {_THROTTLE_MAX}")
    ranges = [_parse_range(part, text) for part in body.split(",")]
    for _, last, _ in ranges:
        if last > index_max:
            raise ValueError(f"task {last} of array {text!r} is over the largest, {index_max}")
    if len(ranges) == 1:
        return ArrayAsk(TaskSet((ranges[0],)), throttle)
    tasks = {task for first, last, step in ranges for task in range(first, last + 1, step)}
    return ArrayAsk(TaskSet.of(tasks), throttle)


def _parse_range(part: str, text: str) -> Range:
    span, colon, step_text = part.partition(":")
    first_text, dash, last_text = span.partition("-")
    first = _number(first_text, text)
    if not dash:
        if colon:
            raise ValueError(f"array {text!r} has a step without a range at {part!r}")
        return first, first, 1
    last = _number(last_text, text)
    step = _number(step_text, text) if colon else 1
    if last < first or step < 1:
        raise ValueError(f"array {text!r} has a range that runs backwards at {part!r}")
    last -= (last - first) % step
    return (first, last, step) if last > first else (first, first, 1)


def _number(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"array {text!r} has {digits!r} where a number must stand")
    return int(digits)


def format_tasks(tasks: TaskSet) -> str:
    """Spell a set as Slurm does: single tasks and ranges of step 1, joined by commas."""
    parts: list[str] = []
    start = previous = -1
    for task in tasks:
        if start >= 0 and task == previous + 1:
            previous = task
            continue
        if start >= 0:
            parts.append(_spell(start, previous))
        start = previous = task
    if start >= 0:
        parts.append(_spell(start, previous))
    return ",".join(parts)


def _spell(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
