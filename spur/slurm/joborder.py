"""The order in which squeue shows jobs: letters of --sort, each with - to turn it round.

What the letters leave equal stays in one settled order: what started or will start last comes
first; then waiting jobs, the newest first; then the others by their number.

Source: squeue(1) --sort; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from spur.slurm.bunches import Bunch
from spur.slurm.columns import jobline as at
from spur.slurm.columns.jobline import JobLine
from spur.values.ids import JobId
from spur.values.states import JobState

__all__ = ["DEFAULT_SORT", "START_SORT", "SortKey", "parse_sort", "sorted_bunches"]

DEFAULT_SORT = "P,t,-p"
START_SORT = "S"


class SortKey(NamedTuple):
    """One thing to sort by."""

    value: Callable[[JobLine], Any]
    """Values of one type, comparable."""
    is_down: bool
    """Whether the highest comes first."""
    is_own: bool
    """Whether the lines of a bunch differ in it."""


_STATES = (
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
    "REQUEUED",
)
_RANKS = {JobState(word): rank for rank, word in enumerate(_STATES)}


def _rank(line: JobLine) -> int:
    return _RANKS[line.job.state]


_OWN = frozenset("AFiKV")
"""Letters in which the lines of a bunch differ."""


def _number(line: JobLine) -> tuple[int, int]:
    job = line.job
    if line.tasks is not None:
        return job.array_id, (1 << 32) if at.is_several(line) else line.tasks.first
    return (job.het_id, job.het_offset) if job.het_id else (job.job_id, 0)


def _ranked(line: JobLine) -> tuple[int, int]:
    """Return what the scheduler goes by: jobs of the least priority differ by their points."""
    ranked = at.priority(line)
    return ranked, int(at.points(line)) if ranked == at.PRIORITY_LEAST else 0


def _limit(line: JobLine) -> int:
    return line.limit_s or 1 << 62


def _start(line: JobLine) -> int:
    return at.start_s(line) or 1 << 62


def _end(line: JobLine) -> int:
    return at.end_s(line) or 1 << 62


_KEYS: dict[str, Callable[[JobLine], Any]] = {  # each of one comparable type, as in `SortKey`
    "a": lambda line: line.job.spec.account,
    "A": lambda line: line.job.job_id,
    "b": lambda line: line.job.spec.ask.gres,
    "c": lambda line: int(at.min_cpus(line)),
    "C": lambda line: int(at.cpus(line)),
    "D": lambda line: int(at.nodes(line)),
    "e": _end,
    "f": lambda line: line.job.spec.ask.features,
    "F": lambda line: line.job.array_id or line.job.job_id,
    "g": at.group_name,
    "G": lambda line: line.job.gid,
    "i": _number,
    "j": lambda line: line.job.spec.name,
    "K": _number,
    "l": _limit,
    "L": lambda line: _limit(line) - at.used_s(line),
    "m": lambda line: line.job.spec.ask.memory_mib,
    "M": at.used_s,
    "N": at.node_list,
    "p": _ranked,
    "P": at.partition,
    "Q": _ranked,
    "S": _start,
    "t": _rank,
    "T": _rank,
    "u": at.user_name,
    "U": lambda line: line.job.uid,
    "v": lambda line: line.job.spec.ask.reservation,
    "V": lambda line: line.job.submit_ns,
}


def parse_sort(text: str) -> list[SortKey]:
    """Return the keys, the weightiest first.

    Raises: ValueError with the letter that is none.
    """
    keys: list[SortKey] = []
    is_down = False
    for letter in text:
        if letter in "+-":
            is_down = letter == "-"
        elif letter in ", ":
            is_down = False
        else:
            key = _KEYS.get(letter)
            if key is None:
                raise ValueError(letter)
            keys.append(SortKey(key, is_down, letter in _OWN))
            is_down = False
    return keys


def _slots(bunches: Iterable[Bunch]) -> dict[JobId, JobId]:
    """Return where started tasks stand among jobs: in place of what was left of their array.

    The first that started has the array's place; what is left then comes behind all jobs that there
    were by that time, and so on. Source: transcripts of Slurm 22.05.
    """
    started: dict[JobId, list[JobId]] = {}
    for bunch in bunches:
        job = bunch.line.job
        if job.array_id and job.start_ns:
            started.setdefault(job.array_id, []).append(job.job_id)
    found: dict[JobId, JobId] = {}
    for array_id, jobs in started.items():
        ordered = sorted(jobs)
        found.update(zip(ordered, [array_id, *ordered[:-1]], strict=True))
    return found


def sorted_bunches(
    bunches: Iterable[Bunch], keys: Sequence[SortKey]
) -> Iterator[tuple[Bunch, Sequence[int]]]:
    """Yield all lines in order: of which bunch they are, and which of it."""
    bunches = list(bunches)
    slots = _slots(bunches)
    if any(key.is_own for key in keys):
        bunches = [single for bunch in bunches for single in bunch.apart()]
    elif any(key.value is _ranked for key in keys):
        bunches = [each for bunch in bunches for each in _equally_ranked(bunch)]
    keyed = [(tuple(key.value(bunch.line) for key in keys), bunch) for bunch in bunches]
    for place in reversed(range(len(keys))):
        _sort_by(keyed, place, is_down=keys[place].is_down)
    for _, found in groupby(keyed, key=_values):
        equal = [bunch for _, bunch in found]
        if len(equal) == 1:
            yield equal[0], _settled(equal[0])
        else:
            yield from _merged(equal, slots)


def _equally_ranked(bunch: Bunch) -> Iterable[Bunch]:
    """Yield a bunch whole, or its lines: the older of equal jobs may be ranked higher."""
    if not bunch.owns or not bunch.line.age_weight:
        return (bunch,)
    last = bunch.size - 1
    return (bunch,) if _ranked(bunch.at(0)) == _ranked(bunch.at(last)) else bunch.apart()


_Keyed = tuple[tuple[Any, ...], Bunch]


def _values(keyed: _Keyed) -> tuple[Any, ...]:
    return keyed[0]


def _sort_by(keyed: list[_Keyed], place: int, *, is_down: bool) -> None:
    keyed.sort(key=lambda one: one[0][place], reverse=is_down)


_Rank = tuple[int, int, int, int, int]
"""What lines that are equal in all keys go by."""


def _settled(bunch: Bunch) -> Sequence[int]:
    """Return the places of a bunch's lines in their settled order."""
    places = range(bunch.size)
    is_newest_first = bunch.owns and bunch.line.job.state is JobState.PENDING
    return places[::-1] if is_newest_first else places


def _ranks(bunch: Bunch, places: Iterable[int], slots: Mapping[JobId, JobId]) -> list[_Rank]:
    """Return the ranks of lines of a bunch."""
    line = bunch.line
    start = -at.start_s(line)
    numbers: list[tuple[int, int]]
    if bunch.tasks:
        first = line.job.array_id
        numbers = [(first, bunch.tasks[place]) for place in places]
    elif bunch.owns:
        numbers = [(bunch.owns[place].job_id, 0) for place in places]
    elif line.job.job_id in slots:
        numbers = [(slots[line.job.job_id], line.job.job_id)]
    else:
        major, minor = _number(line)
        is_turned = line.job.het_id and line.job.state is JobState.PENDING
        numbers = [(major, -minor if is_turned else minor)]
    if line.job.state is JobState.PENDING:
        return [(start, 0, -major, major, minor) for major, minor in numbers]
    return [(start, 1, 0, major, minor) for major, minor in numbers]


def _merged(
    bunches: list[Bunch], slots: Mapping[JobId, JobId]
) -> Iterator[tuple[Bunch, Sequence[int]]]:
    """Yield the lines of bunches that are equal in all keys, in their settled order."""
    spans = sorted(
        (
            _ranks(bunch, _settled(bunch)[:1], slots)[0],
            _ranks(bunch, _settled(bunch)[-1:], slots)[0],
            which,
        )
        for which, bunch in enumerate(bunches)
    )
    if all(span[1] <= after[0] for span, after in pairwise(spans)):
        for _, _, which in spans:
            yield bunches[which], _settled(bunches[which])
        return
    found = sorted(
        (rank, which, place)
        for which, bunch in enumerate(bunches)
        for place, rank in enumerate(_ranks(bunch, range(bunch.size), slots))
    )
    for which, lines in groupby(found, key=itemgetter(1)):
        yield bunches[which], [place for _, _, place in lines]
