"""Lines of Slurm's files, read as Slurm reads them."""

from __future__ import annotations

import pytest

from spur.slurm.conflines import includes_of, read_lines


def read(text: str, **others: str) -> tuple[list[tuple[str, list[tuple[str, str]]]], list[str]]:
    """Return the lines of a text with their places, and what was blamed."""
    blamed: list[str] = []
    files = {"slurm.conf": text, **{f"{name}.conf": other for name, other in others.items()}}
    lines = read_lines(files, "slurm.conf", 0, lambda place, why: blamed.append(f"{place}: {why}"))
    found = [(str(line.place), [(key, value) for key, value in line.pairs]) for line in lines]
    return found, blamed


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("A=1", [("A", "1")]),
        ("  A = 1   B=2\t", [("A", "1"), ("B", "2")]),
        ("A=1 # B=2", [("A", "1")]),
        (r"A=x\#y", [("A", "x#y")]),
        (r"A=x\\y", [("A", r"x\y")]),
        ('A="one two" B=3', [("A", "one two"), ("B", "3")]),
        ('A=""', [("A", "")]),
        ("A=1 \\\n  B=2", [("A", "1"), ("B", "2")]),
        ("A=1 \\  \r\nB=2\r\n", [("A", "1"), ("B", "2")]),
        ("A=on\\\ne", [("A", "one")]),
        ("A=1 \\", [("A", "1")]),
        ("NodeAddr=a=b", [("NodeAddr", "a=b")]),
        ("\n\n# only a comment \\\nA=1", [("A", "1")]),
    ],
)
def test_a_line_is_read_as_slurm_reads_it(text: str, pairs: list[tuple[str, str]]) -> None:
    """Comments, blanks, quotes, escapes and continued lines, as sites write them."""
    lines, blamed = read(text)
    assert blamed == []
    assert [pair for _, found in lines for pair in found] == pairs


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A=1\nnonsense", "slurm.conf:2: 'nonsense' can't be read: it takes key=value"),
        ("A=1 # x\nB=2 x y", "slurm.conf:2: 'x y' can't be read: it takes key=value"),
        ("A=", "slurm.conf:1: A has no value"),
        ('A="x', "slurm.conf:1: the quotes of A are not closed"),
        ("A+=1", "slurm.conf:1: 'A+=1' can't be read: it takes key=value"),
        ("A=1 \\\n\\\nx", "slurm.conf:1: 'x' can't be read: it takes key=value"),
        ("Include gone.conf", "slurm.conf:1: the included file 'gone.conf' is not there"),
        ("Include slurm.conf", "slurm.conf:1: the file 'slurm.conf' includes itself"),
    ],
)
def test_a_line_that_is_none_is_blamed_with_its_place(text: str, why: str) -> None:
    """Half a line, a stray word, a file that is missing."""
    assert read(text)[1] == [why]


def test_an_included_file_stands_where_it_is_included() -> None:
    """The site keeps its nodes in a file of their own; places name that file."""
    lines, blamed = read("A=1\ninclude  nodes.conf\nB=2", nodes="# nodes\nN=1\nN=2")
    assert blamed == []
    assert [place for place, _ in lines] == [
        "slurm.conf:1",
        "nodes.conf:2",
        "nodes.conf:3",
        "slurm.conf:3",
    ]


def test_files_that_include_each_other_in_a_ring_are_refused() -> None:
    """A includes b, and b includes a."""
    _, blamed = read("Include a.conf", a="Include b.conf", b="Include a.conf\nX")
    assert blamed == [
        "b.conf:1: the file 'a.conf' includes itself",
        "b.conf:2: 'X' can't be read: it takes key=value",
    ]


def test_a_chain_of_files_may_not_be_endless() -> None:
    """Eleven files, each including the next."""
    others = {f"f{number}": f"Include f{number + 1}.conf" for number in range(12)}
    (blame,) = read("Include f0.conf", **others)[1]
    assert "more than 10 deep" in blame


def test_what_a_text_includes_is_told_to_who_gathers_files() -> None:
    """A command reads the disk, and the parser does not."""
    assert includes_of("A=1\nInclude a.conf\n#Include b.conf\nINCLUDE /etc/c.conf\n") == [
        "a.conf",
        "/etc/c.conf",
    ]
