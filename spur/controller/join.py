"""Joining: what a new host does with its token.

    1. make a key, which never leaves the host
    2. knock at a controller, and hold the authority that it shows against the token
    3. over TLS that believes that authority alone: the token's secret and a signing request
    4. check the certificate, and write the directory that the daemon runs on

A join that was cut off is taken up again by the same command: the key is kept until the end, and
the same key gets the same certificate although the token is used up.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec

from spur.client.address import parse_tcp_address
from spur.client.desk import NoDesk, ask_desk, knock
from spur.client.tls import joining_context
from spur.controller.admission import Admission, draw_disk_id, make_directory
from spur.controller.birth import TLS_DIRECTORY
from spur.controller.enrol import AGENT_SETTINGS_FILE, NewAgent, write_agent
from spur.controller.settings import SETTINGS_FILE, check_controller_settings
from spur.server.agentsettings import check_agent_settings
from spur.server.credentials import (
    Credentials,
    authority_digest,
    key_pem,
    make_key,
    make_signing_request,
    read_key,
    verify_certificate,
    write_new,
)
from spur.values.errors import OperatorFault, PeerFault, Rejection
from spur.values.ids import NAME_GRAMMAR, is_name
from spur.values.jointoken import TOKEN_ROLES, JoinToken, parse_join_token
from spur.wire.desk import AskToJoin, Certified, Desk, NewController
from spur.wire.hello import HostName

__all__ = ["Joining", "check_desk", "join"]

WAIT_S = 30.0
"""How long a leader is looked for."""

CLOCK_S_MAX = 300
"""As the cluster judges it; said here too, before certificates are refused for it."""

AGENT_PORT = 6818
"""Where an agent takes streams of steps, unless told otherwise. Source: DESIGN 2."""

_KEY_FILE = "joining.key"


class Joining(NamedTuple):
    """A host that is to join. A named tuple, since a command executes this file (`execute.py`)."""

    directory: Path
    name: str
    controllers: tuple[str, ...]
    """host:port of some controllers' calls."""
    token: str
    role: str = ""
    """What it means to be; empty for what the token says."""
    nodes: tuple[str, ...] = ()
    """Nodes that it means to serve; none of them for all that it may."""
    address: str = ""
    """host:port where it will take streams of steps; empty for its own address towards the
    controllers."""
    settings: Mapping[str, str | int | bool] = MappingProxyType({})
    """Further keys of its settings file, an agent's or a controller's."""
    raft_address: str = ""
    """host:port where the other controllers will reach it; empty for a host that is none."""
    rpc_address: str = ""
    """host:port where agents and clients will reach it."""


def join(joining: Joining) -> str:
    """Join the cluster; return the sentence for whoever asked.

    Raises: OperatorFault, one sentence and perhaps a hint, when the host did not join.
    """
    token = _checked(joining)
    controller = _new_controller(joining) if joining.raft_address else None
    key = _key_of(joining.directory)
    try:
        certified = asyncio.run(_certificate(joining, token, key, controller))
    except NoDesk as fault:
        raise OperatorFault(f"no controller could be asked ({fault}); give it again") from fault
    _check_certificate(certified)
    credentials = Credentials(certificate=certified.certificate, key=key_pem(key))
    if controller is None:
        said = _write_agent(joining, certified, credentials)
    else:
        said = _write_controller(joining, controller, certified, credentials)
    (joining.directory / TLS_DIRECTORY / _KEY_FILE).unlink(missing_ok=True)
    return said


def _write_controller(
    joining: Joining, controller: NewController, certified: Certified, credentials: Credentials
) -> str:
    make_directory(
        Admission(
            directory=joining.directory,
            node_id=certified.host_id,
            disk_id=controller.disk_id,
            genesis=certified.genesis,
            members=certified.members,
            raft_address=controller.raft_address,
            rpc_address=controller.rpc_address,
            authority=certified.authority,
            credentials=credentials,
            settings=joining.settings,
        )
    )
    return (
        f"host {joining.name} joined as controller {certified.host_id};"
        f" start it: spurctld run --dir {joining.directory}"
    )


def _write_agent(joining: Joining, certified: Certified, credentials: Credentials) -> str:
    new = NewAgent(
        directory=joining.directory,
        name=joining.name,
        role=certified.role,
        controllers=certified.controllers,
        nodes=certified.nodes,
        address=_address(joining, certified),
        settings=joining.settings,
    )
    write_agent(new, certified.cluster_id, certified.authority, credentials)
    serves = f" for {', '.join(certified.nodes)}" if certified.nodes else ""
    return (
        f"host {joining.name} joined as {certified.role} host {certified.host_id}{serves};"
        f" start its agent: spurd run --dir {joining.directory}"
    )


def _checked(joining: Joining) -> JoinToken:
    """Return the token, when all that can be seen from here is right. Raises: OperatorFault."""
    try:
        token = parse_join_token(joining.token)
        for address in joining.controllers:
            parse_tcp_address(address)
        for address in (joining.address, joining.raft_address, joining.rpc_address):
            if address:
                parse_tcp_address(address)
    except ValueError as error:
        raise OperatorFault(f"{error}; nobody was asked") from error
    if not joining.controllers:
        raise OperatorFault("no controller is named; nobody was asked")
    if not is_name(joining.name):
        raise OperatorFault(
            f"{joining.name!r} is no host name: it takes {NAME_GRAMMAR}; nobody was asked\n"
            "hint: --name says another"
        )
    if joining.role not in ("", *TOKEN_ROLES):
        raise OperatorFault(
            f"role {joining.role!r}; a host joins as one of {', '.join(TOKEN_ROLES)};"
            " nobody was asked"
        )
    if bool(joining.raft_address) is not bool(joining.rpc_address):
        raise OperatorFault(
            "a controller has two addresses, --raft-address and --rpc-address; nobody was asked"
        )
    try:
        if joining.raft_address:
            check_controller_settings(joining.settings)
        else:
            check_agent_settings(joining.settings)
    except ValueError as error:
        raise OperatorFault(f"--set: {error}; nobody was asked") from error
    for name in (AGENT_SETTINGS_FILE, SETTINGS_FILE):
        if (joining.directory / name).exists():
            raise OperatorFault(
                f"{joining.directory} is in use (it has a {name}); nobody was asked\n"
                "hint: --dir names another directory"
            )
    return token


def _new_controller(joining: Joining) -> NewController:
    """Return what the cluster must know of it. Raises: OperatorFault."""
    return NewController(
        disk_id=draw_disk_id(joining.directory),
        raft_address=joining.raft_address,
        rpc_address=joining.rpc_address,
    )


def _key_of(directory: Path) -> ec.EllipticCurvePrivateKey:
    """Return this host's key: the one of a join that was cut off, or a new one, on the disk.

    Raises: OperatorFault when the directory can't be used.
    """
    path = directory / TLS_DIRECTORY / _KEY_FILE
    try:
        directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            return read_key(path.read_bytes())
        key = make_key()
        write_new(path, key_pem(key))
    except (OSError, ValueError) as error:
        raise OperatorFault(f"{path} can't be used: {error}; nobody was asked") from error
    return key


async def _certificate(
    joining: Joining,
    token: JoinToken,
    key: ec.EllipticCurvePrivateKey,
    controller: NewController | None,
) -> Certified:
    """Return what the cluster answers. Raises: OperatorFault, NoDesk."""
    desk, address = await knock(joining.controllers)
    check_desk(desk, address, token)
    question = AskToJoin(
        secret=token.secret,
        signing_request=make_signing_request(key, joining.name),
        role=joining.role if controller is None else "controller",
        nodes=joining.nodes,
        clock_ns=time.time_ns(),
        controller=controller,
    )
    others = [other for other in joining.controllers if other != address]
    answer = await ask_desk(
        [address, *others],
        lambda: joining_context(desk.authority.decode("ascii")),
        question,
        wait_s=WAIT_S,
    )
    if isinstance(answer, Rejection):
        hint = f"\nhint: {answer.hint}" if answer.hint else ""
        raise OperatorFault(f"{answer.text}{hint}")
    return answer


def check_desk(desk: Desk, address: str, token: JoinToken) -> None:
    """See that a controller is of the token's cluster. Raises: OperatorFault."""
    try:
        is_ours = authority_digest(desk.authority) == token.authority
    except PeerFault:
        is_ours = False
    if not is_ours:
        raise OperatorFault(
            f"{address} is no controller of the token's cluster: its authority has another"
            " fingerprint; the token was not shown\n"
            "hint: the address is of another cluster, or somebody answers in the controller's place"
        )
    off_s = (time.time_ns() - desk.clock_ns) / 1e9
    if abs(off_s) > CLOCK_S_MAX:
        side = "ahead of" if off_s > 0 else "behind"
        raise OperatorFault(
            f"this host's clock is {abs(off_s):.0f} s {side} the controller's at {address}; the"
            " token was not shown\nhint: set the clock (chrony, ntpd), then join again"
        )


def _check_certificate(certified: Certified) -> None:
    """See that the certificate is what it should be. Raises: OperatorFault."""
    shown = verify_certificate(
        certified.authority,
        certified.certificate,
        certified.cluster_id,
        datetime.fromtimestamp(time.time(), UTC),
    )
    expected = HostName(cluster_id=certified.cluster_id, role=certified.role, id=certified.host_id)
    if shown != expected:
        raise OperatorFault("the controller gave the certificate of another host; it was not used")


def _address(joining: Joining, certified: Certified) -> str:
    """Return where the agent will take streams: nowhere without nodes."""
    if joining.address or not certified.nodes:
        return joining.address
    return f"{_own_address(certified.controllers)}:{AGENT_PORT}"


def _own_address(controllers: Sequence[str]) -> str:
    """Return the address that this host has towards the controllers."""
    for address in controllers:
        host, port = parse_tcp_address(address)
        with suppress(OSError):
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(found[0], found[1]) as probe:
                probe.connect(found[4])  # A datagram socket: nothing is sent.
                name = str(probe.getsockname()[0])
                return f"[{name}]" if ":" in name else name
    return os.uname().nodename
