"""Admission of a controller to a cluster that lives: its id from the log, and its directory.

    1. a disk id is drawn                     kept for repetitions of the request
    2. AddController(name, disk id, ...)      answered with the id, once that is committed
    3. a certificate for that id              by whoever holds the authority
    4. `make_directory`                       complete when the settings file is there

It then starts as a learner, gets snapshot, ledger and blobs from its peers, and the authority's key
as well; it votes once it is level. Source: LOG-CONTRACT 5.1, 6.1.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from spur.client.blocking import BlockingClient
from spur.consensus.disk import OsDisk
from spur.consensus.faults import AlreadyCreated
from spur.consensus.genesis import Genesis
from spur.consensus.membership import Membership
from spur.consensus.opening import ReplicaOptions, create_learner
from spur.controller.authority import Authority
from spur.controller.birth import TLS_DIRECTORY
from spur.controller.settings import SETTINGS_FILE
from spur.server.credentials import Credentials, write_credentials
from spur.values.errors import OperatorFault, Rejection
from spur.wire.controllers import AddController, ControllerAdded
from spur.wire.hello import HostName

__all__ = ["Admission", "admit", "draw_disk_id", "make_directory"]

DISK_ID_FILE = "disk-id"
"""Drawn before anything is asked, so that asking again adds no second controller."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """Everything that a new controller's directory is made of."""

    directory: Path
    node_id: int
    disk_id: bytes
    genesis: bytes
    members: bytes
    """The membership with it."""
    raft_address: str
    rpc_address: str
    authority: bytes
    """The authority's certificate, as PEM; its key comes from peers later."""
    credentials: Credentials
    settings: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Further keys of its settings file."""


def draw_disk_id(directory: Path) -> bytes:
    """Return the disk id of a directory to be; drawn once, and kept there.

    Raises: OperatorFault when the directory is in use.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        names = {path.name for path in directory.iterdir()}
        file = directory / DISK_ID_FILE
        if DISK_ID_FILE in names and SETTINGS_FILE not in names:
            return file.read_bytes()
        if names - {TLS_DIRECTORY}:  # where a host that joins keeps its key already
            raise OperatorFault(
                f"{directory} is not empty; a new controller needs an empty directory; nothing was"
                " made"
            )
        fresh = directory / f"{DISK_ID_FILE}.new"
        fresh.write_bytes(secrets.token_bytes(16))
        os.replace(fresh, file)
        return file.read_bytes()
    except OSError as error:
        raise OperatorFault(f"{directory} can't be written: {error.strerror}") from error


def make_directory(admission: Admission, options: ReplicaOptions | None = None) -> None:
    """Make the directory of a controller that was added.

    Made again after an interruption, it is completed.

    Raises: OperatorFault, DiskFault.
    """
    directory = admission.directory
    write_credentials(directory / TLS_DIRECTORY, admission.authority, admission.credentials)
    try:
        create_learner(
            OsDisk(str(directory)),
            Genesis.decode(admission.genesis),
            me=admission.node_id,
            disk_id=admission.disk_id,
            members=Membership.decode(admission.members),
            options=options or ReplicaOptions(),
        )
    except AlreadyCreated:
        if (directory / SETTINGS_FILE).exists():
            raise
    settings = {
        "node_id": admission.node_id,
        "rpc_address": admission.rpc_address,
        "raft_address": admission.raft_address,
        **admission.settings,
    }
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    fresh = directory / f"{SETTINGS_FILE}.new"
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, directory / SETTINGS_FILE)


def admit(
    client: BlockingClient,
    authority: Authority,
    *,
    directory: Path,
    name: str,
    raft_address: str,
    rpc_address: str,
) -> int:
    """Add a controller where the authority is at hand, and make its directory; return its id.

    Interrupted, it is simply done again.

    Raises: OperatorFault when the cluster refuses, or the directory can't be made; as
    `BlockingClient.ask` when no controller answers.
    """
    disk_id = draw_disk_id(directory)
    added = client.ask(AddController(name, disk_id, raft_address, rpc_address), ControllerAdded)
    if isinstance(added, Rejection):
        hint = f"\nhint: {added.hint}" if added.hint else ""
        raise OperatorFault(f"controller {name} was not added: {added.text}{hint}")
    cluster_id = Genesis.decode(added.genesis).cluster_id
    host = HostName(cluster_id=cluster_id, role="controller", id=added.node_id)
    now = datetime.fromtimestamp(time.time(), UTC)
    make_directory(
        Admission(
            directory=directory,
            node_id=added.node_id,
            disk_id=disk_id,
            genesis=added.genesis,
            members=added.members,
            raft_address=raft_address,
            rpc_address=rpc_address,
            authority=authority.certificate,
            credentials=authority.issue(host, now),
        )
    )
    return added.node_id
