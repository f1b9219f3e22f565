"""Agents on this machine: one for each host that the configuration names, and one that relays.

Nodes whose lines name the same host are served by one agent. A node has what the configuration says
it has, whatever this machine has: it is played, not found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from spur.client.blocking import BlockingClient
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY
from spur.controller.enrol import NewAgent, enrol
from spur.slurm.configfile import SLURM_FILE
from spur.up.cluster import RELAY_HOST, administering
from spur.up.layout import RELAY, AgentPlace, Layout, Places, free_ports
from spur.up.processes import find, require_running, start
from spur.values.config import NodeStart
from spur.values.errors import OperatorFault, Rejection, SpurError
from spur.values.ids import NodeName
from spur.wire.cluster import ClusterInfo, ShowCluster
from spur.wire.nodes import ListNodes, NodeInfo, NodeList

__all__ = ["plan_agents", "start_agents", "wait_until_ready"]

AGENT = "spur.agent.main"

READY_S = 30.0
"""How long nodes may take to register."""

_LOOK_S = 0.05
_RELAY_S = 0.5
_ROWS = 1_000
_ABSENT = (NodeStart.CLOUD, NodeStart.FUTURE, NodeStart.EXTERNAL)
"""What begins so is not there, and nobody plays it."""


def plan_agents(places: Places, layout: Layout) -> tuple[AgentPlace, ...]:
    """Return the agents that the configuration in force asks for; known ones keep their address.

    Raises: OperatorFault when the nodes can't be asked for.
    """
    known = {place.name: place for place in layout.agents}
    ports = free_ports()
    hosts: dict[str, list[NodeInfo]] = {}
    with administering(places, layout) as client:
        for node in _nodes(client):
            if node.block.start not in _ABSENT:
                hosts.setdefault(node.block.agent or node.name, []).append(node)
    made = [_place(name, nodes, known, ports) for name, nodes in hosts.items()]
    return (*made, AgentPlace(name=RELAY_HOST))


def start_agents(places: Places, layout: Layout) -> list[str]:
    """Start the agents that do not run, each with a fresh certificate; return their names.

    Raises: OperatorFault when the cluster refuses a host, or its directory can't be written.
    """
    idle = [place for place in layout.agents if find(places, place.key) is None]
    if idle:
        homes = [places.controller(place.name) for place in layout.controllers]
        first = next((home for home in homes if (home / AUTHORITY_DIRECTORY).exists()), homes[0])
        authority = Authority.open(first / AUTHORITY_DIRECTORY)
        with administering(places, layout) as client:
            for place in idle:
                enrol(client, authority, _new_agent(places, layout, place))
    for place in idle:
        start(places, place.key, AGENT, ["run", "--dir", str(places.agent(place.key))])
    return [place.key for place in idle]


def wait_until_ready(places: Places, layout: Layout) -> list[str]:
    """Wait until every node that has an agent is there; return the names of those that are not.

    Raises: OperatorFault when an agent ended, or the relay does not answer.
    """
    names = [place.key for place in layout.agents]
    end_s = time.monotonic() + READY_S
    answers = False
    missing = _unready_nodes(places, layout)
    while time.monotonic() < end_s and not (answers and not missing):
        require_running(places, names)
        time.sleep(_LOOK_S)
        answers = answers or _relay_answers(places)
        missing = _unready_nodes(places, layout)
    if not answers:
        raise OperatorFault(f"the relay does not answer\nhint: see {places.log(RELAY)}")
    return missing


def _relay_answers(places: Places) -> bool:
    """Return whether a command of this machine reaches the controllers."""
    try:
        with BlockingClient([f"unix:{places.socket(RELAY)}"], deadline_s=_RELAY_S) as client:
            return isinstance(client.ask(ShowCluster(), ClusterInfo), ClusterInfo)
    except SpurError:
        return False


def _unready_nodes(places: Places, layout: Layout) -> list[str]:
    """Return which of the nodes that have an agent have not registered."""
    wanted = {node for place in layout.agents for node in place.nodes}
    with administering(places, layout) as client:
        return [
            node.name
            for node in _nodes(client)
            if node.name in wanted and (not node.host_id or "NOT_RESPONDING" in node.state)
        ]


def _nodes(client: BlockingClient) -> list[NodeInfo]:
    """Return every configured node, in the order of their names."""
    found: list[NodeInfo] = []
    after: NodeName | None = NodeName("")
    while after is not None:
        page = client.ask(ListNodes("", after, _ROWS), NodeList)
        if isinstance(page, Rejection):
            raise OperatorFault(f"the nodes can't be seen: {page.text}")
        found.extend(page.nodes)
        after = page.next
    return found


def _place(
    name: str, nodes: Sequence[NodeInfo], known: dict[str, AgentPlace], ports: Iterator[str]
) -> AgentPlace:
    first = nodes[0]
    return AgentPlace(
        name=name,
        nodes=tuple(node.name for node in nodes),
        address=known[name].address if name in known else next(ports),
        cpus=max(node.cpus for node in nodes),
        memory_mib=max(node.memory_mib for node in nodes),
        gpu_kind=first.gpu_kind,
        gpus=max(node.gpus for node in nodes),
    )


def _new_agent(places: Places, layout: Layout, place: AgentPlace) -> NewAgent:
    settings: dict[str, str | int | bool] = {
        "slurm_conf": str(places.conf / SLURM_FILE),
        "socket": str(places.socket(place.key)),
    }
    if place.nodes:
        settings |= {
            "own_host_names": os.geteuid() == 0,
            "cpus": place.cpus,
            "memory_mib": place.memory_mib,
            "gpu_kind": place.gpu_kind,
            "gpus": place.gpus,
        }
    return NewAgent(
        directory=places.agent(place.key),
        name=place.name,
        role="compute" if place.nodes else "admin",
        controllers=tuple(controller.rpc_address for controller in layout.controllers),
        nodes=place.nodes,
        address=place.address,
        settings=settings,
    )
