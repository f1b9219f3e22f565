"""Commands about nodes and partitions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.events.envelope import Actor
from spur.projections.nodes import is_usable
from spur.testing.builders import ADMIN, CLUSTER, Cluster, actor
from spur.values.config import PartitionState
from spur.values.errors import Rejection
from spur.values.ids import NodeName, PartitionName
from spur.values.states import NodeAction
from spur.wire.declare import Done
from spur.wire.nodes import ListNodes, MarkNodeLost, NodeInfo, NodeList, RegisterNode, UpdateNodes
from spur.wire.partitions import ListPartitions, PartitionList, UpdatePartition

N1 = NodeName("n1")
REGISTER = RegisterNode(N1, b"boot 1", 64, 512_000, "gfx942", 8)


@pytest.fixture
def cluster() -> Cluster:
    """Four configured nodes, and the host of the first."""
    cluster = Cluster()
    cluster.configure()
    cluster.add_host("n1", "compute")
    return cluster


def agent(cluster: Cluster, name: str = "n1") -> Actor:
    """Return the agent of a host."""
    host_id = cluster.state.host_of_name.key(name)
    assert host_id is not None
    return actor(0, host_role="compute", host_id=host_id, via="agent")


def shown(cluster: Cluster, name: str = "n1") -> NodeInfo:
    """Return a node as people see it."""
    answer = cluster.ask(ListNodes(name, "", 10))
    assert isinstance(answer, NodeList)
    (node,) = answer.nodes
    return node


def refused(outcome: object, code: str) -> str:
    """Return a refusal's text, which says that nothing was changed."""
    assert isinstance(outcome, Rejection)
    assert outcome.code == code
    assert outcome.text.endswith("nothing was changed")
    return outcome.text


def test_a_node_is_usable_once_its_agent_registered_it(cluster: Cluster) -> None:
    """A node boots, and its agent says so."""
    assert shown(cluster).state == "UNKNOWN"
    assert not is_usable(cluster.state, N1)
    assert cluster.ask(REGISTER, agent(cluster)) == Done()
    assert is_usable(cluster.state, N1)
    node = shown(cluster)
    assert (node.state, node.cpus, node.gpus, node.partitions) == ("IDLE", 64, 8, ("gpu", "debug"))


def test_registering_twice_is_one_event(cluster: Cluster) -> None:
    """The agent reconnects without a boot in between."""
    cluster.ask(REGISTER, agent(cluster))
    index = cluster.state.index
    assert cluster.ask(REGISTER, agent(cluster)) == Done()
    assert cluster.state.index == index


def test_a_node_says_where_it_takes_streams(cluster: Cluster) -> None:
    """Its agent comes back at another port; an address without end is refused."""
    cluster.ask(REGISTER, agent(cluster))
    moved = replace(REGISTER, address="n1.hall:6818")
    assert cluster.ask(moved, agent(cluster)) == Done()
    assert cluster.state.nodes[N1].address == "n1.hall:6818"
    refused(cluster.ask(replace(REGISTER, address="n" * 263), agent(cluster)), "invalid-value")


def test_an_agent_speaks_for_its_own_nodes_alone(cluster: Cluster) -> None:
    """A lost compute host claims to be another node."""
    other = RegisterNode(NodeName("n2"), b"boot 1", 64, 512_000, "gfx942", 8)
    text = refused(cluster.ask(other, agent(cluster)), "not-permitted")
    assert text.startswith("host 'n1' may not speak for node 'n2': that is for host 'n2'")
    stranger = actor(0, host_role="compute", host_id=99)
    refused(cluster.ask(REGISTER, stranger), "not-permitted")


def test_one_agent_may_serve_many_nodes() -> None:
    """A developer's machine plays four nodes."""
    cluster = Cluster()
    cluster.configure('[cluster]\nname = "desk"\n[[nodes]]\nnames = "n[1-4]"\nagent = "desk1"\n')
    cluster.add_host("desk1", "compute")
    for name in ("n1", "n4"):
        node = RegisterNode(NodeName(name), b"boot 1", 8, 16_000, "", 0)
        assert cluster.ask(node, agent(cluster, "desk1")) == Done()


def test_an_unknown_node_is_refused(cluster: Cluster) -> None:
    """An agent is started before its node is configured."""
    node = RegisterNode(NodeName("n9"), b"boot 1", 1, 1, "", 0)
    assert "'n9' is not configured" in refused(cluster.ask(node, CLUSTER), "unknown-node")
    empty = RegisterNode(N1, b"", 64, 512_000, "gfx942", 8)
    refused(cluster.ask(empty, CLUSTER), "invalid-value")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (RegisterNode(N1, b"b", 32, 512_000, "gfx942", 8), "Low CPUs"),
        (RegisterNode(N1, b"b", 64, 256_000, "gfx942", 8), "Low RealMemory"),
        (RegisterNode(N1, b"b", 64, 512_000, "gfx942", 7), "gres/gpu count reported lower"),
        (RegisterNode(N1, b"b", 64, 512_000, "gfx90a", 8), "gres/gpu count reported lower"),
    ],
)
def test_a_node_with_less_than_configured_is_drained(
    cluster: Cluster, found: RegisterNode, reason: str
) -> None:
    """A memory module failed: jobs that count on it must not start there."""
    cluster.ask(found, CLUSTER)
    node = shown(cluster)
    assert node.state == "IDLE+DRAIN"
    assert node.reason.startswith(reason)
    assert not is_usable(cluster.state, N1)


FULL = "spool of n1: 45 MiB are free, below 64"


def test_a_node_whose_spool_is_full_is_drained_until_there_is_room(cluster: Cluster) -> None:
    """A job filled the disk, its agent was started anew meanwhile, and somebody made room."""
    cluster.ask(REGISTER, agent(cluster))
    for fault in (FULL, "spool of n1: 44 MiB are free, below 64"):
        assert cluster.ask(replace(REGISTER, fault=fault), agent(cluster)) == Done()
        assert (shown(cluster).state, shown(cluster).reason) == ("IDLE+DRAIN", fault)
    index = cluster.state.index
    cluster.ask(replace(REGISTER, fault=fault), agent(cluster))
    assert cluster.state.index == index
    assert cluster.ask(REGISTER, agent(cluster)) == Done()
    assert (shown(cluster).state, shown(cluster).reason) == ("IDLE", "")
    assert is_usable(cluster.state, N1)


@pytest.mark.parametrize("first", ["operator", "fault"])
def test_room_in_the_spool_undoes_no_drain_of_an_operator(cluster: Cluster, first: str) -> None:
    """Somebody drains the node, before or after its spool was full."""
    drain = UpdateNodes("n1", NodeAction.DRAIN, "fans")
    full = replace(REGISTER, fault=FULL)
    cluster.ask(REGISTER, agent(cluster))
    for request in (drain, full) if first == "operator" else (full, drain):
        cluster.ask(request, ADMIN if request is drain else agent(cluster))
    cluster.ask(REGISTER, agent(cluster))
    assert (shown(cluster).state, shown(cluster).reason) == ("IDLE+DRAIN", "fans")


def test_room_in_the_spool_brings_no_missing_memory_back(cluster: Cluster) -> None:
    """Disk and memory are short; what stays is said."""
    less = replace(REGISTER, memory_mib=256_000)
    cluster.ask(replace(REGISTER, fault=FULL), agent(cluster))
    cluster.ask(replace(less, fault=FULL), agent(cluster))
    cluster.ask(less, agent(cluster))
    assert shown(cluster).state == "IDLE+DRAIN"
    assert shown(cluster).reason.startswith("Low RealMemory")


def test_a_fault_without_end_is_refused(cluster: Cluster) -> None:
    """An agent that is not ours."""
    endless = replace(REGISTER, fault="x" * 4_097)
    refused(cluster.ask(endless, agent(cluster)), "limit-exceeded")


def test_a_lost_node_comes_back_by_registering(cluster: Cluster) -> None:
    """The network was away for ten minutes."""
    cluster.ask(REGISTER, CLUSTER)
    seen_ns = cluster.now_ns
    cluster.pass_seconds(600)
    assert cluster.ask(MarkNodeLost(N1, seen_ns), CLUSTER) == Done()
    assert shown(cluster).state == "DOWN+NOT_RESPONDING"
    assert shown(cluster).reason == "Not responding"
    assert cluster.state.nodes[N1].lost_ns == seen_ns
    index = cluster.state.index
    assert cluster.ask(MarkNodeLost(N1, seen_ns), CLUSTER) == Done()
    assert cluster.state.index == index
    cluster.ask(UpdateNodes("n1", NodeAction.DOWN, "not installed"))
    assert shown(cluster).state == "DOWN"  # nobody waits for it any more
    cluster.ask(UpdateNodes("n1", NodeAction.RESUME, ""))
    cluster.ask(REGISTER, CLUSTER)
    assert shown(cluster).state == "IDLE"


def test_a_node_that_never_came_cannot_be_lost(cluster: Cluster) -> None:
    """The new leader has never heard of it, and neither had the old one."""
    text = refused(cluster.ask(MarkNodeLost(N1, 0), CLUSTER), "unknown-node")
    assert "never registered" in text


def test_when_a_node_was_last_seen_is_within_the_log(cluster: Cluster) -> None:
    """A leader's soft table may hold a time from before the registration, or a wrong one."""
    cluster.ask(REGISTER, CLUSTER)
    registered_ns = cluster.state.time_ns
    cluster.ask(MarkNodeLost(N1, 0), CLUSTER)
    assert cluster.state.nodes[N1].lost_ns == registered_ns


def test_an_operator_drains_and_resumes(cluster: Cluster) -> None:
    """Drain keeps what runs, down ends it, resume clears both."""
    cluster.ask(REGISTER, CLUSTER)
    cluster.ask(UpdateNodes("n[1-2]", NodeAction.DRAIN, "fans"))
    node = shown(cluster)
    assert (node.state, node.reason, node.reason_uid) == ("IDLE+DRAIN", "fans", 0)
    assert node.reason_ns == cluster.state.time_ns
    cluster.ask(UpdateNodes("n1", NodeAction.DOWN, "smoke"))
    assert shown(cluster).state == "DOWN+DRAIN"
    cluster.ask(UpdateNodes("n1", NodeAction.UNDRAIN, ""))
    assert (shown(cluster).state, shown(cluster).reason) == ("DOWN", "smoke")
    cluster.ask(UpdateNodes("n1", NodeAction.RESUME, ""))
    assert (shown(cluster).state, shown(cluster).reason) == ("IDLE", "")
    assert shown(cluster, "n2").state == "UNKNOWN+DRAIN"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (UpdateNodes("n[1-9]", NodeAction.DRAIN, "fans"), "unknown-node"),
        (UpdateNodes("", NodeAction.DRAIN, "fans"), "unknown-node"),
        (UpdateNodes("n[1-", NodeAction.DRAIN, "fans"), "invalid-value"),
        (UpdateNodes("n1", NodeAction.DRAIN, ""), "invalid-value"),
        (UpdateNodes("n1", NodeAction.DOWN, ""), "invalid-value"),
        (UpdatePartition(PartitionName("x"), PartitionState.UP), "unknown-partition"),
    ],
)
def test_a_bad_update_changes_nothing(
    cluster: Cluster, request_: UpdateNodes | UpdatePartition, code: str
) -> None:
    """One unknown name among many: none of them is changed."""
    index = cluster.state.index
    refused(cluster.ask(request_), code)
    assert cluster.state.index == index


def test_a_user_updates_nothing(cluster: Cluster) -> None:
    """Draining is for operators."""
    refused(cluster.ask(UpdateNodes("n1", NodeAction.DRAIN, "x"), actor(1000)), "not-permitted")


def test_too_many_nodes_at_once_are_refused_by_the_limits_name() -> None:
    """A whole hall is drained in one command: more rows than an entry may change."""
    cluster = Cluster(checked=False)
    cluster.configure('[cluster]\nname = "hall"\n[[nodes]]\nnames = "n[1-3000]"\n')
    index = cluster.state.index
    outcome = cluster.ask(UpdateNodes("n[1-3000]", NodeAction.DRAIN, "heat"))
    assert "entry-row-changes-max is 2000, and this needs 3000" in refused(
        outcome, "limit-exceeded"
    )
    assert (cluster.state.index, len(cluster.state.nodes)) == (index, 0)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ListNodes("n[1-9]", "", 10), "unknown-node"),
        (ListNodes("n[", "", 10), "invalid-value"),
        (ListNodes("", "", 0), "invalid-value"),
        (ListNodes("", "", 1001), "invalid-value"),
    ],
)
def test_a_bad_question_is_refused(cluster: Cluster, request_: ListNodes, code: str) -> None:
    """A misspelt name is told, not left out; a page has a bound."""
    refused(cluster.ask(request_), code)


def test_nodes_are_listed_in_slices(cluster: Cluster) -> None:
    """An empty list stands for all; each slice says where the next begins."""

    def page(nodes: str, after: str, limit: int) -> tuple[list[str], str | None]:
        answer = cluster.ask(ListNodes(nodes, after, limit), actor(1000))
        assert isinstance(answer, NodeList)
        return [node.name for node in answer.nodes], answer.next

    assert page("", "", 10) == (["n1", "n2", "n3", "n4"], None)
    assert page("", "", 3) == (["n1", "n2", "n3"], "n3")
    assert page("", "n3", 3) == (["n4"], None)
    assert page("n[4,2]", "", 1) == (["n2"], "n2")
    assert page("n[4,2]", "n2", 1) == (["n4"], None)


def test_a_partition_is_taken_down_and_shown(cluster: Cluster) -> None:
    """Maintenance: jobs queue and do not start."""
    name = PartitionName("gpu")
    assert cluster.ask(UpdatePartition(name, PartitionState.DOWN), ADMIN) == Done()
    index = cluster.state.index
    assert cluster.ask(UpdatePartition(name, PartitionState.DOWN), ADMIN) == Done()
    assert cluster.state.index == index
    answer = cluster.ask(ListPartitions(), actor(1000))
    assert isinstance(answer, PartitionList)
    rows = [(row.name, row.state, row.default, row.node_count) for row in answer.partitions]
    assert rows == [("gpu", "DOWN", True, 4), ("debug", "UP", False, 1)]
