"""Where the cluster is that a command speaks with.

SPUR_SOCKET                          a Unix socket
spur.address beside SLURM_CONF       one address a line: unix:/path or host:port
otherwise                            the socket that a controller or agent has by default
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from spur.client.address import parse_address
from spur.values.errors import OperatorFault

__all__ = ["ADDRESS_FILE", "DEFAULT_SOCKET", "locate"]

DEFAULT_SOCKET = "/run/spur/spur.sock"

ADDRESS_FILE = "spur.address"
"""Name of the file beside slurm.conf that says where its cluster is."""


def locate(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses to ask, the best first.

    Raises: OperatorFault when the file beside SLURM_CONF has a line that is no address.
    """
    socket = environment.get("SPUR_SOCKET", "")
    if socket:
        return (f"unix:{os.path.abspath(socket)}",)
    conf = environment.get("SLURM_CONF", "")
    if conf:
        found = _read(os.path.join(os.path.dirname(os.path.abspath(conf)), ADDRESS_FILE))
        if found:
            return found
    return (f"unix:{DEFAULT_SOCKET}",)


def _read(path: str) -> tuple[str, ...]:
    """Return the addresses of a file; none when it is not there."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorFault(f"{path}: cannot be read: {error}; nobody was asked") from error
    addresses = tuple(line for line in lines if line)
    for address in addresses:
        try:
            parse_address(address)
        except ValueError as error:
            raise OperatorFault(f"{path}: {error}; nobody was asked") from error
    return addresses
