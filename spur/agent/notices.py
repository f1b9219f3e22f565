"""What agent, warm process and supervisors say to each other over one socket pair.

The agent holds one end. The other is the warm process's, and every supervisor that is forked
inherits it to say how far it has come. Each message is one packet.
"""

from __future__ import annotations

import msgspec

__all__ = [
    "NOTICE_BYTES_MAX",
    "Claimed",
    "Ended",
    "Fork",
    "Forked",
    "Gone",
    "NotForked",
    "Notice",
    "decode_fork",
    "decode_notice",
    "encode_notice",
]

NOTICE_BYTES_MAX = 16384
"""Bytes of one packet; a path has at most 4096."""


class Notice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of the packets."""


class Fork(Notice, frozen=True, tag="fork"):
    """The agent wants a supervisor for the manifest in a directory."""

    number: int
    directory: str


class Forked(Notice, frozen=True, tag="forked"):
    """There is a process, which will look for its manifest."""

    number: int
    pid: int


class NotForked(Notice, frozen=True, tag="not-forked"):
    """There is none, because the machine has no room for one more process."""

    number: int
    why: str


class Claimed(Notice, frozen=True, tag="claimed"):
    """A supervisor has the claim: the user's code runs, or is about to."""

    directory: str
    pid: int


class Ended(Notice, frozen=True, tag="ended"):
    """A supervisor has written its outcome; it may stay to hand over output."""

    directory: str
    pid: int


class Gone(Notice, frozen=True, tag="gone"):
    """A supervisor's process has ended, as it should or not; the outcome is there, or never."""

    directory: str
    pid: int
    status: int
    """As of waitpid(2)."""


_ENCODE = msgspec.msgpack.Encoder().encode
_FORKS = msgspec.msgpack.Decoder(Fork)
_NOTICES: msgspec.msgpack.Decoder[Forked | NotForked | Claimed | Ended | Gone] = (
    msgspec.msgpack.Decoder(Forked | NotForked | Claimed | Ended | Gone)
)


def encode_notice(notice: Notice) -> bytes:
    """Return the packet."""
    return _ENCODE(notice)


def decode_fork(packet: bytes) -> Fork:
    """Read what the agent asks. Raises: msgspec.MsgspecError."""
    return _FORKS.decode(packet)


def decode_notice(packet: bytes) -> Forked | NotForked | Claimed | Ended | Gone:
    """Read what the agent is told. Raises: msgspec.MsgspecError."""
    return _NOTICES.decode(packet)
