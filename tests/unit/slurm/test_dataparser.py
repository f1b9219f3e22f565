"""Documents: numbers that may be unset, ends, and YAML that reads as its JSON."""

from __future__ import annotations

import pytest

from spur.slurm.dataparser.parts import document, ended, number, unset
from spur.slurm.dataparser.text import to_json, to_yaml


def test_an_end_says_how() -> None:
    """A tool tells a failure from a signal, and both from a job that still runs."""
    assert ended(0, 0)["status"] == ["SUCCESS"]
    assert ended(3, 0)["status"] == ["ERROR"]
    killed = ended(0, 9)
    assert (killed["status"], killed["signal"]["name"]) == (["SIGNALED"], "KILL")
    assert ended(0, 0, is_over=False)["status"] == ["PENDING"]


def test_no_end_is_no_number() -> None:
    """A partition without a limit has no number that somebody would compare with."""
    assert unset(infinite=True) == {"set": False, "infinite": True, "number": 0}
    assert number(5)["set"] is True


def test_a_document_says_what_was_asked() -> None:
    """A tool looks for the release before it reads on."""
    whole = document({"jobs": []}, command=("show", "jobs"), user="ada", group="lab")
    assert whole["meta"]["client"]["user"] == "ada"
    assert whole["meta"]["slurm"]["version"]["major"].isdigit()
    assert to_json(whole).startswith('{\n  "jobs": []')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1, "b": {"c": "x: y"}}, '---\na: 1\nb:\n  c: "x: y"\n'),
        ({"a": [1, 2]}, "---\na:\n  - 1\n  - 2\n"),
        ({"a": [{"b": 1, "c": []}]}, "---\na:\n  - b: 1\n    c: []\n"),
        ({"a": {}, "b": None, "c": True}, "---\na: {}\nb: null\nc: true\n"),
        ({"a": [[1], {"b": {"c": "-"}}]}, '---\na:\n  - - 1\n  - b:\n      c: "-"\n'),
    ],
)
def test_yaml_is_plain(value: dict[str, object], text: str) -> None:
    """A name of a job looks like a number, a list or a truth: it stays a text."""
    assert to_yaml(value) == text
