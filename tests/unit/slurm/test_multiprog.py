"""--multi-prog: which task executes what."""

from __future__ import annotations

import pytest

from spur.slurm.multiprog import BadPrograms, parse_programs

GOOD = b"""### of three kinds
0 hostname
1-2   echo task:%t off:%o '%t a' "in %o"

4,6\techo\tlong \\
 line
* echo rest %t %o
"""


def test_each_task_has_the_words_of_its_line() -> None:
    """Ranges, lists, a rest; %t and %o, quotes; a line that goes on in the next."""
    programs = parse_programs("mp.conf", GOOD)
    assert programs.tasks == 7
    assert programs.argv(7, (b"more",)) == [
        (b"hostname", b"more"),
        (b"echo", b"task:1", b"off:0", b"%t a", b'"in', b'0"', b"more"),
        (b"echo", b"task:2", b"off:1", b"%t a", b'"in', b'1"', b"more"),
        (b"echo", b"rest", b"3", b"3", b"more"),
        (b"echo", b"long", b"line", b"more"),
        (b"echo", b"rest", b"5", b"5", b"more"),
        (b"echo", b"long", b"line", b"more"),
    ]


def test_file_may_speak_of_more_tasks_than_there_are() -> None:
    """The same file for two tasks."""
    assert len(parse_programs("mp.conf", GOOD).argv(2, ())) == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"0 true\n", "Configuration file mp.conf invalid, no record for task id 1"),
        (b"0\n", "Line 1 of configuration file mp.conf invalid"),
        (
            b"1-0 true\n",
            "Invalid task range, 1-0\nLine 1 of configuration file mp.conf invalid",
        ),
        (b"", "Configuration file mp.conf invalid, no record for task id 0"),
        (
            b"0-1 true\n1 false\n",
            "Duplicate record for task 1\nLine 2 of configuration file mp.conf invalid",
        ),
        (
            b"# bad\nx true\n",
            "Invalid task range specification (x)\nLine 2 of configuration file mp.conf invalid",
        ),
        (
            b"1- true\n",
            "Invalid task range, 1-0\nLine 1 of configuration file mp.conf invalid",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_by_its_line(content: bytes, told: str) -> None:
    """Two tasks, and a file that does not say what both execute."""
    with pytest.raises(BadPrograms) as error:
        parse_programs("mp.conf", content).argv(2, ())
    assert str(error.value) == told
