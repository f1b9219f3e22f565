"""The cluster's own events: configuration, version, checkpoints, restores, hosts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.events.cluster import (
    ClusterCheckpointed,
    ClusterRestored,
    ClusterVersionRaised,
    HostAdded,
)
from spur.events.codec import encode_envelope
from spur.events.envelope import Entry, EntryKind, RequestMark
from spur.projections.apply import ApplyFailed, apply
from spur.projections.cluster import RESTORE_JOB_ID_STEP, config_of
from spur.projections.counters import JOB_ID_COUNTER, counter
from spur.projections.digest import digest_version, state_digest
from spur.projections.jobs import next_job_id
from spur.projections.nodes import is_usable
from spur.projections.nodeviews import node_infos
from spur.slurm.nodestates import compact_state, is_in_state, long_state
from spur.testing.builders import CLUSTER, SMALL_CONFIG, Cluster, newborn, replay
from spur.values.config import ConfigFile, PartitionState
from spur.values.configfile import parse_config
from spur.values.errors import Rejection
from spur.values.ids import NodeName, PartitionName
from spur.values.states import NodeAction
from spur.wire.cluster import Checkpoint, Configured, Reconfigure, RecordRestore
from spur.wire.declare import Done
from spur.wire.nodes import RegisterNode, UpdateNodes
from spur.wire.partitions import UpdatePartition

GPU = PartitionName("gpu")


def reconfigure(cluster: Cluster, text: str) -> object:
    """Hand in a file."""
    return cluster.ask(Reconfigure((ConfigFile("spur.toml", text),)))


def test_a_configuration_comes_back_as_it_was_parsed() -> None:
    """The state says all that the file said, in its order."""
    cluster = Cluster()
    cluster.configure()
    assert config_of(cluster.state) == parse_config(ConfigFile("spur.toml", SMALL_CONFIG))
    assert cluster.state.block_of_node.key("n3") == "n[1-4]"


def test_a_file_that_says_the_same_makes_no_entry() -> None:
    """An administrator hands in the file that is in force."""
    cluster = Cluster()
    cluster.configure()
    index = cluster.state.index
    assert reconfigure(cluster, SMALL_CONFIG + "\n# a comment\n") == Configured(0, index)
    assert cluster.state.index == index


def test_a_changed_file_changes_only_what_differs() -> None:
    """A node more, a limit less: what an operator set by hand stays."""
    cluster = Cluster()
    cluster.configure()
    cluster.ask(UpdatePartition(GPU, PartitionState.DOWN))
    cluster.ask(UpdateNodes("n[2,4]", NodeAction.DRAIN, "fans"))
    text = SMALL_CONFIG.replace("n[1-4]", "n[1-3]").replace("max_time_s = 600", "max_time_s = 900")
    assert reconfigure(cluster, text) == Configured(4, cluster.state.index)
    state = cluster.state
    assert state.partitions[GPU].state is PartitionState.DOWN
    assert state.nodes.sorted_keys() == [NodeName("n2")]
    assert state.partitions[PartitionName("debug")].block.max_time_s == 900


def test_a_changed_state_in_the_file_overrides_the_operator() -> None:
    """The file says DRAIN now; what the operator had set was meant for the old file."""
    cluster = Cluster()
    cluster.configure()
    cluster.ask(UpdatePartition(GPU, PartitionState.DOWN))
    reconfigure(cluster, SMALL_CONFIG.replace("default = true", 'default = true\nstate = "DRAIN"'))
    assert cluster.state.partitions[GPU].state is PartitionState.DRAIN


def test_a_file_with_errors_changes_nothing() -> None:
    """The error is named with its line, and the old file stays in force."""
    cluster = Cluster()
    cluster.configure()
    before = state_digest(cluster.state)
    text = SMALL_CONFIG.replace("cpus = 64", "cpus = 0")
    refused = reconfigure(cluster, text)
    assert isinstance(refused, Rejection)
    assert refused.code == "bad-configuration"
    assert refused.text.splitlines() == [
        "spur.toml:6: nodes.cpus is 0: it takes a whole number from 1 to 65536",
        "nothing was changed",
    ]
    assert state_digest(cluster.state) == before


def test_a_checkpoint_records_the_state_before_it() -> None:
    """Every 65 536 entries the cluster writes down what it is."""
    cluster = Cluster()
    cluster.configure()
    index, chain, digest = cluster.state.index, cluster.state.chain, state_digest(cluster.state)
    assert cluster.ask(Checkpoint(), actor=CLUSTER) == Done()
    state = cluster.state
    assert state.checkpoint_index == state.index == index + 1
    event = apply(replay(cluster.entries[:-1]), cluster.entries[-1]).events[0]
    assert event == ClusterCheckpointed(index, chain, digest, digest_version(state))


@pytest.mark.parametrize(
    "changes",
    [{"digest": bytes(32)}, {"chain": bytes(32)}, {"index": 1}],
)
def test_a_state_that_differs_from_a_checkpoint_stops(changes: dict[str, Any]) -> None:
    """A replica diverged: it stops at the checkpoint rather than answer from a wrong state."""
    cluster = Cluster()
    cluster.configure()
    state = cluster.state
    true = ClusterCheckpointed(state.index, state.chain, state_digest(state), digest_version(state))
    with pytest.raises(ApplyFailed, match=r"digest|chain"):
        cluster.record(replace(true, **changes))
    assert state.checkpoint_index == 0


def test_a_checkpoint_of_another_release_is_not_compared() -> None:
    """Half-way through an upgrade the leader sums over other tables."""
    cluster = Cluster()
    state = cluster.state
    cluster.record(
        ClusterCheckpointed(state.index, state.chain, bytes(32), digest_version(state) + 1)
    )
    assert state.checkpoint_index == state.index


def test_a_restore_begins_an_incarnation_with_new_job_ids() -> None:
    """What the lost part gave out is unknown, so the counter jumps over it."""
    cluster = Cluster()
    index, chain = cluster.state.index, cluster.state.chain
    cluster.ask(RecordRestore(2, "disks burnt"), actor=CLUSTER)
    assert cluster.state.cluster[1].incarnation == 2
    assert counter(cluster.state, JOB_ID_COUNTER) == RESTORE_JOB_ID_STEP
    with pytest.raises(ApplyFailed, match="incarnation 2 already"):
        cluster.record(ClusterRestored(2, index, chain, ""))
    with pytest.raises(ApplyFailed, match="the fork is at entry"):
        cluster.record(ClusterRestored(3, index, chain, ""))


def test_the_version_only_rises() -> None:
    """A second proposal of the same version is a fault of the shell."""
    cluster = Cluster()
    cluster.record(ClusterVersionRaised(2))
    assert cluster.state.cluster[1].version == 2
    with pytest.raises(ApplyFailed, match="version 2 already"):
        cluster.record(ClusterVersionRaised(2))


def test_a_host_has_the_index_of_its_entry_as_id() -> None:
    """Ids come from the log, so a removed host's id never comes back."""
    cluster = Cluster()
    host_id = cluster.add_host("login1", "login")
    assert host_id == cluster.state.index
    assert cluster.state.host_of_name.key("login1") == host_id
    with pytest.raises(ApplyFailed, match="an entry adds one host"):
        cluster.record(HostAdded("a", "login"), HostAdded("b", "login"))
    with pytest.raises(ApplyFailed, match="claimed by"):
        cluster.record(HostAdded("login1", "login"))


def test_a_stamp_that_does_not_rise_stops() -> None:
    """A leader with a bad clock would turn time back."""
    cluster = Cluster()
    cluster.record()
    state = cluster.state
    body = encode_envelope(
        time_ns=state.time_ns,
        command="story",
        request=RequestMark("cluster", b"", 0, b"", b"", 1, 1),
        actor=CLUSTER,
        events=(),
        cluster_version=1,
    )
    with pytest.raises(ApplyFailed, match="does not rise"):
        apply(state, Entry(state.index + 1, 1, EntryKind.EVENTS, body))


def test_a_term_that_falls_stops() -> None:
    """Terms rise along a log; another order is not this log."""
    cluster = Cluster()
    cluster.append(EntryKind.NOOP, b"", term=5)
    with pytest.raises(ApplyFailed, match="term 4 is below 5"):
        cluster.append(EntryKind.NOOP, b"", term=4)
    assert cluster.state.term == 5


def test_an_unknown_kind_of_entry_stops() -> None:
    """A kind that this release does not know."""
    cluster = Cluster()
    with pytest.raises(ApplyFailed, match="no such kind of entry: 9"):
        apply(cluster.state, Entry(2, 1, 9, b""))


def test_the_newest_membership_is_remembered() -> None:
    """The state keeps what the consensus room writes about its members, unread."""
    cluster = Cluster()
    cluster.append(EntryKind.MEMBERSHIP, b"five members")
    row = cluster.state.membership[1]
    assert (row.index, row.body) == (2, b"five members")


def test_the_digests_version_names_the_shapes_of_the_tables() -> None:
    """Someone adds a field to a row: the new release does not compare its digest with the old."""
    state = newborn()
    before = digest_version(state)
    assert digest_version(newborn()) == before
    without_one = newborn()
    without_one._tables = without_one._tables[:-1]
    assert digest_version(without_one) != before


def test_ids_begin_where_the_configuration_says() -> None:
    """A site moves here and wants no id twice; later the file says less, and nothing goes back."""
    cluster = Cluster()
    for first in (5_000, 10):
        text = SMALL_CONFIG.replace('name = "hall"', f'name = "hall"\nfirst_job_id = {first}')
        reconfigure(cluster, text)
        assert next_job_id(cluster.state) == 5_000


def test_a_node_begins_as_it_is_configured() -> None:
    """One node is configured as down: it stays so when it registers, until somebody resumes it."""
    cluster = Cluster()
    text = SMALL_CONFIG.replace("cpus = 64", 'cpus = 64\nstart = "DOWN"\nreason = "fan"')
    reconfigure(cluster, text)
    (before,) = node_infos(cluster.state, [NodeName("n1")])
    assert (before.state, before.reason) == ("DOWN", "fan")
    register = RegisterNode(NodeName("n1"), b"boot", 64, 512_000, "gfx942", 8)
    cluster.ask(register, CLUSTER)
    assert not is_usable(cluster.state, NodeName("n1"))
    (down,) = node_infos(cluster.state, [NodeName("n1")])
    assert (down.state, down.reason) == ("DOWN", "fan")
    cluster.ask(UpdateNodes("n1", NodeAction.RESUME, ""))
    assert is_usable(cluster.state, NodeName("n1"))


def test_a_node_of_a_cloud_is_idle_until_it_is_made() -> None:
    """slurm.conf has State=CLOUD: sinfo shows such nodes as idle, with a tilde."""
    cluster = Cluster()
    reconfigure(cluster, SMALL_CONFIG.replace("cpus = 64", 'cpus = 64\nstart = "CLOUD"'))
    (node,) = node_infos(cluster.state, [NodeName("n1")])
    assert node.state == "IDLE+CLOUD+POWERED_DOWN"
    assert (compact_state(node.state), long_state(node.state)) == ("idle~", "idle~")
    assert [
        is_in_state(node.state, word) for word in ("idle", "cloud", "powered_down", "down")
    ] == [
        True,
        True,
        True,
        False,
    ]
