"""The judging of requests, and commands about the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spur.commands.decide import COMMANDS, Context, Decision, command, decide
from spur.commands.permissions import Permission
from spur.events.cluster import ClusterVersionRaised, HostRemoved
from spur.events.declare import NEWEST_CLUSTER_VERSION
from spur.projections.requests import next_part
from spur.projections.state import State
from spur.projections.undo import undo_to
from spur.testing.builders import ADMIN, CLUSTER, SMALL_CONFIG, Cluster, actor
from spur.testing.hall import Hall
from spur.values.config import ConfigFile
from spur.values.errors import ERROR_CODES, InvariantBroken, Rejection
from spur.values.ids import HostId
from spur.wire.cluster import (
    AcceptClock,
    AddHost,
    ClusterInfo,
    HostAdded,
    HostInfo,
    RaiseVersion,
    Reconfigure,
    RecordRestore,
    RemoveHost,
    ShowCluster,
)
from spur.wire.declare import Done, Request


class RemoveAllHosts(Request, frozen=True, tag="test.remove-all-hosts"):
    """A divisible command of this test."""


def decide_remove_all(state: State, request: RemoveAllHosts, context: Context) -> Decision:
    """Remove two hosts a part."""
    ids = state.hosts.sorted_keys()
    events = tuple(HostRemoved(HostId(number)) for number in ids[:2])
    return Decision(events, HostAdded(HostId(context.part)), more=len(ids) > 2)


@pytest.fixture
def _divisible() -> Iterator[None]:
    """Let the command be known, and forget it again."""
    command(RemoveAllHosts, permission=Permission.ADMINISTRATOR, divisible=True)(decide_remove_all)
    yield
    del COMMANDS[RemoveAllHosts]


@pytest.fixture
def _indivisible() -> Iterator[None]:
    """Let the command be known as one that is a single entry."""
    command(RemoveAllHosts, permission=Permission.ADMINISTRATOR)(decide_remove_all)
    yield
    del COMMANDS[RemoveAllHosts]


@pytest.mark.usefixtures("_divisible")
def test_a_divisible_command_goes_on_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancel of thousands is several entries under one request id, answered after the last."""
    cluster = Cluster(commits=False)
    monkeypatch.setattr("spur.testing.builders.encode_request", lambda request: b"the request")
    for number in range(5):
        cluster.add_host(f"login{number}", "login")
    before = cluster.state.index
    assert cluster.ask(RemoveAllHosts(), request_id=b"all") == HostAdded(HostId(3))
    assert cluster.state.index == before + 3
    assert len(cluster.state.hosts) == 0
    assert cluster.ask(RemoveAllHosts(), request_id=b"all") == HostAdded(HostId(3))

    undo_to(cluster.state, before + 1)
    assert next_part(cluster.state, "uid:0", b"all") == 2
    assert cluster.ask(RemoveAllHosts(), request_id=b"all") == HostAdded(HostId(3))
    assert len(cluster.state.hosts) == 0


@pytest.mark.usefixtures("_indivisible")
def test_an_indivisible_command_may_not_ask_for_more() -> None:
    """A command forgot to say that it takes several entries: that is our fault."""
    cluster = Cluster()
    for number in range(3):
        cluster.add_host(f"login{number}", "login")
    context = Context(now_ns=cluster.stamp(), index=9, actor=ADMIN)
    with pytest.raises(InvariantBroken, match="not declared divisible"):
        decide(cluster.state, RemoveAllHosts(), context)


@pytest.mark.usefixtures("_indivisible")
def test_a_request_has_one_command() -> None:
    """Two files judge the same request."""
    with pytest.raises(ValueError, match="judged twice"):
        command(RemoveAllHosts, permission=Permission.USER)(decide_remove_all)


def test_what_needs_room_is_refused_when_the_disk_is_low() -> None:
    """At the first disk mark the configuration waits; removing a host goes on."""
    cluster = Cluster()
    cluster.add_host("login1", "login")
    low = Context(now_ns=cluster.stamp(), index=9, actor=ADMIN, disk_is_low=True)
    refused = decide(cluster.state, Reconfigure((ConfigFile("spur.toml", ""),)), low)
    assert isinstance(refused, Rejection)
    assert refused.code == "disk-low"
    assert isinstance(decide(cluster.state, RemoveHost("login1"), low), Decision)


@pytest.mark.parametrize(
    ("request_", "who", "code"),
    [
        (AddHost("login1", "router"), ADMIN, "invalid-value"),
        (AddHost("no name", "login"), ADMIN, "invalid-value"),
        (AddHost("", "login"), ADMIN, "invalid-value"),
        (AddHost("c1", "login"), ADMIN, "wrong-state"),
        (AddHost("login1", "login"), actor(1000), "not-permitted"),
        (RemoveHost("login9"), ADMIN, "unknown-host"),
        (Reconfigure(()), ADMIN, "bad-configuration"),
        (Reconfigure((ConfigFile("slurm.conf", ""),)), ADMIN, "bad-configuration"),
        (Reconfigure((ConfigFile("spur.toml", "x"),)), ADMIN, "bad-configuration"),
        (RaiseVersion(NEWEST_CLUSTER_VERSION + 1), CLUSTER, "invalid-value"),
        (RaiseVersion(0), CLUSTER, "invalid-value"),
        (RecordRestore(0, "why"), CLUSTER, "invalid-value"),
        (AcceptClock(), actor(1000), "not-permitted"),
    ],
)
def test_a_refusal_changes_nothing_and_says_so(request_: Request, who: object, code: str) -> None:
    """Each of these is a judged no, with a code of the table."""
    cluster = Cluster()
    cluster.add_host("c1", "controller")
    index = cluster.state.index
    refused = cluster.ask(request_, who)  # type: ignore[arg-type]  # an actor of the table above
    assert isinstance(refused, Rejection)
    assert refused.code == code
    assert code in ERROR_CODES
    assert refused.text.endswith("nothing was changed")
    assert cluster.state.index == index


def test_many_errors_are_counted_beyond_the_first() -> None:
    """A file of another program is handed in."""
    text = "\n".join(f"key{number} = 1" for number in range(50))
    refused = Cluster().ask(Reconfigure((ConfigFile("spur.toml", text),)))
    assert isinstance(refused, Rejection)
    assert refused.text.splitlines()[-2:] == ["and 31 more", "nothing was changed"]


def test_a_host_asked_for_twice_keeps_its_id() -> None:
    """The administrator repeats the command by hand."""
    cluster = Cluster()
    first = cluster.ask(AddHost("login1", "login"))
    assert cluster.ask(AddHost("login1", "login")) == first
    assert cluster.ask(RemoveHost("login1")) == Done()
    assert cluster.ask(AddHost("login1", "login")) != first


def test_accepting_the_clock_is_recorded() -> None:
    """Somebody vouched for a clock that stepped, and the log says from when on."""
    cluster = Cluster()
    assert cluster.ask(AcceptClock()) == Done()
    assert cluster.state.cluster[1].clock_accepted_ns == cluster.state.time_ns


def test_the_cluster_is_shown() -> None:
    """Before and after the first configuration."""
    cluster = Cluster()
    before = cluster.ask(ShowCluster(), actor(1000))
    assert isinstance(before, ClusterInfo)
    assert before.settings is None
    cluster.configure()
    host_id = cluster.add_host("login1", "login")
    after = cluster.ask(ShowCluster(), actor(1000))
    assert isinstance(after, ClusterInfo)
    assert after.settings is not None
    assert after.settings.name == "hall"
    assert after.hosts == (HostInfo(host_id, "login1", "login"),)
    assert after.index == cluster.state.index


def test_raising_to_the_present_version_makes_no_entry() -> None:
    """The shell asks again after a failover."""
    cluster = Cluster()
    index = cluster.state.index
    assert cluster.ask(RaiseVersion(1), CLUSTER) == Done()
    assert cluster.state.index == index
    cluster.record(ClusterVersionRaised(7))
    assert cluster.state.cluster[1].version == 7


def test_a_node_is_not_configured_away_under_its_jobs() -> None:
    """A file makes a node smaller, or drops it, while a job holds more of it."""
    hall = Hall()
    job_id = hall.submit()
    hall.start(job_id, hall.share("n2", cpus=16, gpus=0b1000))
    for text in (
        SMALL_CONFIG.replace("cpus = 64", "cpus = 8"),
        SMALL_CONFIG.replace("gfx942:8", "gfx942:3"),
        SMALL_CONFIG.replace("512000", "50"),
        SMALL_CONFIG.replace("n[1-4]", "n[1,3-4]"),
    ):
        refused = hall.cluster.ask(Reconfigure((ConfigFile("spur.toml", text),)))
        assert isinstance(refused, Rejection)
        assert refused.code == "wrong-state"
        assert "running jobs" in refused.text
        assert "'n2'" in refused.text
    smaller = SMALL_CONFIG.replace("cpus = 64", "cpus = 16").replace("n[1-4]", "n[1-2]")
    assert not isinstance(
        hall.cluster.ask(Reconfigure((ConfigFile("spur.toml", smaller),))), Rejection
    )
