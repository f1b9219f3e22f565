"""How hosts come into the cluster: requests about join tokens, and about hosts at the desk.

What an administrator asks of tokens is here, and what the desk of a controller asks of the cluster
for a host that stands before it; the desk's own messages are in `desk.py`.
"""

from __future__ import annotations

from spur.values.ids import HostId, TokenId
from spur.wire.declare import Answer, Part, Request, answer, request

__all__ = [
    "CreateToken",
    "HostCertified",
    "JoinHost",
    "ListTokens",
    "RenewHost",
    "RevokeToken",
    "TokenCreated",
    "TokenInfo",
    "TokenList",
]


@request
class CreateToken(Request, frozen=True, tag="token.create"):
    """Let one host join with a secret that its maker alone knows."""

    digest: bytes
    """Of the secret; see `secret_digest`."""
    role: str
    """compute | login | admin | controller."""
    nodes: tuple[str, ...]
    """Nodes that the host may serve; none of them for all that the configuration gives it."""
    host: str
    """The only host that may use it; empty for any."""
    valid_s: int


@answer
class TokenCreated(Answer, frozen=True, tag="token.created"):
    """A host may join now."""

    token_id: TokenId
    expires_ns: int


@request
class RevokeToken(Request, frozen=True, tag="token.revoke"):
    """Take a token back that was not used."""

    token_id: TokenId


@request
class ListTokens(Request, frozen=True, tag="token.list"):
    """Ask for the tokens that are remembered; nobody's secret is in the answer."""


class TokenInfo(Part, frozen=True):
    """A join token, as people are shown it."""

    token_id: TokenId
    state: str
    """valid | used | expired | revoked."""
    role: str
    nodes: tuple[str, ...]
    host: str
    """The only host that may use it; empty for any."""
    uid: int
    """Who created it."""
    created_ns: int
    expires_ns: int
    used_by: str
    used_ns: int


@answer
class TokenList(Answer, frozen=True, tag="token.list"):
    """Tokens, the oldest first."""

    tokens: tuple[TokenInfo, ...]


@request
class JoinHost(Request, frozen=True, tag="host.join"):
    """Let a host in that showed a token; the cluster asks this of itself."""

    digest: bytes
    """Of the secret that it showed."""
    name: str
    """What its signing request names it."""
    key: bytes
    """SHA-256 of its public key."""
    role: str
    """What it means to be; empty for what the token says."""
    nodes: tuple[str, ...]
    """Nodes that it means to serve; none of them for all that it may."""
    clock_ns: int
    """Its wall clock."""
    life_s: int
    """How long its certificate is to hold."""


@request
class RenewHost(Request, frozen=True, tag="host.renew"):
    """Give a host its next certificate; the cluster asks this of itself."""

    host_id: HostId
    name: str
    """What its signing request names it; empty for a host that does not know its name."""
    key: bytes
    """SHA-256 of its public key."""
    life_s: int


@answer
class HostCertified(Answer, frozen=True, tag="host.certified"):
    """What the host's certificate is to say."""

    host_id: HostId
    """0 for a controller, whose id is given by its membership."""
    role: str
    nodes: tuple[str, ...]
    begins_ns: int
    ends_ns: int
