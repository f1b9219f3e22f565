"""Join tokens: what a person carries from an administrator's terminal to a new host.

    spur-join-1-<base64 of: SHA-256 of the authority's certificate, secret, CRC-32 of both>

The first half says who the controllers are, so that the host can tell them from somebody in
between; the second proves to them that the host was expected. The log knows its hash alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import NamedTuple

__all__ = [
    "SECRET_SIZE",
    "TOKEN_ROLES",
    "JoinToken",
    "format_join_token",
    "parse_join_token",
    "secret_digest",
]

SECRET_SIZE = 32
_DIGEST_SIZE = 32
_CHECK_SIZE = 4
_PREFIX = "spur-join-1-"

TOKEN_ROLES = ("compute", "login", "admin", "controller")
"""What a host may join as."""


class JoinToken(NamedTuple):
    """A token's two halves."""

    authority: bytes
    """SHA-256 of the certificate of the cluster's authority."""
    secret: bytes


def format_join_token(token: JoinToken) -> str:
    """Return a token as it is printed: one word."""
    body = token.authority + token.secret
    check = binascii.crc32(body).to_bytes(_CHECK_SIZE, "big")
    return _PREFIX + base64.urlsafe_b64encode(body + check).decode().rstrip("=")


def parse_join_token(text: str) -> JoinToken:
    """Return the token that a person handed in; white space round it does not matter.

    Raises: ValueError, one sentence that does not repeat the text, when it is none.
    """
    word = text.strip()
    if not word.startswith(_PREFIX):
        raise ValueError(f"this is no join token: one begins with {_PREFIX!r}")
    encoded = word.removeprefix(_PREFIX)
    try:
        data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except ValueError:
        data = b""
    body, check = data[:-_CHECK_SIZE], data[-_CHECK_SIZE:]
    whole = len(body) == _DIGEST_SIZE + SECRET_SIZE
    if not whole or binascii.crc32(body) != int.from_bytes(check, "big"):
        raise ValueError("this join token is not whole, or was mistyped; copy it once more")
    return JoinToken(authority=body[:_DIGEST_SIZE], secret=body[_DIGEST_SIZE:])


def secret_digest(secret: bytes) -> bytes:
    """Return what the log keeps of a token's secret."""
    return hashlib.sha256(b"spur-join-token" + secret).digest()
