"""Who may ask what: the host decides how much it may say of a user."""

from __future__ import annotations

import pytest

from spur.commands.permissions import Permission, Role, may_act_for, refuse, role_of
from spur.events.cluster import HostRemoved
from spur.testing.builders import CLUSTER, SMALL_CONFIG, Cluster, actor

ROLES = (
    SMALL_CONFIG
    + """
[[roles]]
uid = 1001
role = "operator"

[[roles]]
uid = 1002
host = "login1"
role = "administrator"

[[roles]]
uid = 1003
host = "n1"
role = "operator"
"""
)

HOSTS = {"login1": "login", "login2": "login", "n1": "compute", "c1": "controller", "a1": "admin"}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """A cluster with a host of each role and three users that are listed."""
    cluster = Cluster()
    for name, role in HOSTS.items():
        cluster.add_host(name, role)
    cluster.configure(ROLES)
    return cluster


@pytest.mark.parametrize(
    ("uid", "host", "role"),
    [
        (0, "c1", Role.ADMINISTRATOR),
        (0, "a1", Role.ADMINISTRATOR),
        (0, "login1", Role.USER),
        (0, "n1", Role.USER),
        (1000, "c1", Role.USER),
        (1001, "c1", Role.OPERATOR),
        (1001, "login1", Role.USER),
        (1001, "n1", Role.USER),
        (1002, "login1", Role.ADMINISTRATOR),
        (1002, "login2", Role.USER),
        (1002, "c1", Role.USER),
        (1003, "n1", Role.USER),
    ],
)
def test_a_host_vouches_within_its_role(cluster: Cluster, uid: int, host: str, role: Role) -> None:
    """Root on a login node is nobody special; a listed pair of user and host is."""
    host_id = cluster.state.host_of_name.key(host)
    assert host_id is not None
    who = actor(uid, host_role=HOSTS[host], host_id=host_id)
    assert role_of(cluster.state, who) is role


@pytest.mark.parametrize("role", ["login", "compute", "admin"])
def test_a_removed_host_vouches_for_nobody(cluster: Cluster, role: str) -> None:
    """Its certificate is still out there, and good for nothing."""
    assert role_of(cluster.state, actor(0, host_role=role, host_id=99)) is Role.NOBODY


def test_a_host_vouches_in_its_own_role_alone(cluster: Cluster) -> None:
    """A login host was made a compute host since; its old certificate still says login."""
    host_id = cluster.state.host_of_name.key("n1") or 0
    assert role_of(cluster.state, actor(1002, host_role="login", host_id=host_id)) is Role.NOBODY


def test_a_host_of_an_unknown_role_vouches_for_nobody(cluster: Cluster) -> None:
    """A certificate with a role that this release does not know."""
    who = actor(0, host_role="router")
    assert role_of(cluster.state, who) is Role.NOBODY
    assert refuse(cluster.state, Permission.USER, who) is not None


def test_agents_and_the_cluster_have_commands_of_their_own(cluster: Cluster) -> None:
    """An administrator is no agent, and an agent is not the cluster."""
    state = cluster.state
    login, compute = (
        actor(0, host_role=HOSTS[name], host_id=state.host_of_name.key(name) or 0)
        for name in ("login1", "n1")
    )
    assert refuse(state, Permission.AGENT, login) is not None
    assert refuse(state, Permission.AGENT, compute) is None
    assert refuse(state, Permission.CLUSTER, compute) is not None
    assert refuse(state, Permission.CLUSTER, actor(0, host_role="controller")) is not None
    assert refuse(state, Permission.CLUSTER, CLUSTER) is None


def test_every_host_of_the_cluster_may_ask_for_itself(cluster: Cluster) -> None:
    """No user of a compute host has a job there, and its agent asks where the controllers are."""
    state = cluster.state
    for name in ("login1", "n1"):
        host_id = state.host_of_name.key(name) or 0
        who = actor(0, host_role=HOSTS[name], host_id=host_id)
        assert refuse(state, Permission.HOST, who) is None
    assert refuse(state, Permission.HOST, actor(0, host_role="login", host_id=99)) is not None
    assert refuse(state, Permission.HOST, actor(0, host_role="router")) is not None


@pytest.mark.parametrize("permission", [Permission.USER, Permission.AGENT, Permission.HOST])
def test_host_that_was_removed_speaks_for_nobody(permission: Permission) -> None:
    """A compute node was stolen and taken out of the cluster; its certificate is still good."""
    cluster = Cluster()
    host_id = cluster.add_host("n1", "compute")
    agent = actor(0, host_role="compute", host_id=host_id)
    assert refuse(cluster.state, Permission.AGENT, agent) is None
    cluster.record(HostRemoved(host_id))
    refused = refuse(cluster.state, permission, agent)
    assert refused is not None
    assert refused.text == (
        f"compute host {host_id} is not, or not any more, in this cluster; nothing was changed"
    )


def test_a_refusal_says_who_asked_and_what_it_takes(cluster: Cluster) -> None:
    """The sentence is enough to know whom to ask."""
    refused = refuse(cluster.state, Permission.OPERATOR, actor(1000))
    assert refused is not None
    assert refused.code == "not-permitted"
    assert refused.text == (
        "uid 1000 on a controller host may not ask this; it takes operator; nothing was changed"
    )
    admin = actor(1000, host_role="admin", host_id=cluster.state.host_of_name.key("a1") or 0)
    refused = refuse(cluster.state, Permission.OPERATOR, admin)
    assert refused is not None
    assert refused.text.startswith("uid 1000 on an admin host may not ask this")


def test_own_subjects_and_operators(cluster: Cluster) -> None:
    """A user acts on what is theirs; an operator on what is anyone's."""
    state = cluster.state
    controller = state.host_of_name.key("c1") or 0
    assert may_act_for(state, actor(1000), 1000)
    assert not may_act_for(state, actor(1000), 1004)
    operator = actor(1001, host_role="controller", host_id=controller)
    assert may_act_for(state, operator, 1004)
