"""The grammars of values, each beside a statement of it that knows nothing of its parser.

A value is drawn as what it means, spelled as the manual says, and read: it must mean the same. Then
anything at all is typed: it is read or refused in one way, soon, and never in another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spur.slurm import optionvalues as at
from spur.slurm.dependencies import BadDependency, parse_dependency
from spur.slurm.optionvalues import BadOption
from spur.slurm.sizes import parse_count, parse_memory
from spur.slurm.timespec import parse_time_limit
from spur.values.arrays import parse_array
from spur.values.dependencies import Condition, DependencyKind
from spur.values.features import has_features, parse_features
from spur.values.hostlist import parse_hostlist
from spur.values.ids import JobId
from spur.values.licenses import parse_licenses
from spur.values.tres import GresAsk, Per

FEW = settings(max_examples=60, deadline=None)


# -- lengths of time: what is typed, and the seconds that it is
def _ceil_minutes(seconds: int) -> int:
    return (seconds + 59) // 60 * 60


SMALL = st.integers(0, 99)
TIMES = st.one_of(
    st.builds(lambda m: (f"{m}", m * 60), SMALL),
    st.builds(lambda m, s: (f"{m}:{s}", m * 60 + s), SMALL, SMALL),
    st.builds(lambda h, m, s: (f"{h}:{m:02}:{s:02}", h * 3600 + m * 60 + s), SMALL, SMALL, SMALL),
    st.builds(lambda d, h: (f"{d}-{h}", d * 86400 + h * 3600), SMALL, SMALL),
    st.builds(
        lambda d, h, m: (f"{d}-{h:02}:{m}", d * 86400 + h * 3600 + m * 60), SMALL, SMALL, SMALL
    ),
    st.builds(
        lambda d, h, m, s: (f"{d}-{h}:{m}:{s}", d * 86400 + h * 3600 + m * 60 + s),
        SMALL,
        SMALL,
        SMALL,
        SMALL,
    ),
    st.sampled_from(["UNLIMITED", "infinite", "Unlimited", "-1"]).map(lambda word: (word, 0)),
)


@FEW
@given(TIMES)
def test_a_time_limit_is_whole_minutes(case: tuple[str, int]) -> None:
    """Of what is left of a minute a whole one is given; none at all is no limit."""
    text, seconds = case
    assert parse_time_limit(text) == _ceil_minutes(seconds)


# -- sizes and counts
@FEW
@given(st.integers(0, 4096), st.sampled_from(["", "K", "M", "G", "k", "m", "g", "MB", "Gb"]))
def test_memory_is_mebibytes(number: int, unit: str) -> None:
    """A number alone is MiB; kibibytes are rounded up."""
    kib = {"": 1024, "k": 1, "m": 1024, "g": 1024**2}[unit[:1].lower()] * number
    assert parse_memory(f"{number}{unit}") == (kib + 1023) // 1024


@FEW
@given(st.integers(0, 1000), st.sampled_from(["", "k", "K", "m", "M"]))
def test_a_count_may_be_of_thousands(number: int, unit: str) -> None:
    """Nodes are counted so, and devices."""
    assert parse_count(f"{number}{unit}") == number * 1024 ** " km".index(unit.lower() or " ")


@FEW
@given(st.integers(1, 500), st.integers(0, 500), st.booleans())
def test_nodes_are_one_number_or_a_range(least: int, more: int, is_range: bool) -> None:
    """4 is 4-4."""
    most = least + more if is_range else least
    text = f"{least}-{most}" if is_range else f"{least}"
    assert at.nodes(text, "nodes") == (least, most)


# -- lists
RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=4)


@FEW
@given(RANGES, st.integers(1, 3), st.sampled_from(["n", "rack-a", "gpu.x"]))
def test_a_node_list_stands_for_each_number(
    ranges: list[tuple[int, int]], width: int, stem: str
) -> None:
    """Numbers keep their leading zeros; a node that is named twice is there once."""
    spelled = [f"{first:0{width}}-{first + more:0{width}}" for first, more in ranges]
    wanted = [
        f"{stem}{n:0{width}}" for first, more in ranges for n in range(first, first + more + 1)
    ]
    assert parse_hostlist(f"{stem}[{','.join(spelled)}]") == tuple(dict.fromkeys(wanted))


@FEW
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(1, 5)), min_size=1, max_size=4
    ),
    st.integers(0, 9),
)
def test_an_array_is_the_set_of_its_tasks(
    ranges: list[tuple[int, int, int]], throttle: int
) -> None:
    """Ranges may overlap, stand in any order and have steps."""
    spelled = [f"{first}-{first + more}:{step}" for first, more, step in ranges]
    wanted = {n for first, more, step in ranges for n in range(first, first + more + 1, step)}
    text = ",".join(spelled) + (f"%{throttle}" if throttle else "")
    ask = parse_array(text, index_max=1000)
    assert (list(ask.tasks), ask.throttle) == (sorted(wanted), throttle)


@FEW
@given(
    st.lists(
        st.tuples(st.sampled_from(["matlab", "ansys", "a@db"]), st.integers(1, 50), st.booleans()),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([",", ";"]),
)
def test_licences_are_counted_in_sum(words: list[tuple[str, int, bool]], between: str) -> None:
    """One that is named twice counts twice; one without a count is one."""
    wanted: dict[str, int] = {}
    spelled = []
    for name, count, is_counted in words:
        spelled.append(f"{name}:{count}" if is_counted else name)
        wanted[name] = wanted.get(name, 0) + (count if is_counted else 1)
    assert parse_licenses(between.join(spelled)) == wanted


@FEW
@given(
    st.lists(
        st.tuples(st.sampled_from(["", "mi300x", "h100"]), st.integers(0, 9), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_gpus_are_a_kind_and_a_count(words: list[tuple[str, int, bool]]) -> None:
    """A count alone is of any kind, a kind alone is one device, and none is no ask."""
    spelled, wanted = [], []
    for kind, count, is_counted in words:
        number = count if is_counted or not kind else 1
        spelled.append(
            ":".join(filter(None, (kind, f"{number}" if is_counted or not kind else "")))
        )
        if number:
            wanted.append(GresAsk("gpu", kind, number, Per.NODE))
    assert at.gres(",".join(f"gpu:{word}" for word in spelled), "gres") == tuple(wanted)
    assert at.gpus(",".join(spelled), "gpus-per-node") == tuple(wanted)


# -- dependencies and signals
KINDS = [kind for kind in DependencyKind if kind is not DependencyKind.SINGLETON]
CONDITIONS = st.builds(
    lambda kind, job, task, minutes: (
        f"{kind.value}:{job}"
        + (f"_{task}" if task is not None else "")
        + (f"+{minutes}" if minutes else ""),
        Condition(kind, JobId(job), task, 60 * minutes),
    ),
    st.sampled_from(KINDS),
    st.integers(1, 10**6),
    st.none() | st.integers(0, 999),
    st.integers(0, 90),
) | st.just(("singleton", Condition(DependencyKind.SINGLETON, JobId(0), None, 0)))


@FEW
@given(st.lists(CONDITIONS, min_size=1, max_size=5), st.booleans())
def test_dependencies_are_all_or_any_of_their_conditions(
    words: list[tuple[str, Condition]], any_holds: bool
) -> None:
    """A comma between them is "and", a question mark "or"."""
    found = parse_dependency(("?" if any_holds else ",").join(text for text, _ in words))
    assert found is not None
    assert found.conditions == tuple(dict.fromkeys(condition for _, condition in words))
    assert found.any_holds == (any_holds and len(words) > 1)


@FEW
@given(
    st.sampled_from(["", "B:", "R:", "RB:", "b:"]),
    st.sampled_from(["TERM", "sigusr1", "10", "64", "SIGKILL"]),
    st.none() | st.integers(0, 65_535),
)
def test_a_signal_has_flags_a_name_and_a_time(flags: str, name: str, ahead: int | None) -> None:
    """It is kept as it was typed."""
    text = f"{flags}{name}" + ("" if ahead is None else f"@{ahead}")
    assert at.signal(text, "signal") == text


# -- constraints: an expression is drawn, spelled, and judged by hand
Expression = tuple[str, Callable[[frozenset[str]], bool]]


def _joined(sign: str, parts: list[Expression]) -> Expression:
    combine = all if sign == "&" else any
    spelled = sign.join(text for text, _ in parts)
    return f"({spelled})", lambda has: combine(test(has) for _, test in parts)


NAMES = "abcd"


def _feature(name: str) -> Expression:
    return name, lambda has: name in has


EXPRESSIONS = st.recursive(
    st.sampled_from(NAMES).map(_feature),
    lambda inner: st.builds(
        _joined, st.sampled_from("&|"), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@FEW
@given(EXPRESSIONS, st.frozensets(st.sampled_from(NAMES)))
def test_a_constraint_holds_for_the_nodes_that_it_says(
    expression: Expression, features: frozenset[str]
) -> None:
    """Without counts it is one test of every node."""
    text, holds = expression
    [way] = parse_features(text)
    assert (has_features(features, way.every), way.some) == (holds(features), ())


@pytest.mark.parametrize("count", [12, 400])
def test_a_constraint_with_too_many_ways_is_refused_at_once(count: int) -> None:
    """Each pair doubles the ways to meet it: a line of text that would take the controller down."""
    with pytest.raises(ValueError, match="ways"):
        parse_features("&".join(["(a*1|b*2)"] * count))


# -- anything at all
TYPED = st.one_of(
    st.text(max_size=40),
    st.text("0123456789-:,;[]%*@+_kKmMgGtT &|()!?=.ainfuxRB", max_size=40),
    st.integers(0, 10**40).map(str),
    st.builds(
        lambda text, times: text * times, st.text("09[]-,:(&", max_size=3), st.integers(0, 400)
    ),
)

PARSERS: list[tuple[Callable[[str], Any], type[Exception]]] = [
    (parse_time_limit, ValueError),
    (parse_memory, ValueError),
    (parse_count, ValueError),
    (parse_hostlist, ValueError),
    (lambda text: parse_array(text, index_max=4_000_000), ValueError),
    (parse_licenses, ValueError),
    (parse_features, ValueError),
    (parse_dependency, BadDependency),
    *(
        (lambda text, read=read: read(text, "x"), BadOption)
        for read in (
            at.array,
            at.count,
            at.disk,
            at.distribution,
            at.exclusive,
            at.gres,
            at.gres_flags,
            at.hint,
            at.hosts,
            at.kill_signal,
            at.limits,
            at.mail_types,
            at.memory,
            at.nice,
            at.node_shape,
            at.nodes,
            at.number_text,
            at.open_mode,
            at.positive,
            at.priority,
            at.signal,
            at.switches,
            at.time_limit,
            at.yes_or_no,
        )
    ),
    (lambda text: at.gpus(text, "gpus"), BadOption),
]


@settings(max_examples=300, deadline=500)
@given(TYPED)
def test_whatever_is_typed_is_read_or_refused(text: str) -> None:
    """Each parser has one way to say no, and says it soon."""
    for parse, refusal in PARSERS:
        try:
            parse(text)
        except refusal:
            continue
