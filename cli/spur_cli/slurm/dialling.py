"""Reaching the agent of this host, which passes on what is said to nodes."""

from __future__ import annotations

import os
import socket

from spur.client.address import UnixAddress, parse_address
from spur.client.locate import locate
from spur.slurm.wording import SlurmError, error_line
from spur_cli.slurm.session import Session

__all__ = ["dial_agent"]

CONNECT_S = 5.0


def _relay(session: Session) -> str:
    """Return the path of the agent's socket on this host. Raises: SlurmError without one."""
    path = session.environment.get("SPUR_AGENT_SOCKET", "")
    if path:
        return path
    for text in locate(session.environment):
        address = parse_address(text)
        if isinstance(address, UnixAddress):
            return address.path
    raise SlurmError(
        error_line(
            session.program, "tasks are reached through the agent of this host; none is known"
        ),
        "hint: run spurd here, or name its socket in SPUR_AGENT_SOCKET",
    )


def dial_agent(session: Session) -> socket.socket:
    """Connect to the agent of this host. Raises: SlurmError when there is none."""
    return _connected(session, _relay(session))


def _connected(session: Session, path: str) -> socket.socket:
    """Connect to the agent of this host. Raises: SlurmError when nobody listens."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connected.settimeout(CONNECT_S)
    try:
        connected.connect(path)
    except OSError as error:
        connected.close()
        why = os.strerror(error.errno) if error.errno else str(error)
        sentence = f"the agent of this host cannot be reached at {path}: {why}"
        raise SlurmError(error_line(session.program, sentence)) from error
    connected.setblocking(False)
    return connected
