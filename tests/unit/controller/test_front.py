"""The front on a log in memory: what it answers, when, and what it leaves undone."""

from __future__ import annotations

import pytest

from spur.commands.decide import Decision
from spur.consensus.genesis import genesis_chain
from spur.controller import front as front_module
from spur.controller import judging
from spur.controller.front import CLUSTER, Front
from spur.controller.services import ReleaseOnly
from spur.events.envelope import chain_next
from spur.projections import requests
from spur.projections.apply import ApplyFailed
from spur.projections.digest import state_digest
from spur.projections.dispatch import LaunchRun
from spur.testing.builders import GENESIS, actor, newborn
from spur.testing.desk import Desk, furnished
from spur.testing.hall import placement, submission
from spur.values.ids import JobId, NodeName
from spur.values.states import Hold, NodeShareState
from spur.values.tres import NodeShare
from spur.wire.calls import Answered, Refused
from spur.wire.cluster import ShowCluster
from spur.wire.declare import Request
from spur.wire.jobs import HoldJob, JobAccepted
from spur.wire.runs import PlaceJobs, ReportAnswered, ReportRun

USER = actor(1001, host_role="controller")
SHARE = NodeShare(NodeName("n1"), 4, 1_000, 0, b"\x0f", False)


@pytest.fixture
def desk() -> Desk:
    """Return a front that leads a configured cluster whose node n1 is there."""
    return furnished()


def test_answer_leaves_when_its_entry_is_committed(desk: Desk) -> None:
    """Somebody submits: the state has the job at once, the answer waits for the commit."""
    desk.put(submission(), USER)
    assert len(desk.front.state.jobs) == 1
    assert desk.replies == []
    desk.turn()
    assert isinstance(desk.answer(), JobAccepted)
    assert desk.replies[0].index == desk.front.state.index


def test_refusal_waits_for_the_entries_that_it_saw(desk: Desk) -> None:
    """A hold is refused because of a job that is not committed yet: so the refusal waits too."""
    desk.put(submission(hold=True), USER)
    desk.put(HoldJob(JobId(1), None, Hold.USER), actor(1002, host_role="controller"))
    assert desk.replies == []
    desk.turn()
    assert [type(reply.outcome) for reply in desk.replies] == [Answered, Refused]
    assert desk.refusal().code == "not-owner"


def test_read_waits_for_the_entries_that_it_saw(desk: Desk) -> None:
    """A query comes right behind a submission: it shows it, and leaves after its commit."""
    desk.put(submission(), USER)
    desk.put(ShowCluster())
    assert desk.replies == []
    desk.turn()
    assert len(desk.replies) == 2


def test_lost_lead_undoes_what_is_not_committed(desk: Desk) -> None:
    """The lead is lost between append and commit: the client asks again with the same id."""
    state = desk.front.state
    before = state_digest(state)
    desk.put(submission(), USER, request_id=b"i" * 16)
    desk.put(submission(), USER)
    desk.front.following(2)
    assert [desk.refusal().code for _ in desk.replies] == ["ask-again", "ask-again"]
    assert state_digest(state) == before
    assert len(state.jobs) == 0


def test_request_is_not_taken_without_the_lead(desk: Desk) -> None:
    """A client asks a controller that does not lead: it is told where the leader is."""
    desk.front.following(1)
    desk.put(submission(), USER)
    assert desk.refusal().code == "not-leader"
    assert desk.refusal().leader == "c1:6816"


def test_failing_trial_is_undone_and_never_logged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours lets the trial fail: the request is refused, log and state are as before."""
    state, last = desk.front.state, desk.log.last
    before = state_digest(state)

    def fail(*_: object, **__: object) -> None:
        raise ApplyFailed(state.index + 1, "planted")

    monkeypatch.setattr(front_module, "apply", fail)
    desk.put(submission(), USER)
    desk.turn()
    assert desk.refusal().code == "fault"
    assert desk.refusal().text.endswith("nothing was changed")
    assert (desk.log.last, state_digest(state)) == (last, before)


@pytest.mark.parametrize("request_", [submission(), ShowCluster()])
def test_request_that_cannot_be_judged_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, request_: Request
) -> None:
    """A request runs into a fault of ours: it is answered, and the others on the line go on."""
    before = state_digest(desk.front.state)

    def fail(*_: object) -> Decision:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(judging, "decide", fail)
    desk.put(request_, USER)
    desk.turn()
    monkeypatch.undo()
    assert desk.refusal().code == "fault"
    assert desk.refusal().text == "ZeroDivisionError: planted; nothing was changed"
    assert state_digest(desk.front.state) == before
    desk.put(ShowCluster(), USER)
    desk.turn()
    assert len(desk.replies) == 2


def test_request_that_the_log_does_not_take_is_undone(desk: Desk) -> None:
    """Too much waits to be committed: the request is refused as if it had never been tried."""
    before = state_digest(desk.front.state)
    desk.log.is_full = True
    desk.put(submission(), USER)
    desk.turn()
    assert desk.refusal().code == "busy"
    assert state_digest(desk.front.state) == before


def test_leader_applies_the_bytes_that_it_logged(desk: Desk) -> None:
    """Another replica follows the log: its state and its chain are the leader's."""
    for _ in range(3):
        desk.put(submission(), USER)
    desk.turn()
    follower = Front(
        newborn(),
        desk.log,
        noise=bytes,
        address_of=lambda replica: "",
        services=ReleaseOnly(lambda effect, _: pytest.fail(f"a follower performs {effect}")),
    )
    entries = desk.log.entries(1, desk.log.last)
    follower.committed(entries)
    chain = genesis_chain(GENESIS)
    for entry in entries:
        chain = chain_next(chain, entry)
    assert follower.state.chain == desk.front.state.chain == chain
    assert state_digest(follower.state) == state_digest(desk.front.state)


def test_effect_is_released_when_its_entry_is_committed(desk: Desk) -> None:
    """A job starts: its node hears of it after the commit, and never before."""
    desk.put(submission(), USER)
    desk.turn()
    desk.put(PlaceJobs(0, b"", (placement(JobId(1), SHARE),)), CLUSTER)
    assert desk.effects == []
    desk.turn()
    assert [type(effect) for effect in desk.effects] == [LaunchRun]


def test_new_leader_performs_what_rows_owe(desk: Desk) -> None:
    """The leader died before a launch was acknowledged: the next one launches again."""
    desk.put(submission(), USER)
    desk.turn()
    desk.put(PlaceJobs(0, b"", (placement(JobId(1), SHARE),)), CLUSTER)
    desk.turn()
    successor = Desk(desk.front.state)
    successor.front._waiting.commit = desk.front.commit
    successor.log._entries = list(desk.log.entries(1, desk.log.last))
    successor.log._given = desk.log.last
    successor.log._term = 1
    successor.front.leading(1)
    assert successor.effects == []
    successor.front.before_turn()
    assert successor.effects == desk.effects


def test_effects_of_an_uncommitted_start_are_dropped_with_the_lead(desk: Desk) -> None:
    """The lead is lost before a start commits: nobody is told to launch."""
    desk.put(submission(), USER)
    desk.turn()
    desk.put(PlaceJobs(0, b"", (placement(JobId(1), SHARE),)), CLUSTER)
    desk.front.following(2)
    desk.front.committed(desk.log.entries(desk.front.commit + 1, desk.log.last))
    assert desk.effects == []


def test_report_is_taken_however_old_its_first_try_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node was cut off while thousands of requests came and were forgotten; it reports at last.

    Its reports have numbers of their own, so one that comes twice is known without its id.
    """
    monkeypatch.setattr(requests, "REMEMBERED_REQUESTS_MAX", 1)
    desk.put(submission(), USER)
    desk.turn()
    desk.put(PlaceJobs(0, b"", (placement(JobId(1), SHARE),)), CLUSTER)
    desk.turn()
    state = desk.front.state
    report = ReportRun(
        NodeName("n1"), b"o" * 16, 1, JobId(1), 0, 1, NodeShareState.ENDED, 0, 0, False, 0
    )
    remembered = len(state.requests)
    host_id = state.nodes[NodeName("n1")].host_id
    agent = actor(0, host_role="compute", host_id=host_id, via="agent")
    for outcome in ("done", "already"):
        desk.put(report, agent, since=1)
        desk.turn()
        assert desk.answer() == ReportAnswered(outcome)
    assert len(state.requests) == remembered


def test_read_without_a_quorum_is_answered_with_a_warning(desk: Desk) -> None:
    """No leader is known: the last committed state is shown, and how old it is."""
    desk.front.following(0)
    desk.log.has_quorum = False
    desk.put(ShowCluster())
    desk.front.before_turn()
    assert isinstance(desk.replies[-1].outcome, Answered)
    assert desk.replies[-1].warning == (
        f"no quorum of controllers answers: this is the state at entry {desk.front.state.index},"
        " 7 s after a leader was last heard"
    )


def test_read_without_a_quorum_never_shows_less_than_its_caller_saw(desk: Desk) -> None:
    """A client has an answer from a controller that knew more, and now only this one is left."""
    desk.front.following(0)
    desk.log.has_quorum = False
    known = desk.front.state.index
    desk.put(ShowCluster(), at_least=known)
    desk.put(ShowCluster(), at_least=known + 1)
    desk.front.before_turn()
    assert isinstance(desk.replies[-2].outcome, Answered)
    assert desk.refusal().code == "not-leader"
    assert desk.refusal().text == (
        f"this controller stands at entry {known}, and no leader is known"
    )
