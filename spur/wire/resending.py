"""Messages that are kept until the other side has taken them, whatever becomes of the connection.

Both ends of a stream count the messages that they took. When a new connection takes the place of a
broken one, each says its count, and the other goes on from there: nothing is lost and nothing comes
twice. What is said about the connection itself is not counted (`Aside`).
"""

from __future__ import annotations

from collections import deque

from spur.values.errors import PeerFault

__all__ = ["Outgoing"]


class Outgoing:
    """What one side says, in its order."""

    def __init__(self) -> None:
        self.kept_bytes = 0
        """Of messages that were not taken yet."""
        self._taken = 0
        self._sent: deque[bytes] = deque()
        """Sent on this connection, and perhaps taken."""
        self._waiting: deque[bytes] = deque()
        self._asides: deque[bytes] = deque()
        self._piece: memoryview | None = None
        """What is left of the message that is being sent."""

    @property
    def is_kept(self) -> bool:
        """Whether the other side has yet to take something."""
        return bool(self._sent or self._waiting)

    def add(self, frames: bytes) -> None:
        """Say a message, given as its frames."""
        self._waiting.append(frames)
        self.kept_bytes += len(frames)

    def add_aside(self, frames: bytes) -> None:
        """Say something about this connection; it is said before messages that wait."""
        self._asides.append(frames)

    def piece(self) -> memoryview | None:
        """Return the bytes that are to be sent next; None when nothing waits."""
        if self._piece is None:
            if self._asides:
                self._piece = memoryview(self._asides.popleft())
            elif self._waiting:
                frames = self._waiting.popleft()
                self._sent.append(frames)
                self._piece = memoryview(frames)
        return self._piece

    def sent(self, count: int) -> None:
        """Note how much of that piece was sent."""
        if self._piece is not None:
            self._piece = self._piece[count:] if count < len(self._piece) else None

    def taken(self, count: int) -> None:
        """Drop what was taken. Raises: PeerFault for what was never sent."""
        if not self._taken <= count <= self._taken + len(self._sent):
            raise PeerFault(
                f"{count} messages were taken of a stream, and"
                f" {self._taken} to {self._taken + len(self._sent)} may have been"
            )
        while self._taken < count:
            self.kept_bytes -= len(self._sent.popleft())
            self._taken += 1

    def begin_again(self, count: int) -> None:
        """Go on over a new connection, whose other side has taken so many. Raises: as `taken`."""
        self.taken(count)
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
        self._asides.clear()
        self._piece = None
