"""Enrolling a host: its id from the log, its certificate, and the directory that its agent runs on.

    spurctld issue --dir DIR --host NAME --role compute --node n1 --address n1:6818 --out AGENT_DIR

is asked on a controller's host, whose Unix socket says that it is root's wish. The directory is
then carried to the host by whatever means the site trusts. Source: LOG-CONTRACT 6.1.
"""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser as Parser
from argparse import ArgumentTypeError, Namespace, _SubParsersAction
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spur.client.address import parse_address
from spur.client.blocking import BlockingClient
from spur.client.faults import OutcomeUnknown
from spur.client.tls import credentials_in
from spur.controller.authority import CERTIFICATE_DAYS, Authority
from spur.controller.birth import AUTHORITY_DIRECTORY, TLS_DIRECTORY
from spur.controller.settings import load_settings
from spur.server.agentsettings import check_agent_settings
from spur.server.credentials import (
    Credentials,
    key_digest,
    key_pem,
    make_key,
    write_credentials,
)
from spur.values.errors import OperatorFault, Rejection
from spur.values.ids import HostId
from spur.wire.cluster import AddHost, ClusterInfo, HostAdded, ShowCluster
from spur.wire.hello import HostName

__all__ = ["AGENT_SETTINGS_FILE", "NewAgent", "add_issue_verb", "enrol", "issue", "write_agent"]

AGENT_SETTINGS_FILE = "spurd.toml"
"""What an agent reads in its directory; the agent's own room declares its keys."""

ISSUABLE_ROLES = ("admin", "login", "compute")
"""Roles of hosts that run an agent; controllers get their certificates at their birth."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewAgent:
    """An agent to be, and what its settings will say."""

    directory: Path
    name: str
    """Of the host: what the configuration's nodes call their agent."""
    role: str
    """admin | login | compute."""
    controllers: tuple[str, ...]
    """host:port of the controllers' calls."""
    nodes: tuple[str, ...] = ()
    address: str = ""
    """host:port where it will take streams of steps."""
    settings: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Further keys of its settings file."""


def enrol(client: BlockingClient, authority: Authority, new: NewAgent) -> HostId:
    """Let a host have a certificate and write its agent's directory; return the host's id.

    Asked again for the same host, it keeps the id and gets a new certificate and settings file.

    Raises: OperatorFault when the cluster refuses, or the directory can't be written; as
    `BlockingClient.ask` when no controller answers.
    """
    key = make_key()
    begins = datetime.fromtimestamp(int(time.time()), UTC)
    ends = begins + timedelta(days=CERTIFICATE_DAYS)
    asked = AddHost(
        new.name, new.role, key_digest(key.public_key()), int(ends.timestamp()) * 1_000_000_000
    )
    added = client.ask(asked, HostAdded)
    if isinstance(added, Rejection):
        raise OperatorFault(f"host {new.name!r} was not enrolled: {added.text}")
    cluster = client.ask(ShowCluster(), ClusterInfo)
    if isinstance(cluster, Rejection):
        raise OperatorFault(f"host {new.name!r} was not enrolled: {cluster.text}")
    name = HostName(cluster_id=cluster.cluster_id, role=new.role, id=added.host_id)
    certificate = authority.sign(name, key.public_key(), begins, ends)
    issued = Credentials(certificate=certificate, key=key_pem(key))
    write_agent(new, cluster.cluster_id, authority.certificate, issued)
    return added.host_id


def write_agent(
    new: NewAgent, cluster_id: bytes, authority: bytes, credentials: Credentials
) -> None:
    """Write an agent's directory, its settings last: with them it is ready.

    Raises: OperatorFault when it can't be written.
    """
    try:
        new.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        write_credentials(new.directory / TLS_DIRECTORY, authority, credentials)
        fresh = new.directory / f"{AGENT_SETTINGS_FILE}.new"
        fresh.write_text(_settings_text(new, cluster_id), encoding="utf-8")
        os.replace(fresh, new.directory / AGENT_SETTINGS_FILE)
    except OSError as error:
        raise OperatorFault(f"{new.directory} can't be written: {error}") from error


def _settings_text(new: NewAgent, cluster_id: bytes) -> str:
    """Return a settings file; TOML's basic strings and lists are spelled as JSON's."""
    table: dict[str, object] = {
        "cluster_id": cluster_id.hex(),
        "controllers": list(new.controllers),
        "nodes": list(new.nodes),
        "address": new.address,
        **new.settings,
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())


def add_issue_verb(verbs: _SubParsersAction[Parser]) -> None:
    """Add the verb `issue` to spurctld's command line."""
    verb = verbs.add_parser("issue", help="enrol a host and write its agent's directory")
    verb.add_argument("--dir", type=Path, required=True, help="a running controller's directory")
    verb.add_argument("--host", required=True, help="name of the host")
    verb.add_argument("--role", choices=ISSUABLE_ROLES, required=True)
    verb.add_argument("--out", type=Path, required=True, help="the agent's directory to be")
    verb.add_argument(
        "--node", action="append", default=[], help="a node that it serves; again for each"
    )
    verb.add_argument("--address", default="", help="host:port where it takes streams of steps")
    verb.add_argument(
        "--controller",
        action="append",
        type=_address,
        default=[],
        help="host:port of a controller's calls, again for each; that of --dir if none is given",
    )
    verb.add_argument(
        "--set", action="append", type=_setting, default=[], metavar="KEY=VALUE", help="a setting"
    )


def issue(options: Namespace) -> str:
    """Do what `spurctld issue` says; return the sentence for the one who asked.

    Raises: as `enrol`.
    """
    settings = load_settings(options.dir)
    authority = Authority.open(options.dir / AUTHORITY_DIRECTORY)
    pairs: Sequence[tuple[str, str | int | bool]] = options.set
    try:
        check_agent_settings(dict(pairs))
    except ValueError as error:
        raise OperatorFault(f"--set: {error}; nothing was done") from error
    new = NewAgent(
        directory=options.out,
        name=options.host,
        role=options.role,
        controllers=tuple(options.controller) or (settings.rpc_address,),
        nodes=tuple(options.node),
        address=options.address,
        settings=dict(pairs),
    )
    try:
        # With the controller's own certificate, the leader is found from any of them.
        tls = credentials_in(options.dir / TLS_DIRECTORY)
        socket = f"unix:{(options.dir / settings.socket).absolute()}"
        with BlockingClient([socket], tls=tls) as client:
            host_id = enrol(client, authority, new)
    except OutcomeUnknown as unknown:
        raise OperatorFault(f"{unknown}; give the same command again") from unknown
    return f"host {new.name} is {new.role} host {host_id}; its agent's directory is {new.directory}"


def _address(text: str) -> str:
    try:
        parse_address(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return text


def _setting(text: str) -> tuple[str, str | int | bool]:
    """Return a key and its value, a number or a truth where it reads as one."""
    key, equals, value = text.partition("=")
    if not (equals and key):
        raise ArgumentTypeError(f"{text!r} is not KEY=VALUE, such as gpus=8")
    if value in ("true", "false"):
        return key, value == "true"
    return key, int(value) if value.lstrip("-").isdigit() else value
