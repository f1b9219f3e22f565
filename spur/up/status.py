"""What runs of a cluster, asked of the processes themselves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from spur.client.blocking import BlockingClient
from spur.client.tls import credentials_in, validity_of
from spur.controller.birth import TLS_DIRECTORY
from spur.up.layout import AgentPlace, ControllerPlace, Layout, Places
from spur.up.processes import children_of, find, memory_kib
from spur.values.errors import SpurError
from spur.wire.cluster import ReplicaInfo, ShowReplica

__all__ = ["process_rows"]

Row = dict[str, str | int | bool]

_ROLES = {"spur.controller.frontmain": "front"}
"""What a process is called whose module is called otherwise."""

ANSWER_S = 2.0
"""How long a process may take to say how it is."""


def process_rows(places: Places, layout: Layout) -> list[Row]:
    """Return one row for each process: its own first, then those that it keeps."""
    with ThreadPoolExecutor(max_workers=len(layout.controllers)) as pool:
        found = pool.map(lambda place: _controller_rows(places, place), layout.controllers)
        controllers = [row for rows in found for row in rows]
    return [*controllers, *(row for place in layout.agents for row in _agent_rows(places, place))]


def _controller_rows(places: Places, place: ControllerPlace) -> list[Row]:
    mark = find(places, place.name)
    row = _row(place.name, "controller", mark.pid if mark else 0, place.rpc_address)
    row["certified_until"] = _certified_until(places.controller(place.name))
    if mark is None:
        return [row]
    info = _info(places, place)
    if info is None:
        return [row | {"state": "silent"}, *_children(place.name, mark.pid)]
    row |= {"leader": info.leads, "index": info.commit}
    return [row, *_children(place.name, mark.pid)]


def _agent_rows(places: Places, place: AgentPlace) -> list[Row]:
    mark = find(places, place.key)
    role = "agent" if place.nodes else "relay"
    address = place.address or f"unix:{places.socket(place.key)}"
    row = _row(place.key, role, mark.pid if mark else 0, address)
    row["certified_until"] = _certified_until(places.agent(place.key))
    return [row, *(_children(place.key, mark.pid) if mark else ())]


def _info(places: Places, place: ControllerPlace) -> ReplicaInfo | None:
    try:
        address = f"unix:{places.socket(place.name)}"
        with BlockingClient([address], deadline_s=ANSWER_S) as client:
            answer = client.ask(ShowReplica(), ReplicaInfo)
    except SpurError:
        return None
    return answer if isinstance(answer, ReplicaInfo) else None


def _children(name: str, pid: int) -> Iterator[Row]:
    for child, module in children_of(pid):
        yield _row(name, _ROLES.get(module, module.rpartition(".")[2]), child, "")


def _row(name: str, role: str, pid: int, address: str) -> Row:
    return {
        "name": name,
        "role": role,
        "state": "running" if pid else "down",
        "pid": pid,
        "address": address,
        "leader": False,
        "index": 0,
        "memory_kib": memory_kib(pid) if pid else 0,
        "certified_until": "",
    }


def _certified_until(directory: Path) -> str:
    """Return the day on which a daemon's certificate ends; empty when it has none."""
    try:
        text = credentials_in(directory / TLS_DIRECTORY).host.read_text("ascii")
        return datetime.fromtimestamp(validity_of(text)[1], UTC).strftime("%Y-%m-%d")
    except (OSError, ValueError):
        return ""
