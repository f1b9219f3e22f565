"""What a cluster on this machine consists of, and where it lies.

DIR/up.json                 the layout, as below
DIR/conf                    the configuration that was handed in, and `spur.address`
DIR/controllers/c1          a controller's directory
DIR/agents/spurd-n1         an agent's directory
DIR/log/c1.log              what a process says
DIR/run/c1.pid              which process it is
DIR/c1.sock                 a controller's Unix socket
DIR/relay.sock              the Unix socket for commands, whoever leads
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec

from spur.server.files import write_whole
from spur.values.errors import OperatorFault

__all__ = [
    "LAYOUT_FILE",
    "RELAY",
    "SOCKET_PATH_BYTES_MAX",
    "AgentPlace",
    "ControllerPlace",
    "Layout",
    "Places",
    "Wish",
    "default_directory",
    "free_ports",
]

LAYOUT_FILE = "up.json"

SOCKET_PATH_BYTES_MAX = 107
"""Source: unix(7), sun_path."""

RELAY = "relay"
"""What the process is called that takes this machine's commands to the controllers."""

LONGEST_NAME = "spurd-n9999"

PORTS = range(25_000, 32_000)
"""Below the ports that Linux hands out to outgoing connections, so that a cluster that is down for
a while finds its ports free again."""

HOST = "127.0.0.1"


class ControllerPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A controller and its addresses."""

    name: str
    raft_address: str
    rpc_address: str
    is_made: bool = True
    """False while it is still to be added to a cluster that lives."""


class AgentPlace(msgspec.Struct, frozen=True, kw_only=True):
    """An agent, and what each of its nodes has."""

    name: str
    """Of its host, as the cluster knows it."""
    nodes: tuple[str, ...] = ()
    """Empty for the one that takes this machine's commands to the controllers."""
    address: str = ""
    cpus: int = 0
    memory_mib: int = 0
    gpu_kind: str = ""
    gpus: int = 0

    @property
    def key(self) -> str:
        """What its process and files are called here; no host can have a controller's name so."""
        return f"spurd-{self.name}" if self.nodes else RELAY


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a cluster should be, as far as somebody said."""

    nodes: int = 4
    nodes_per_agent: int = 0
    """0 for one each, or more when there are many."""
    cpus: int = 8
    """Of each node, as are the GPUs."""
    gpus: str = ""
    has_conf: bool = False
    """Files of somebody's own were handed in; the numbers above mean nothing then."""


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `spur up` has made in a directory, and brings back."""

    uid: int
    """Whose cluster it is."""
    controllers: tuple[ControllerPlace, ...]
    agents: tuple[AgentPlace, ...] = ()
    wish: Wish
    is_configured: bool = False
    """Whether the cluster has taken a configuration that fits the wish."""


class Places:
    """The paths of one cluster."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.conf = directory / "conf"
        self.controllers = directory / "controllers"
        self.agents = directory / "agents"
        self.bin = directory / "bin"

    def controller(self, name: str) -> Path:
        """Return a controller's directory."""
        return self.controllers / name

    def agent(self, key: str) -> Path:
        """Return an agent's directory."""
        return self.agents / key

    def socket(self, name: str) -> Path:
        """Return the Unix socket of a process.

        Raises: OperatorFault when its path is longer than a socket's may be.
        """
        path = self.directory / f"{name}.sock"
        excess = len(os.fsencode(path)) - SOCKET_PATH_BYTES_MAX
        if excess > 0:
            raise OperatorFault(
                f"{path} is {excess} bytes too long for a socket's path; name a shorter directory"
            )
        return path

    def log(self, name: str) -> Path:
        """Return where a process's words go."""
        return self.directory / "log" / f"{name}.log"

    def pid(self, name: str) -> Path:
        """Return where it is written which process this is."""
        return self.directory / "run" / f"{name}.pid"

    def read(self) -> Layout | None:
        """Return the layout; None when nothing was made here yet.

        Raises: OperatorFault when it can't be read, or is another user's.
        """
        path = self.directory / LAYOUT_FILE
        try:
            layout = msgspec.json.decode(path.read_bytes(), type=Layout)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
            raise OperatorFault(f"{path} can't be read: {error}; nothing was done") from error
        if layout.uid != os.geteuid():
            raise OperatorFault(
                f"the cluster in {self.directory} is user {layout.uid}'s; ask as that user, or name"
                " another directory; nothing was done"
            )
        return layout

    def write(self, layout: Layout) -> None:
        """Write the layout, whole or not at all."""
        write_whole(self.directory / LAYOUT_FILE, msgspec.json.encode(layout))

    def make(self) -> None:
        """Make the directories that are not there.

        Raises: OperatorFault when they can't be made, or a socket's path would be too long.
        """
        self.socket(LONGEST_NAME)
        try:
            for part in (".", "conf", "log", "run"):
                (self.directory / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OperatorFault(
                f"{self.directory} can't be made: {error.strerror}; nothing was started"
            ) from error


def default_directory(environment: dict[str, str]) -> Path:
    """Return where a cluster lies when nobody says where."""
    named = environment.get("SPUR_UP_DIR", "")
    if named:
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/lib/spur/up")
    home = environment.get("HOME") or "."
    return Path(environment.get("XDG_STATE_HOME") or f"{home}/.local/state") / "spur" / "up"


def free_ports() -> Iterator[str]:
    """Yield addresses on which nobody listens now, each once.

    Raises: OperatorFault when there is none left.
    """
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
        yield f"{HOST}:{port}"
    raise OperatorFault(f"no port from {PORTS.start} to {PORTS.stop - 1} is free")
