"""Join tokens, and the certificates that hosts were given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.joining import (
    HostCertified,
    TokenCreated,
    TokenRevoked,
    TokensForgotten,
    TokenUsed,
)
from spur.projections.apply import At, applies
from spur.projections.tables import Row
from spur.values.ids import TokenId

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["TokenRow", "ended_ns"]


class TokenRow(Row, frozen=True):
    """A join token; its key is its id."""

    digest: bytes
    role: str
    nodes: tuple[str, ...]
    host: str
    created_ns: int
    uid: int
    """Who created it."""
    expires_ns: int
    revoked_ns: int = 0
    """0 unless it was taken back."""
    used_ns: int = 0
    """0 until a host joined with it."""
    used_by: str = ""
    key: bytes = b""
    """Of the host that joined with it."""
    ends_ns: int = 0
    """When the certificate ends that it was given."""


def ended_ns(row: TokenRow) -> int:
    """Return the moment from which on a token admits nobody new."""
    return min(moment for moment in (row.expires_ns, row.revoked_ns, row.used_ns) if moment)


@applies(TokenCreated)
def apply_token_created(state: State, at: At, event: TokenCreated) -> None:
    """Let a host join; the token's id is the index of its entry."""
    token_id = TokenId(at.index)
    if token_id in state.tokens:
        raise ValueError("an entry creates one token")
    state.tokens.put(
        token_id,
        TokenRow(
            digest=event.digest,
            role=event.role,
            nodes=event.nodes,
            host=event.host,
            created_ns=at.time_ns,
            uid=at.actor.uid,
            expires_ns=event.expires_ns,
        ),
    )


@applies(TokenUsed)
def apply_token_used(state: State, at: At, event: TokenUsed) -> None:
    """Let nobody else in with it."""
    row = state.tokens[event.token_id]
    if row.used_ns:
        raise ValueError(f"token {event.token_id} was used already")
    used = replace(
        row, used_ns=at.time_ns, used_by=event.host, key=event.key, ends_ns=event.ends_ns
    )
    state.tokens.put(event.token_id, used)


@applies(TokenRevoked)
def apply_token_revoked(state: State, at: At, event: TokenRevoked) -> None:
    """Let nobody in with it any more."""
    row = state.tokens[event.token_id]
    state.tokens.put(event.token_id, replace(row, revoked_ns=at.time_ns))


@applies(TokensForgotten)
def apply_tokens_forgotten(state: State, at: At, event: TokensForgotten) -> None:
    """Drop their rows."""
    for token_id in event.token_ids:
        state.tokens.delete(token_id)


@applies(HostCertified)
def apply_host_certified(state: State, at: At, event: HostCertified) -> None:
    """Remember the host's key, and how long its certificate holds."""
    row = state.hosts[event.host_id]
    certified = replace(row, key=event.key, certified_ns=at.time_ns, ends_ns=event.ends_ns)
    state.hosts.put(event.host_id, certified)
