"""What is kept until the other side has taken it."""

from __future__ import annotations

import pytest

from spur.values.errors import PeerFault
from spur.wire.resending import Outgoing


def sent(out: Outgoing, piece_bytes: int = 100) -> bytes:
    """Send all that waits, in pieces of at most so many bytes."""
    found = b""
    while (piece := out.piece()) is not None:
        found += bytes(piece[:piece_bytes])
        out.sent(min(piece_bytes, len(piece)))
    return found


@pytest.mark.parametrize("taken", range(4))
def test_what_was_not_taken_is_sent_again_in_its_order(taken: int) -> None:
    """A connection breaks off in the midst of a message."""
    out = Outgoing()
    for frames in (b"one", b"two", b"three"):
        out.add(frames)
    assert out.kept_bytes == 11
    for count in (3, 3, 1):
        assert out.piece() is not None
        out.sent(count)
    out.add(b"four")
    out.begin_again(taken)
    assert sent(out, 2) == b"".join((b"one", b"two", b"three", b"four")[taken:])
    out.taken(4)
    assert (out.is_kept, out.kept_bytes) == (False, 0)


def test_asides_come_between_messages_and_die_with_their_connection() -> None:
    """What is said of one connection means nothing on the next."""
    out = Outgoing()
    out.add(b"one")
    out.add(b"two")
    piece = out.piece()
    assert piece is not None
    out.sent(1)
    out.add_aside(b"!")
    assert sent(out) == b"ne!two"
    out.add_aside(b"?")
    out.begin_again(1)
    assert sent(out) == b"two"


@pytest.mark.parametrize("count", [0, 3])
def test_a_count_that_cannot_be_is_a_fault(count: int) -> None:
    """It goes back, or beyond what was sent."""
    out = Outgoing()
    out.add(b"one")
    out.add(b"two")
    sent(out)
    out.taken(1)
    with pytest.raises(PeerFault, match=f"{count} messages were taken"):
        out.taken(count)
