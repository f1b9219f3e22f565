"""How hosts come into the cluster: join tokens, and the certificates that were given."""

from __future__ import annotations

from spur.events.declare import Event, event
from spur.values.ids import HostId, TokenId

__all__ = [
    "HostCertified",
    "TokenCreated",
    "TokenRevoked",
    "TokenUsed",
    "TokensForgotten",
]


@event("token.created")
class TokenCreated(Event, frozen=True):
    """A host may join with a secret; the token's id is the index of this entry."""

    digest: bytes
    """Of the secret; see `secret_digest`."""
    role: str
    """compute | login | admin | controller."""
    nodes: tuple[str, ...]
    """Nodes that the host may serve; none of them for all that the configuration gives it."""
    host: str
    """The only host that may use it; empty for any."""
    expires_ns: int


@event("token.used")
class TokenUsed(Event, frozen=True):
    """A host joined; the token admits no other."""

    token_id: TokenId
    host: str
    key: bytes
    """SHA-256 of the host's public key: it may ask for its certificate again."""
    ends_ns: int
    """When the certificate that it was given ends."""


@event("token.revoked")
class TokenRevoked(Event, frozen=True):
    """An administrator took a token back before it was used."""

    token_id: TokenId


@event("token.forgotten")
class TokensForgotten(Event, frozen=True):
    """Tokens that ended long ago are not remembered any more."""

    token_ids: tuple[TokenId, ...]


@event("host.certified")
class HostCertified(Event, frozen=True):
    """A host was given a certificate for a key of its own; the entry's stamp is when it begins."""

    host_id: HostId
    key: bytes
    """SHA-256 of the host's public key."""
    ends_ns: int
