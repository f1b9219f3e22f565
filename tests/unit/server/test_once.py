"""Reports that are said once for each change."""

from __future__ import annotations

from spur.server.once import Once


def test_trouble_is_said_once_for_each_change() -> None:
    """A peer is refused again and again, for one reason and then for another."""
    said: list[str] = []
    once = Once(said.append)
    for sentence in ("expired", "expired", "wrong cluster", "expired"):
        once.report("10.0.0.1", sentence)
    once.report("10.0.0.2", "expired")
    assert said == ["expired", "wrong cluster", "expired", "expired"]


def test_trouble_after_good_times_is_news() -> None:
    """A peer was mended and has the same trouble again."""
    said: list[str] = []
    once = Once(said.append)
    once.report("10.0.0.1", "expired")
    once.forget("10.0.0.1")
    once.report("10.0.0.1", "expired")
    assert said == ["expired", "expired"]


def test_sources_are_remembered_within_bounds() -> None:
    """Callers from thousands of addresses cost a bounded memory."""
    once = Once(lambda sentence: None)
    for number in range(10_000):
        once.report(f"10.0.{number // 256}.{number % 256}", "no hello")
    assert len(once._last) <= 64
