"""Sizes of memory and counts, as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.slurm.sizes import COUNT_MAX, format_memory, parse_count, parse_memory


@pytest.mark.parametrize(
    ("text", "mib", "shown"),
    [
        ("100", 100, "100M"),
        ("100M", 100, "100M"),
        ("100MB", 100, "100M"),
        ("2g", 2048, "2G"),
        ("1GB", 1024, "1G"),
        ("1T", 1 << 20, "1T"),
        ("500K", 1, "1M"),
        ("2048k", 2, "2M"),
        ("0", 0, "0"),
        ("64000", 64_000, "62.50G"),
        ("6000", 6000, "6000M"),
        ("512000", 512_000, "500G"),
    ],
)
def test_memory_is_read_and_shown_as_slurm_does(text: str, mib: int, shown: str) -> None:
    """Someone asks for memory and looks it up."""
    assert parse_memory(text) == mib
    assert format_memory(mib) == shown


@pytest.mark.parametrize("text", ["", "M", "0.5G", "-5", "100X", "1GiB", "1 G", "9" * 13, "4096T"])
def test_no_size_is_refused(text: str) -> None:
    """Someone writes a size in a way that Slurm does not know."""
    with pytest.raises(ValueError, match=r"."):
        parse_memory(text)


@pytest.mark.parametrize(("text", "count"), [("4", 4), ("1k", 1024), ("2M", 2 << 20), ("0", 0)])
def test_count_is_read(text: str, count: int) -> None:
    """Someone asks for a thousand nodes in two letters."""
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "k", "1x", "-1", "1kb", "4G", "2,4"])
def test_no_count_is_refused(text: str) -> None:
    """Someone writes no number."""
    with pytest.raises(ValueError, match=r"."):
        parse_count(text)


@given(st.integers(1, COUNT_MAX))
def test_shown_memory_is_at_most_a_hundredth_off(mib: int) -> None:
    """A tool reads the size that squeue shows: it may lose what is behind two places."""
    shown = format_memory(mib)
    factor = {"M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}[shown[-1]]
    assert mib - factor / 100 <= float(shown[:-1]) * factor <= mib + 0.001 * factor
