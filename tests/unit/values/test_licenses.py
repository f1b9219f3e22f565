"""Lists of licences, as jobs and slurm.conf write them."""

from __future__ import annotations

import pytest

from spur.values.licenses import parse_licenses


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", {}),
        (",", {}),
        ("matlab", {"matlab": 1}),
        ("matlab:4,ansys", {"matlab": 4, "ansys": 1}),
        ("matlab:1;ansys,", {"matlab": 1, "ansys": 1}),
        ("matlab:1,matlab:2", {"matlab": 3}),
        ("matlab:+1", {"matlab": 1}),
        ("matlab=4,ansys:", {"matlab": 4, "ansys": 1}),
        ("matlab:0", {"matlab": 0}),
        ("lab@site:2", {"lab@site": 2}),
    ],
)
def test_what_slurm_takes_is_read(text: str, asked: dict[str, int]) -> None:
    """Empty words are no matter, a semicolon is a comma, and a repeated licence adds up."""
    assert parse_licenses(text) == asked


@pytest.mark.parametrize(
    "text",
    [":1", "matlab:x", "matlab:-1", "matlab:1:2", "matlab:1k", "matlab=1=2", " matlab", "a b",
     "matlab:2147483648", "matlab:2147483647,matlab", "matlab:99999999999"],
)  # fmt: skip
def test_what_slurm_refuses_is_no_list(text: str) -> None:
    """Counts that are none, or more than Slurm keeps, and names with blanks."""
    with pytest.raises(ValueError, match="licence"):
        parse_licenses(text)
