"""Requests remembered: one tried twice is done once, and what is forgotten is never guessed."""

from __future__ import annotations

import pytest

from spur.projections import requests
from spur.projections.requests import StoredAnswer, lookup, next_part
from spur.projections.undo import undo_to
from spur.testing.builders import ADMIN, Cluster, actor
from spur.values.errors import Rejection
from spur.values.limits import REQUEST_MEMORY_NS, REQUESTS_FORGOTTEN_PER_ENTRY_MAX
from spur.wire.cluster import AddHost, HostAdded, RemoveHost

ID = b"the request's id"


def test_a_repeated_request_gets_its_first_answer() -> None:
    """The answer was lost on the way; the client asks again with the same id."""
    cluster = Cluster()
    first = cluster.ask(AddHost("login1", "login"), request_id=ID)
    index = cluster.state.index
    assert cluster.ask(AddHost("login1", "login"), request_id=ID) == first
    assert cluster.state.index == index
    assert cluster.ask(RemoveHost("login1")) is not None
    assert cluster.ask(AddHost("login1", "login"), request_id=ID) == first


def test_an_id_names_one_request() -> None:
    """A client has a fault and gives two requests the same id."""
    cluster = Cluster()
    cluster.ask(AddHost("login1", "login"), request_id=ID)
    refused = cluster.ask(AddHost("login2", "login"), request_id=ID)
    assert isinstance(refused, Rejection)
    assert refused.code == "request-reused"


def test_an_id_is_its_principals_own() -> None:
    """Two users happen to choose the same id."""
    cluster = Cluster()
    cluster.ask(AddHost("login1", "login"), request_id=ID)
    state = cluster.state
    assert lookup(state, "uid:0", ID, b"", state.index) is not None
    assert lookup(state, "uid:7", ID, b"", state.index) is None


def test_an_undone_request_is_executed_again() -> None:
    """The leader lost its lead before the entry committed: the retry is not a repetition."""
    cluster = Cluster(commits=False)
    before = cluster.state.index
    first = cluster.ask(AddHost("login1", "login"), request_id=ID)
    undo_to(cluster.state, before)
    again = cluster.ask(AddHost("login1", "login"), request_id=ID)
    assert first == again == HostAdded(cluster.state.host_of_name.key("login1") or 0)  # type: ignore[arg-type]  # an id or a failed test


def test_requests_are_forgotten_after_their_time() -> None:
    """A quarter of an hour of log time later, an old retry is told that nobody knows."""
    cluster = Cluster()
    cluster.ask(AddHost("login1", "login"), request_id=ID)
    known_at = cluster.state.index
    cluster.pass_seconds(REQUEST_MEMORY_NS / 1e9)
    cluster.ask(AddHost("login2", "login"))
    state = cluster.state
    assert ("uid:0", ID) not in state.requests
    outcome = cluster.ask(AddHost("login1", "login"), request_id=ID, since=known_at - 1)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "outcome-unknown"
    assert "nothing was executed" in outcome.text
    fresh = lookup(state, "uid:0", b"another", b"", known_at)
    assert fresh is None


def test_requests_are_remembered_until_their_time() -> None:
    """One nanosecond before the quarter of an hour is over, the answer is still there."""
    cluster = Cluster()
    first = cluster.ask(AddHost("login1", "login"), request_id=ID)
    stamp = cluster.state.time_ns
    cluster.now_ns = stamp + REQUEST_MEMORY_NS - 1_000 - 1
    cluster.ask(AddHost("login2", "login"))
    assert cluster.state.time_ns == stamp + REQUEST_MEMORY_NS - 1
    assert cluster.ask(AddHost("login1", "login"), request_id=ID) == first


def test_requests_are_forgotten_beyond_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst of submissions: the oldest ids go first, whatever their age."""
    monkeypatch.setattr(requests, "REMEMBERED_REQUESTS_MAX", 3)
    cluster = Cluster()
    for number in range(5):
        cluster.ask(AddHost(f"login{number}", "login"))
    kept = [row.index for row in cluster.state.requests.rows.values()]
    assert sorted(kept) == [4, 5, 6]
    assert cluster.state.counters["request-floor"].value == 3


def test_one_entry_forgets_a_bounded_number() -> None:
    """After a busy hour and a quiet one, no single entry pays for them both."""
    cluster = Cluster(checked=False)
    for number in range(100):
        cluster.ask(AddHost(f"login{number}", "login"))
    cluster.pass_seconds(3600)
    cluster.ask(AddHost("late", "login"))
    assert len(cluster.state.requests) == 101 - REQUESTS_FORGOTTEN_PER_ENTRY_MAX
    cluster.ask(AddHost("later", "login"))
    assert len(cluster.state.requests) == 2


def test_what_the_cluster_asks_of_itself_is_not_remembered() -> None:
    """The clock's commands have no id."""
    cluster = Cluster()
    cluster.record()
    assert len(cluster.state.requests) == 0
    assert lookup(cluster.state, "uid:0", b"", b"", 0) is None


def test_a_stored_answer_names_its_entry() -> None:
    """A client sends the index back as the least that it has seen."""
    cluster = Cluster()
    cluster.ask(AddHost("login1", "login"), ADMIN, request_id=ID)
    row = cluster.state.requests["uid:0", ID]
    assert lookup(cluster.state, "uid:0", ID, row.hash, 0) == StoredAnswer(
        row.answer, cluster.state.index
    )
    assert next_part(cluster.state, "uid:0", ID) == 1


def test_a_users_requests_are_refused_before_they_are_remembered() -> None:
    """A refusal changes nothing, so the same id may be tried again."""
    cluster = Cluster()
    refused = cluster.ask(AddHost("login1", "login"), actor(1000), request_id=ID)
    assert isinstance(refused, Rejection)
    assert len(cluster.state.requests) == 0
