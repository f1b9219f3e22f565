"""Requests at random, good and bad ones, for property tests and simulations.

    request, actor = random_request(chance, cluster.state)

`chance` decides everything, so a seed is a story. Most requests make sense in the state they are
asked of; some name what is not there, or come from people who may not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from spur.events.envelope import Actor
from spur.projections.nodes import node_names
from spur.projections.state import State
from spur.testing.accounts import random_edit
from spur.testing.builders import ADMIN, CLUSTER, actor
from spur.values.config import ConfigFile, PartitionState, RequeuePolicy, SlurmParameter
from spur.values.ids import NodeName, PartitionName
from spur.values.states import NodeAction
from spur.wire.accounts import EditEntities
from spur.wire.cluster import (
    AcceptClock,
    AddHost,
    Checkpoint,
    Reconfigure,
    RecordRestore,
    RemoveHost,
    Tick,
)
from spur.wire.declare import Request
from spur.wire.joining import CreateToken, JoinHost, RenewHost, RevokeToken
from spur.wire.nodes import MarkNodeLost, RegisterNode, UpdateNodes
from spur.wire.partitions import CreatePartition, DeletePartition, UpdatePartition

__all__ = ["Chance", "random_config", "random_request"]

T = TypeVar("T")


class Chance(Protocol):
    """What decides: a `random.Random`, or what a property test draws from."""

    def randrange(self, stop: int, /) -> int: ...

    def choice(self, options: Sequence[T], /) -> T: ...

    def random(self) -> float: ...


Maker = Callable[[Chance, State], tuple[Request, Actor]]


def random_config(chance: Chance) -> str:
    """Return the text of a right configuration of up to nine nodes."""
    count = 1 + chance.randrange(9)
    cut = 1 + chance.randrange(count)
    policy = chance.choice(list(RequeuePolicy))
    lines = [
        "[cluster]",
        'name = "hall"',
        f"min_job_age_s = {chance.randrange(600)}",
        f'requeue_policy = "{policy}"',
        "[[nodes]]",
        f'names = "n[1-{cut}]"',
        f"cpus = {8 * (1 + chance.randrange(8))}",
        "memory_mib = 512000",
        f'gpus = "gfx942:{chance.randrange(9)}"',
    ]
    if cut < count:
        lines += ["[[nodes]]", f'names = "n[{cut + 1}-{count}]"', "cpus = 16", "memory_mib = 64000"]
    lines += ["[[partitions]]", 'name = "gpu"', f'nodes = "n[1-{cut}]"', "default = true"]
    if chance.randrange(2):
        lines += ["[[partitions]]", 'name = "all"', f'nodes = "n[1-{count}]"', "max_time_s = 3600"]
    if chance.randrange(2):
        lines += ["[[roles]]", f"uid = {1000 + chance.randrange(3)}", 'role = "operator"']
    return "\n".join(lines) + "\n"


def _some_node(chance: Chance, state: State) -> NodeName:
    """Return a configured node, or now and then one that is not."""
    names = node_names(state)
    if not names or chance.randrange(12) == 0:
        return NodeName("n99")
    return chance.choice(names)


def _reconfigure(chance: Chance, state: State) -> tuple[Request, Actor]:
    text = random_config(chance)
    if chance.randrange(8) == 0:
        text = text.replace("cpus = ", "cpus = -")
    return Reconfigure((ConfigFile("spur.toml", text),)), ADMIN


def _register(chance: Chance, state: State) -> tuple[Request, Actor]:
    boot_id = b"boot %d" % chance.randrange(3)
    cpus = chance.choice((64, 64, 64, 4))
    node = _some_node(chance, state)
    fault = chance.choice(("", "", "", "spool of n1: 9 MiB are free, below 64"))
    return RegisterNode(node, boot_id, cpus, 512_000, "gfx942", 8, fault=fault), CLUSTER


def _lose(chance: Chance, state: State) -> tuple[Request, Actor]:
    return MarkNodeLost(_some_node(chance, state), state.time_ns - chance.randrange(10**9)), CLUSTER


def _update_node(chance: Chance, state: State) -> tuple[Request, Actor]:
    action = chance.choice(list(NodeAction))
    who = chance.choice((ADMIN, ADMIN, actor(1001, host_role="controller")))
    return UpdateNodes(_some_node(chance, state), action, chance.choice(("fans", ""))), who


def _update_partition(chance: Chance, state: State) -> tuple[Request, Actor]:
    name = PartitionName(chance.choice(("gpu", "all", "none", "fresh")))
    nodes = (SlurmParameter("Nodes", chance.choice(("ALL", "n1", "n99"))),)
    kind = chance.randrange(6)
    if kind == 0:
        return CreatePartition(name, nodes), ADMIN
    if kind == 1:
        return DeletePartition(name), ADMIN
    changes = nodes if kind == 2 else ()
    return UpdatePartition(name, chance.choice(list(PartitionState)), changes), ADMIN


def _add_host(chance: Chance, state: State) -> tuple[Request, Actor]:
    name = f"login{chance.randrange(5)}"
    return AddHost(name, chance.choice(("login", "compute"))), ADMIN


def _remove_host(chance: Chance, state: State) -> tuple[Request, Actor]:
    return RemoveHost(f"login{chance.randrange(5)}"), ADMIN


def _change_token(chance: Chance, state: State) -> tuple[Request, Actor]:
    digest = bytes([chance.randrange(8)]) * 32
    known = state.tokens.sorted_keys()
    if known and chance.randrange(3) == 0:
        return RevokeToken(chance.choice(known)), ADMIN
    role = chance.choice(("login", "compute"))
    return CreateToken(digest, role, (), "", 1 + chance.randrange(3600)), ADMIN


def _certify_host(chance: Chance, state: State) -> tuple[Request, Actor]:
    key = bytes([chance.randrange(3)]) * 32
    hosts = state.hosts.sorted_keys()
    if hosts and chance.randrange(3) == 0:
        return RenewHost(chance.choice(hosts), "", key, 60), CLUSTER
    digest = bytes([chance.randrange(8)]) * 32
    name = chance.choice(("n1", "n2", "login1", "login2"))
    return JoinHost(digest, name, key, "", (), state.time_ns, 60), CLUSTER


def _ask_itself(chance: Chance, state: State) -> tuple[Request, Actor]:
    incarnation = state.cluster[1].incarnation + chance.randrange(2)
    request = chance.choice(
        (Tick(), Tick(), Checkpoint(), AcceptClock(), RecordRestore(incarnation, "a test"))
    )
    return request, CLUSTER


def _edit_accounts(chance: Chance, state: State) -> tuple[Request, Actor]:
    edits = tuple(random_edit(chance) for _ in range(1 + chance.randrange(3)))
    return EditEntities(edits), chance.choice((ADMIN, ADMIN, ADMIN, actor(1001)))


_MAKERS: tuple[tuple[int, Maker], ...] = (
    (1, _reconfigure),
    (6, _register),
    (2, _lose),
    (2, _update_node),
    (1, _update_partition),
    (1, _add_host),
    (1, _remove_host),
    (1, _change_token),
    (1, _certify_host),
    (2, _ask_itself),
    (3, _edit_accounts),
)
"""How often each kind of request is made, among all of them."""

_ALL = tuple(maker for weight, maker in _MAKERS for _ in range(weight))


def random_request(chance: Chance, state: State) -> tuple[Request, Actor]:
    """Return a request and who asks it; the first of a story is a configuration."""
    maker = chance.choice(_ALL) if state.config.get(1) else _reconfigure
    return maker(chance, state)
