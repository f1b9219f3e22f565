"""Join tokens as people copy them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spur.values.jointoken import (
    JoinToken,
    format_join_token,
    parse_join_token,
    secret_digest,
)

TOKEN = JoinToken(authority=bytes(range(32)), secret=bytes(range(100, 132)))


def test_token_is_one_word_and_read_back() -> None:
    """A token is copied with the line's end and a blank."""
    text = format_join_token(TOKEN)
    assert text.startswith("spur-join-1-")
    assert len(text.split()) == 1
    assert parse_join_token(f" {text}\n") == TOKEN


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: t + "A", lambda t: t[:40] + t[41] + t[40] + t[42:]]
)
def test_token_that_is_not_whole_is_refused(change: Callable[[str], str]) -> None:
    """A letter was lost, or one too many was copied, or two changed places."""
    text = format_join_token(TOKEN)
    with pytest.raises(ValueError, match="not whole, or was mistyped") as refused:
        parse_join_token(change(text))
    assert text[20:40] not in str(refused.value)


@pytest.mark.parametrize("text", ["", "abc", "spur-join-2-abc"])
def test_what_is_no_token_is_refused(text: str) -> None:
    """Somebody handed in another file."""
    with pytest.raises(ValueError, match="no join token: one begins with"):
        parse_join_token(text)


def test_log_knows_a_hash_that_is_not_the_secret() -> None:
    """Two tokens have two hashes; none holds its secret."""
    digest = secret_digest(TOKEN.secret)
    assert len(digest) == 32
    assert digest != TOKEN.secret
    assert digest != secret_digest(TOKEN.authority)
