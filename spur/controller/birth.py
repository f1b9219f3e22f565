"""The birth of a cluster: genesis, authority, and a directory for each controller.

Everything that must be the same on every member is made once, here; each directory is complete
when this returns and can be carried to its host. Whoever holds a directory holds the keys in it.
"""

from __future__ import annotations

import secrets
import time
from argparse import ArgumentParser, ArgumentTypeError, _SubParsersAction
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from spur.client.address import parse_tcp_address
from spur.consensus.disk import OsDisk
from spur.consensus.genesis import SEGMENT_ENTRIES, Genesis
from spur.consensus.membership import Member, Membership
from spur.consensus.opening import ReplicaOptions, create_replica
from spur.controller.authority import Authority
from spur.controller.settings import SETTINGS_FILE
from spur.server.credentials import write_credentials
from spur.values.errors import OperatorFault
from spur.values.ids import NAME_GRAMMAR, is_name
from spur.wire.hello import HostName

__all__ = [
    "AUTHORITY_DIRECTORY",
    "SIZES",
    "TLS_DIRECTORY",
    "NewController",
    "add_create_verb",
    "give_birth",
]

TLS_DIRECTORY = "tls"
AUTHORITY_DIRECTORY = "authority"

SIZES = (1, 3, 5)
"""Controllers of a new cluster: an odd number, so that a half is never a majority."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewController:
    """Where a controller will live and be reached."""

    directory: Path
    raft_address: str
    rpc_address: str
    name: str = ""
    """Of its host; without one it is c1, c2 and so on, in the order of the controllers."""


def add_create_verb(verbs: _SubParsersAction[ArgumentParser]) -> None:
    """Add the verb `create` to spurctld's command line; its option is `controllers`."""
    verb = verbs.add_parser("create", help="make a cluster of 1, 3 or 5 controllers")
    verb.add_argument(
        "controllers",
        nargs="+",
        type=_new_controller,
        metavar="DIR=RAFT_ADDRESS,RPC_ADDRESS[,NAME]",
        help="directory to be; host:port for other controllers; host:port for agents and commands",
    )


def _new_controller(text: str) -> NewController:
    directory, equals, addresses = text.partition("=")
    raft, comma, rest = addresses.partition(",")
    rpc, _, name = rest.partition(",")
    if not (directory and equals and comma):
        raise ArgumentTypeError(
            f"{text!r} is not DIR=RAFT_ADDRESS,RPC_ADDRESS, such as"
            " /var/lib/spur=10.0.0.1:6821,10.0.0.1:6816"
        )
    if name and (not is_name(name) or name.isdigit()):
        raise ArgumentTypeError(f"{name!r} is no controller's name: it takes {NAME_GRAMMAR}")
    for address in (raft, rpc):
        try:
            parse_tcp_address(address)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error
    return NewController(directory=Path(directory), raft_address=raft, rpc_address=rpc, name=name)


def give_birth(
    controllers: Sequence[NewController],
    now: datetime | None = None,
    options: ReplicaOptions | None = None,
    *,
    segment_entries: int = SEGMENT_ENTRIES,
) -> Genesis:
    """Make a cluster of 1, 3 or 5 controllers; return its genesis.

    `segment_entries` is the length of a ledger segment, for ever.

    Raises: OperatorFault when a directory is in use or the number is another; nothing is made.
    """
    if len(controllers) not in SIZES:
        raise OperatorFault(
            f"{len(controllers)} controllers; a cluster has 1, 3 or 5, so that one side of every"
            " network partition can decide; nothing was made"
        )
    for new in controllers:
        if new.directory.exists() and any(new.directory.iterdir()):
            raise OperatorFault(
                f"{new.directory} is not empty; a new controller needs an empty directory;"
                " nothing was made"
            )
    now = now or datetime.fromtimestamp(time.time(), UTC)
    cluster_id = secrets.token_bytes(16)
    members = tuple(
        Member(
            number,
            secrets.token_bytes(16),
            True,
            new.raft_address,
            new.rpc_address,
            new.name or f"c{number}",
        )
        for number, new in enumerate(controllers, 1)
    )
    if len({member.name for member in members}) < len(members):
        raise OperatorFault("two controllers have the same name; nothing was made")
    genesis = Genesis(
        cluster_id=cluster_id,
        membership=Membership(members).encode(),
        segment_entries=segment_entries,
    )
    for new in controllers:
        new.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.directory.chmod(0o700)
    first = controllers[0].directory
    authority = Authority.create(first / AUTHORITY_DIRECTORY, cluster_id, now)
    for member, new in zip(members, controllers, strict=True):
        _make_directory(member, new, authority, genesis, now, options or ReplicaOptions())
        if new.directory != first:
            _copy_authority(first, new.directory)
    return genesis


def _make_directory(
    member: Member,
    new: NewController,
    authority: Authority,
    genesis: Genesis,
    now: datetime,
    options: ReplicaOptions,
) -> None:
    name = HostName(cluster_id=genesis.cluster_id, role="controller", id=member.id)
    write_credentials(
        new.directory / TLS_DIRECTORY, authority.certificate, authority.issue(name, now)
    )
    create_replica(OsDisk(str(new.directory)), genesis, me=member.id, options=options)
    settings = (
        f"node_id = {member.id}\n"
        f'rpc_address = "{new.rpc_address}"\n'
        f'raft_address = "{new.raft_address}"\n'
    )
    (new.directory / SETTINGS_FILE).write_text(settings)


def _copy_authority(source: Path, target: Path) -> None:
    """Every controller holds the authority, so that losing one host loses no cluster."""
    (target / AUTHORITY_DIRECTORY).mkdir(mode=0o700)
    for path in sorted((source / AUTHORITY_DIRECTORY).iterdir()):
        copy = target / AUTHORITY_DIRECTORY / path.name
        copy.touch(mode=0o600)
        copy.write_bytes(path.read_bytes())
