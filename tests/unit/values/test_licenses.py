"""Lists of licences."""

from __future__ import annotations

import pytest

from spur.values.licenses import parse_licenses


@pytest.mark.parametrize(
    ("text", "licenses"),
    [
        ("", ()),
        ("matlab", (("matlab", 1),)),
        ("matlab:4,ansys=2", (("matlab", 4), ("ansys", 2))),
        ("matlab;ansys:", (("matlab", 1), ("ansys", 1))),
        ("matlab:x", None),
        ("matlab:-1", None),
        ("matlab:0", None),
        (":4", None),
        ("matlab:4:2", None),
        (f"matlab:{1 << 40}", None),
    ],
)
def test_licenses_are_names_and_counts(
    text: str, licenses: tuple[tuple[str, int], ...] | None
) -> None:
    """A user asks for licences, well and badly."""
    assert parse_licenses(text) == licenses
