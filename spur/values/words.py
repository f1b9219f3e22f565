"""English, where sentences are put together."""

from __future__ import annotations

__all__ = ["with_article"]


def with_article(noun: str) -> str:
    """Return a noun with the article that it takes: "an admin", "a login"."""
    return f"{'an' if noun[:1] in tuple('aeiou') else 'a'} {noun}"
