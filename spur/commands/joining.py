"""Commands about join tokens, and about hosts that come with one or want their next certificate.

Who proves what is the desk's affair (`spur.controller.desk`); here is judged what follows. A token
is used up in the very entry that lets its host in. A host that asks again with the same key is
told the same.
"""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.events.cluster import HostAdded
from spur.events.declare import Event
from spur.events.joining import HostCertified as HostWasCertified
from spur.events.joining import TokenCreated as TokenWasCreated
from spur.events.joining import TokenRevoked, TokensForgotten, TokenUsed
from spur.projections.joining import TokenRow, ended_ns
from spur.projections.nodes import agent_of, nodes_of_agent
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist
from spur.values.ids import NAME_GRAMMAR, HostId, TokenId, is_name
from spur.values.jointoken import TOKEN_ROLES
from spur.values.words import with_article
from spur.wire.declare import Done
from spur.wire.joining import (
    CreateToken,
    HostCertified,
    JoinHost,
    ListTokens,
    RenewHost,
    RevokeToken,
    TokenCreated,
    TokenInfo,
    TokenList,
)

__all__ = [
    "decide_create_token",
    "decide_join_host",
    "decide_list_tokens",
    "decide_renew_host",
    "decide_revoke_token",
]

TOKENS_MAX = 10_000
"""Tokens that are remembered at once, so that their list is one answer."""

VALID_S_MAX = 30 * 86_400
"""A token that lies about for longer is one too many."""

REMEMBERED_NS = 7 * 86_400 * 1_000_000_000
"""How long a token that ended is remembered, so that who comes too late is told why."""

FORGOTTEN_MAX = 500
"""Old tokens that one entry drops."""

CLOCK_S_MAX = 300
"""How far a new host's clock may be off; as Kerberos takes it."""

_NS = 1_000_000_000


@command(CreateToken, permission=Permission.ADMINISTRATOR, needs_room=True)
def decide_create_token(
    state: State, request: CreateToken, context: Context
) -> Decision | Rejection:
    """Remember the secret's hash, and drop tokens that ended long ago."""
    wrong = _wrong_with_token(state, request)
    if wrong:
        return Rejection("invalid-value", f"{wrong}; no token was created")
    oldest_ns = context.now_ns - REMEMBERED_NS
    old = [
        token_id
        for token_id in state.tokens.sorted_keys()
        if ended_ns(state.tokens[token_id]) < oldest_ns
    ][:FORGOTTEN_MAX]
    if len(state.tokens) - len(old) >= TOKENS_MAX:
        return Rejection(
            "limit-exceeded", f"{TOKENS_MAX} tokens are remembered already; no token was created"
        )
    expires_ns = context.now_ns + request.valid_s * _NS
    created = TokenWasCreated(
        digest=request.digest,
        role=request.role,
        nodes=request.nodes,
        host=request.host,
        expires_ns=expires_ns,
    )
    events: list[Event] = [TokensForgotten(tuple(old))] if old else []
    answer = TokenCreated(TokenId(context.index), expires_ns)
    return Decision((*events, created), answer)


def _wrong_with_token(state: State, request: CreateToken) -> str:
    """Return what is wrong with a token to be; empty when nothing is."""
    if len(request.digest) != 32 or state.token_of_digest.key(request.digest) is not None:
        return "the secret's hash is none, or known already"
    if request.role not in TOKEN_ROLES:
        return f"role {request.role!r}; a host joins as one of {', '.join(TOKEN_ROLES)}"
    if request.host and not is_name(request.host):
        return f"{request.host!r} is no host name: it takes {NAME_GRAMMAR}"
    if not 1 <= request.valid_s <= VALID_S_MAX:
        days = VALID_S_MAX // 86_400
        return f"a token valid for {request.valid_s} s; it takes 1 s to {days} days"
    if request.nodes and request.role != "compute":
        return f"{with_article(request.role)} host serves no nodes"
    if len(set(request.nodes)) < len(request.nodes):
        return "a node is named twice"
    for node in request.nodes:
        agent = agent_of(state, node)
        if agent is None:
            return f"node {node!r} is not configured"
        if request.host and agent != request.host:
            return f"the configuration gives node {node!r} to host {agent!r}"
    return ""


@command(RevokeToken, permission=Permission.ADMINISTRATOR)
def decide_revoke_token(
    state: State, request: RevokeToken, context: Context
) -> Decision | Rejection:
    """Take a token back. One that is used lets nobody in anyway: its host is removed instead."""
    row = state.tokens.get(request.token_id)
    if row is None:
        return Rejection(
            "unknown-token", f"no token has the id {request.token_id}; nothing was changed"
        )
    if row.used_ns:
        return Rejection(
            "token-ended",
            f"host {row.used_by!r} joined with token {request.token_id}; nothing was changed",
            f"`spur host remove {row.used_by}` takes the host out of the cluster",
        )
    if row.revoked_ns:
        return Decision((), Done())
    return Decision((TokenRevoked(request.token_id),), Done())


@command(ListTokens, permission=Permission.ADMINISTRATOR, reads=True)
def decide_list_tokens(state: State, request: ListTokens, context: Context) -> Decision:
    """Show the tokens that are remembered."""
    tokens = tuple(
        TokenInfo(
            token_id=token_id,
            state=_state_of(row, context.now_ns),
            role=row.role,
            nodes=row.nodes,
            host=row.host,
            uid=row.uid,
            created_ns=row.created_ns,
            expires_ns=row.expires_ns,
            used_by=row.used_by,
            used_ns=row.used_ns,
        )
        for token_id, row in ((each, state.tokens[each]) for each in state.tokens.sorted_keys())
    )
    return Decision((), TokenList(tokens))


def _state_of(row: TokenRow, now_ns: int) -> str:
    if row.used_ns:
        return "used"
    if row.revoked_ns:
        return "revoked"
    return "valid" if now_ns < row.expires_ns else "expired"


# -- hosts


@command(JoinHost, permission=Permission.CLUSTER, remembered=False)
def decide_join_host(state: State, request: JoinHost, context: Context) -> Decision | Rejection:
    """Let the host in and use up its token, in one entry."""
    token_id = state.token_of_digest.key(request.digest)
    if token_id is None:
        return _refused("unknown-token", "the cluster knows no such token")
    row = state.tokens[token_id]
    refused = _refuse_token(token_id, row, request, context.now_ns)
    if refused is not None:
        return refused
    nodes = _nodes_for(state, row, request)
    if isinstance(nodes, Rejection):
        return nodes
    host_id = state.host_of_name.key(request.name)
    host = None if host_id is None else state.hosts[host_id]
    if row.used_ns:
        # The same host again, by its key: what it was told may have been lost on the way.
        if row.role != "controller" and (host is None or host.key != request.key):
            return _refused("unknown-host", f"host {request.name!r} was removed since it joined")
        given = HostId(0) if host_id is None or row.role == "controller" else host_id
        return Decision((), HostCertified(given, row.role, nodes, row.used_ns, row.ends_ns))
    ends_ns = context.now_ns + request.life_s * _NS
    used = TokenUsed(token_id, request.name, request.key, ends_ns)
    if row.role == "controller":
        answer = HostCertified(HostId(0), row.role, (), context.now_ns, ends_ns)
        return Decision((used,), answer)
    if host is not None and (host.role, host.key) != (row.role, request.key):
        what = (
            f"{with_article(host.role)} host"
            if host.role != row.role
            else "a member with another key"
        )
        return _refused(
            "wrong-state",
            f"host {request.name!r} is in the cluster already, as {what}",
            f"if that host is gone or was made anew: `spur host remove {request.name}`, then join",
        )
    given = HostId(context.index) if host_id is None else host_id
    events: list[Event] = [] if host_id is not None else [HostAdded(request.name, row.role)]
    certified = HostWasCertified(given, request.key, ends_ns)
    answer = HostCertified(given, row.role, nodes, context.now_ns, ends_ns)
    return Decision((*events, certified, used), answer)


def _refuse_token(
    token_id: TokenId, row: TokenRow, request: JoinHost, now_ns: int
) -> Rejection | None:
    """Return why a token does not let this host in, or None."""
    if row.used_ns and (row.used_by, row.key) != (request.name, request.key):
        return _refused(
            "token-ended",
            f"token {token_id} was used by host {row.used_by!r}, and lets nobody else in",
        )
    if row.revoked_ns:
        return _refused("token-ended", f"token {token_id} was revoked")
    if not row.used_ns and now_ns >= row.expires_ns:
        ago_s = (now_ns - row.expires_ns) // _NS
        return _refused("token-ended", f"token {token_id} expired {ago_s} s ago")
    if not is_name(request.name):
        return _refused(
            "invalid-value", f"{request.name!r} is no host name: it takes {NAME_GRAMMAR}"
        )
    if row.host not in ("", request.name):
        return _refused(
            "not-permitted",
            f"token {token_id} is for host {row.host!r}; the signing request names"
            f" {request.name!r}",
        )
    if request.role not in ("", row.role):
        return _refused(
            "not-permitted",
            f"token {token_id} is for {with_article(row.role)} host,"
            f" not {with_article(request.role)} host",
        )
    if row.role == "controller" and request.role != "controller":
        return _refused(
            "not-permitted",
            f"token {token_id} is for a controller, which says where it is to be reached",
            "give --raft-address and --rpc-address",
        )
    off_s = (request.clock_ns - now_ns) / _NS
    if abs(off_s) > CLOCK_S_MAX:
        side = "ahead of" if off_s > 0 else "behind"
        return _refused(
            "clock-step",
            f"the host's clock is {abs(off_s):.0f} s {side} the cluster's",
            "set its clock (chrony, ntpd), then join again",
        )
    return None


def _nodes_for(state: State, row: TokenRow, request: JoinHost) -> tuple[str, ...] | Rejection:
    """Return the nodes that a host is to serve: what is configured, within what its token says."""
    if row.role != "compute":
        if request.nodes:
            return _refused("invalid-value", f"{with_article(row.role)} host serves no nodes")
        return ()
    configured = nodes_of_agent(state, request.name)
    allowed = [node for node in configured if not row.nodes or node in row.nodes]
    for node in request.nodes:
        if node not in configured:
            return _refused(
                "not-permitted", f"the configuration does not give node {node!r} to this host"
            )
        if node not in allowed:
            shown = format_hostlist(list(row.nodes))
            return _refused("not-permitted", f"the token is for nodes {shown}, not for {node!r}")
    if not allowed:
        of_token = f" of {format_hostlist(list(row.nodes))}" if row.nodes else ""
        return _refused(
            "unknown-node",
            f"the configuration gives host {request.name!r} no nodes{of_token}",
            "a node is served by the host of its own name, or of its NodeHostname",
        )
    return request.nodes or tuple(allowed)


@command(RenewHost, permission=Permission.CLUSTER, remembered=False)
def decide_renew_host(state: State, request: RenewHost, context: Context) -> Decision | Rejection:
    """Give a host its next certificate, unless it was removed."""
    host = state.hosts.get(request.host_id)
    if host is None:
        return Rejection(
            "unknown-host",
            f"host {request.host_id} was removed from the cluster; it gets no certificate",
        )
    if request.name not in ("", host.name):
        return Rejection(
            "not-permitted",
            f"the signing request names {request.name!r}; this is host {host.name!r}; it gets no"
            " certificate",
        )
    if host.key == request.key and host.certified_ns and context.now_ns < host.ends_ns:
        answer = HostCertified(request.host_id, host.role, (), host.certified_ns, host.ends_ns)
        return Decision((), answer)
    ends_ns = context.now_ns + request.life_s * _NS
    answer = HostCertified(request.host_id, host.role, (), context.now_ns, ends_ns)
    return Decision((HostWasCertified(request.host_id, request.key, ends_ns),), answer)


def _refused(code: str, text: str, hint: str = "") -> Rejection:
    return Rejection(code, f"{text}; the host did not join", hint)
