"""`spur token create | list | revoke`: let a host join, see who was let in, take a token back."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from spur.client.blocking import BlockingClient
from spur.values.errors import OperatorFault, Rejection
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.ids import TokenId
from spur.values.jointoken import (
    SECRET_SIZE,
    TOKEN_ROLES,
    JoinToken,
    format_join_token,
    secret_digest,
)
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.joining import CreateToken, ListTokens, RevokeToken, TokenCreated, TokenList
from spur_cli.arguments import add_forms, add_socket, client_of, form_of, parser_of
from spur_cli.output.result import Column, Listing, Value
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["moment_words", "run"]

TOKENS = (
    Column("id", "ID", is_right=True),
    Column("state", "STATE"),
    Column("role", "ROLE"),
    Column("host", "HOST"),
    Column("nodes", "NODES"),
    Column("expires", "EXPIRES"),
    Column("created_by", "CREATED_BY", is_right=True),
    Column("used_by", "USED_BY"),
    Column("used", "USED"),
)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"([1-9][0-9]{0,8})([smhd])\Z")


def run(arguments: list[str], command: Command) -> int:
    """Run the verb that the registry's row names.

    Raises: OperatorFault when the cluster refuses, or no controller answers.
    """
    verb = command.words[-1]
    parser = parser_of(command)
    _OPTIONS[verb](parser)
    add_socket(parser)
    options = parser.parse_args(arguments)
    with client_of(options) as client:
        return _VERBS[verb](client, options)


def _create(client: BlockingClient, options: argparse.Namespace) -> int:
    nodes = _nodes(options.nodes)
    replica = client.ask(ShowReplica(), ReplicaInfo)
    if isinstance(replica, Rejection) or not replica.authority:
        raise OperatorFault("the controller does not say which authority it has; no token was made")
    secret = os.urandom(SECRET_SIZE)
    request = CreateToken(
        digest=secret_digest(secret),
        role=options.role,
        nodes=nodes,
        host=options.host,
        valid_s=options.valid,
    )
    created = client.ask(request, TokenCreated)
    if isinstance(created, Rejection):
        raise OperatorFault(_sentence(created))
    token = format_join_token(JoinToken(authority=replica.authority, secret=secret))
    sys.stdout.write(f"{token}\n")
    sys.stderr.write(
        f"token {created.token_id} lets one {options.role} host join until"
        f" {moment_words(created.expires_ns)}; it is shown this once\n"
        "hint: keep it in a file of mode 0600 on the new host, for spur join --token-file FILE\n"
    )
    return 0


def _list(client: BlockingClient, options: argparse.Namespace) -> int:
    found = client.ask(ListTokens(), TokenList)
    if isinstance(found, Rejection):
        raise OperatorFault(_sentence(found))
    rows: list[dict[str, Value]] = [
        {
            "id": int(token.token_id),
            "state": token.state,
            "role": token.role,
            "host": token.host,
            "nodes": format_hostlist(token.nodes),
            "expires": moment_words(token.expires_ns),
            "created_by": token.uid,
            "used_by": token.used_by,
            "used": moment_words(token.used_ns) if token.used_ns else "",
        }
        for token in found.tokens
    ]
    show(Listing(columns=TOKENS, rows=rows, empty="no tokens"), form_of(options))
    return 0


def _revoke(client: BlockingClient, options: argparse.Namespace) -> int:
    answer = client.do(RevokeToken(TokenId(options.id)))
    if isinstance(answer, Rejection):
        raise OperatorFault(_sentence(answer))
    sys.stderr.write(f"token {options.id} lets nobody in any more\n")
    return 0


def moment_words(time_ns: int) -> str:
    """Return a moment for people and scripts alike: UTC, whole seconds."""
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sentence(rejection: Rejection) -> str:
    return f"{rejection.text}\nhint: {rejection.hint}" if rejection.hint else rejection.text


def _nodes(text: str) -> tuple[str, ...]:
    try:
        return tuple(parse_hostlist(text)) if text else ()
    except ValueError as error:
        raise OperatorFault(f"{error}; no token was created") from error


def _span(text: str) -> int:
    found = _SPAN.match(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time, such as 30m, 1h or 2d")
    return int(found[1]) * _UNITS[found[2]]


def _create_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--role", choices=TOKEN_ROLES, required=True)
    parser.add_argument(
        "--nodes",
        default="",
        help="nodes that the host may serve (default: what the configuration gives it)",
    )
    parser.add_argument("--host", default="", help="the only host that may use it (default: any)")
    parser.add_argument(
        "--valid", type=_span, default="1h", help="how long, such as 30m or 2d (default: 1h)"
    )


def _revoke_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=int, help="its number, as `spur token list` shows it")


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "create": _create_options,
    "list": add_forms,
    "revoke": _revoke_options,
}

_VERBS: dict[str, Callable[[BlockingClient, argparse.Namespace], int]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
}
