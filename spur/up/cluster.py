"""Controllers on this machine: their birth, their start, and what is asked of them as one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spur.client.blocking import BlockingClient
from spur.client.tls import credentials_in
from spur.controller.birth import SIZES, TLS_DIRECTORY, NewController, give_birth
from spur.controller.settings import SETTINGS_FILE, load_settings
from spur.slurm.configfile import parse_slurm_config
from spur.up.layout import ControllerPlace, Layout, Places, free_ports
from spur.up.processes import find, require_running, start
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE, ConfigErrors
from spur.values.errors import OperatorFault, Rejection, SpurError
from spur.wire.cluster import (
    AcceptClock,
    AddHost,
    Configured,
    HostAdded,
    Reconfigure,
)

__all__ = [
    "CONTROLLER",
    "RELAY_HOST",
    "administering",
    "configure",
    "count_controllers",
    "make_controllers",
    "plan_controllers",
    "start_controllers",
    "whole_controllers",
]

CONTROLLER = "spur.controller.main"
"""The module of a controller's process."""

RELAY_HOST = "up.relay"
"""The host whose agent takes this machine's commands to the controllers."""

LOOK_S = 1.0
"""How long is waited for an answer before it is looked whether the process is still there."""

MIB = 1 << 20

SERVING_S = 30.0
"""How long a new cluster may take until it answers, an election included."""


def count_controllers(files: Sequence[ConfigFile]) -> int:
    """Return how many controllers a new cluster has: as slurm.conf lists them, otherwise one.

    Raises: OperatorFault with everything that is wrong with the files.
    """
    if not files or files[0].name == CONFIG_FILE:
        return 1
    try:
        return len(parse_slurm_config(files).settings.controllers)
    except ConfigErrors as errors:
        raise OperatorFault(f"{errors}\nnothing was made") from errors


def plan_controllers(count: int) -> tuple[ControllerPlace, ...]:
    """Return names and addresses for the controllers of a new cluster.

    Raises: OperatorFault for a number of controllers that can't be.
    """
    if count not in SIZES:
        raise OperatorFault(
            f"{count} controllers; a cluster has 1, 3 or 5 (--controllers); nothing was made"
        )
    ports = free_ports()
    return tuple(
        ControllerPlace(name=f"c{number}", raft_address=next(ports), rpc_address=next(ports))
        for number in range(1, count + 1)
    )


def make_controllers(places: Places, layout: Layout) -> bool:
    """Make the directories of the controllers, all of them or none; whether it had to be done."""
    if places.controllers.exists():
        return False
    cradle = places.directory / f"birth.{time.time_ns()}"
    give_birth(
        [
            NewController(
                directory=cradle / place.name,
                raft_address=place.raft_address,
                rpc_address=place.rpc_address,
                name=place.name,
            )
            for place in layout.controllers
        ]
    )
    for place in layout.controllers:
        with (cradle / place.name / SETTINGS_FILE).open("a") as file:
            file.write(f'socket = "{places.socket(place.name)}"\n')
    cradle.rename(places.controllers)
    return True


def start_controllers(places: Places, layout: Layout) -> list[str]:
    """Start the controllers that do not run, and wait until the cluster answers.

    Returns the names of those that were started.

    Raises: OperatorFault when it does not answer in time; its log is named.
    """
    idle = [name for name in whole_controllers(places, layout) if find(places, name) is None]
    for name in idle:
        start(places, name, CONTROLLER, ["run", "--dir", str(places.controller(name))])
    if idle:
        _wait_until_served(places, layout)
    return idle


def whole_controllers(places: Places, layout: Layout) -> list[str]:
    """Return the names of the controllers that have been made and have their directory."""
    return [
        place.name
        for place in layout.controllers
        if place.is_made and (places.controller(place.name) / SETTINGS_FILE).exists()
    ]


def configure(places: Places, layout: Layout, files: Sequence[ConfigFile]) -> int:
    """Hand in a configuration; return how many differences there were.

    Raises: OperatorFault when it is refused.
    """
    with administering(places, layout) as client:
        answer = client.ask(Reconfigure(tuple(files)), Configured)
    if isinstance(answer, Rejection):
        raise OperatorFault(f"the configuration was refused\n{answer.text}")
    return answer.changes


def _wait_until_served(places: Places, layout: Layout) -> None:
    """Wait for a leader that decides; vouch for the clock of a single one that was down for long.

    Whoever calls `spur up` stands before this machine, and its clock is the only one there is.
    """
    end_s = time.monotonic() + SERVING_S
    answer: HostAdded | Rejection | None = None
    with administering(places, layout) as client:
        while not isinstance(answer, HostAdded):
            if isinstance(answer, Rejection) and answer.code == "clock-step":
                client.do(AcceptClock())
            elif isinstance(answer, Rejection):
                raise OperatorFault(f"the controllers refuse to begin: {answer.text}")
            try:
                # The same host asked for again keeps its id, so this may be asked at any time.
                answer = client.ask(AddHost(RELAY_HOST, "admin"), HostAdded, deadline_s=LOOK_S)
            except SpurError as fault:
                require_running(places, whole_controllers(places, layout))
                _require_room(places, layout)
                if time.monotonic() > end_s:
                    raise OperatorFault(f"the controllers do not serve: {fault}") from fault


def _require_room(places: Places, layout: Layout) -> None:
    """See that the disk is no reason why nobody leads.

    Raises: OperatorFault when so many controllers are below their second mark that no majority
    acknowledges.
    """
    full = []
    for name in whole_controllers(places, layout):
        home = places.controller(name)
        mark_mib = load_settings(home).disk_second_mark_mib
        found = os.statvfs(home)
        free_mib = found.f_bavail * found.f_frsize // MIB
        if free_mib < mark_mib:
            full.append((home, free_mib, mark_mib))
    if 2 * len(full) >= len(layout.controllers):
        home, free_mib, mark_mib = full[0]
        raise OperatorFault(
            f"{free_mib} MiB are free on the disk of {home}; with less than {mark_mib} a"
            " controller acknowledges nothing, so nobody leads\n"
            f"hint: free some room; the mark is disk_second_mark_mib in {home / SETTINGS_FILE}"
        )


@contextmanager
def administering(places: Places, layout: Layout) -> Iterator[BlockingClient]:
    """Yield a client that speaks as an administrator, whoever leads.

    It uses a controller's own certificate, which whoever owns the directory holds.
    """
    names = whole_controllers(places, layout) or [layout.controllers[0].name]
    home = places.controller(names[0])
    with BlockingClient(
        [place.rpc_address for place in layout.controllers if place.is_made],
        tls=credentials_in(home / TLS_DIRECTORY),
        deadline_s=SERVING_S,
    ) as client:
        yield client
