"""Command lines as getopt_long reads them."""

from __future__ import annotations

import pytest

from spur.slurm.getopt import parse_arguments
from spur.slurm.options import Option, Takes
from spur.slurm.wording import SlurmError

OPTIONS = (
    Option("x", "hold", "H", Takes.NOTHING, "hold"),
    Option("x", "name", "n", Takes.VALUE, "name", aliases=("jobname",)),
    Option("x", "nice", "", Takes.MAYBE, "nice"),
    Option("x", "nodes", "N", Takes.VALUE, "nodes"),
    Option("x", "jobs", "j", Takes.MAYBE_NEXT, "jobs"),
)


def read(line: str, *, stops: bool = False) -> tuple[list[tuple[str, str | None]], list[str]]:
    given, words = parse_arguments(line.split(" "), OPTIONS, program="x", stops_at_word=stops)
    return [(option.long, value) for option, value in given], words


@pytest.mark.parametrize(
    ("line", "given", "words"),
    [
        ("-H -n a b", [("hold", None), ("name", "a")], ["b"]),
        ("-Hna", [("hold", None), ("name", "a")], []),
        ("b -H c", [("hold", None)], ["b", "c"]),
        ("-n -H", [("name", "-H")], []),
        ("--name=a=b --name c", [("name", "a=b"), ("name", "c")], []),
        ("--jobname=a --na=b", [("name", "a"), ("name", "b")], []),
        ("--name= x", [("name", "")], ["x"]),
        ("--nice 5", [("nice", None)], ["5"]),
        ("--nice=5", [("nice", "5")], []),
        ("-j 5 -j -H", [("jobs", "5"), ("jobs", None), ("hold", None)], []),
        ("--jobs 5 -j6 -j", [("jobs", "5"), ("jobs", "6"), ("jobs", None)], []),
        ("-H -- -n a", [("hold", None)], ["-n", "a"]),
        ("-", [], ["-"]),
    ],
)
def test_line_is_read(line: str, given: list[tuple[str, str | None]], words: list[str]) -> None:
    """A script writes its options in one of the ways that getopt_long takes."""
    assert read(line) == (given, words)


def test_words_behind_a_script_are_its_own() -> None:
    """Someone gives their script an argument that looks like an option of sbatch."""
    assert read("-H a.sh -n 5 --hold", stops=True) == (
        [("hold", None)],
        ["a.sh", "-n", "5", "--hold"],
    )
    assert read("-H -- a.sh -n", stops=True) == ([("hold", None)], ["a.sh", "-n"])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("-q", "invalid option -- 'q'"),
        ("-1", "invalid option -- '1'"),
        ("-n", "option requires an argument -- 'n'"),
        ("--name", "option '--name' requires an argument"),
        ("--hold=1", "option '--hold' doesn't allow an argument"),
        ("--nosuch=1", "unrecognized option '--nosuch=1'"),
        ("--n=3", "option '--n=3' is ambiguous; possibilities: '--name' '--nice' '--nodes'"),
    ],
)
def test_bad_line_is_refused_in_getopts_words(line: str, sentence: str) -> None:
    """Someone mistypes an option."""
    with pytest.raises(SlurmError) as refused:
        read(line)
    assert refused.value.lines == (f"x: {sentence}", 'Try "x --help" for more information')
    assert refused.value.status == 1
