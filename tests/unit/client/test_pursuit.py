"""One request over several tries: whom the client asks next, and what it says at the end."""

from __future__ import annotations

import pytest

from spur.client.address import Address, TcpAddress, UnixAddress
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.client.pursuit import Cluster, Pursuit
from spur.values.errors import Rejection
from spur.wire.calls import Answered, Goodbye, Refused, Reply, Welcome

A, B, C = (TcpAddress(f"ctl{n}", 6816) for n in (1, 2, 3))
ID = b"i" * 16
CLUSTER = b"c" * 16


def cluster(*addresses: Address, has_tls: bool = True) -> Cluster:
    """Return what a new client knows."""
    return Cluster(addresses or (A, B, C), cluster_id=b"", has_tls=has_tls)


def pursuit(of: Cluster, request: bytes = b"request") -> Pursuit:
    """Return a request that was not sent yet."""
    return Pursuit(of, request, ID, since=None, speaks_for=None)


def refused(code: str, leader: str = "", index: int = 9) -> Reply:
    """Return a reply that is no outcome."""
    outcome = Refused(code=code, text=f"{code} it is", leader=leader)
    return Reply(number=1, incarnation=1, index=index, outcome=outcome)


def welcome(index: int = 5, incarnation: int = 1) -> Welcome:
    """Return a replica's welcome."""
    return Welcome(version=1, cluster_id=CLUSTER, replica=1, incarnation=incarnation, index=index)


def test_leader_is_found_by_its_hint() -> None:
    """The first replica names the leader: it is asked at once, and first from then on."""
    of = cluster()
    asked = pursuit(of)
    assert asked.address() == A
    asked.call(1)
    assert asked.judge(A, refused("not-leader", leader="ctl3:6816")) is None
    assert (asked.address(), asked.pause_s) == (C, 0.0)
    asked.call(1)
    answered = Answered(answer=b"yes")
    reply = Reply(number=1, incarnation=1, index=12, outcome=answered)
    assert asked.judge(C, reply) == answered
    assert pursuit(of).address() == C


def test_answer_without_a_quorum_is_asked_for_again() -> None:
    """A lone controller tells what it last knew: only who asks to be warned takes that."""
    old = Reply(number=1, incarnation=1, index=3, outcome=Answered(answer=b"old"), warning="lone")
    asked = pursuit(cluster())
    asked.call(1)
    assert asked.judge(A, old) is None
    assert asked.address() == B
    with pytest.raises(Unreachable, match="lone"):
        raise asked.give_up(1)
    warnings: list[str] = []
    other = Pursuit(cluster(), b"request", ID, since=None, speaks_for=None, warn=warnings.append)
    other.call(1)
    assert other.judge(A, old) == Answered(answer=b"old")
    assert warnings == ["lone"]


def test_hint_to_an_unknown_address_is_followed() -> None:
    """A replica was added since the client's configuration was written, and leads now."""
    asked = pursuit(cluster(A))
    asked.call(1)
    asked.judge(A, refused("not-leader", leader="new:6816"))
    assert asked.address() == TcpAddress("new", 6816)
    asked.lost(TcpAddress("new", 6816), "no route to host")
    assert asked.address() == A


def test_hint_that_cannot_be_dialled_means_the_next_in_the_list() -> None:
    """A client on Unix sockets has no certificate: it tries the other sockets."""
    one, two = UnixAddress("/run/1"), UnixAddress("/run/2")
    asked = pursuit(cluster(one, two, A, has_tls=False))
    asked.call(1)
    asked.judge(one, refused("not-leader", leader="ctl1:6816"))
    assert (asked.address(), asked.pause_s) == (two, 0.0)


def test_hints_in_a_circle_are_followed_with_pauses() -> None:
    """During an election two replicas name each other: the client does not spin."""
    asked = pursuit(cluster(A, B))
    pauses = []
    for number in range(30):
        asked.call(number)
        here, there = (A, "ctl2:6816") if number % 2 == 0 else (B, "ctl1:6816")
        asked.judge(here, refused("not-leader", leader=there))
        pauses.append(asked.pause_s)
    assert pauses[:5] == [0.0, 0.0, 0.0, 0.0, 0.02]
    assert 0.3 < sum(pauses) < 1.0


def test_replicas_without_a_leader_are_asked_in_turn() -> None:
    """No replica knows a leader: all are asked, then there is a pause, which stays short."""
    asked = pursuit(cluster())
    seen = []
    for number in range(9):
        address = asked.address()
        asked.call(number)
        asked.judge(address, refused("not-leader"))
        seen.append((address, asked.pause_s))
    assert [address for address, _ in seen] == [A, B, C] * 3
    assert [pause for _, pause in seen] == [0, 0, 0.02, 0, 0, 0.04, 0, 0, 0.08]


def test_who_has_waited_long_asks_seldom() -> None:
    """Most controllers are gone for an hour: a thousand agents must not keep the last one busy."""
    asked = pursuit(cluster())
    waited_s, tries, after_two_s = 0.0, 0, 0.0
    while waited_s < 600:
        asked.lost(asked.address(), "Connection refused")
        waited_s += asked.pause_s
        tries += 1
        if waited_s < 2:
            after_two_s = max(after_two_s, asked.pause_s)
    assert after_two_s <= 0.2
    assert asked.pause_s in (0.0, 1.0)
    assert tries < 3 * 700


def test_replicas_that_are_down_are_asked_in_turn() -> None:
    """Nobody answers: one round without pauses, then a pause after each round."""
    asked = pursuit(cluster())
    pauses = []
    for address in (A, B, C, A, B, C):
        assert asked.address() == address
        asked.lost(address, "Connection refused")
        pauses.append(asked.pause_s)
    assert pauses == [0, 0, 0.02, 0, 0, 0.04]
    fault = asked.give_up(3.0)
    assert isinstance(fault, Unreachable)
    assert str(fault) == (
        "no controller took the request in 3 s (ctl3:6816: Connection refused); nothing was done"
    )


def test_every_try_is_the_same_request() -> None:
    """The id and the index seen before the first try stay; what was seen since rises."""
    of = cluster()
    of.judge_welcome(welcome(index=5))
    asked = pursuit(of)
    first = asked.call(1)
    asked.lost(A, "the connection ended")
    of.judge_welcome(welcome(index=40, incarnation=2))
    second = asked.call(1)
    assert (first.request_id, first.since, first.request) == (ID, 5, b"request")
    assert (second.request_id, second.since, second.request) == (ID, 5, b"request")
    assert (first.incarnation, first.at_least) == (1, 5)
    assert (second.incarnation, second.at_least) == (2, 40)


def test_position_never_goes_back() -> None:
    """A replica that lags answers: the client still asks for at least what it has seen."""
    of = cluster()
    for incarnation, index in ((1, 10), (1, 4), (2, 3), (1, 50)):
        of.learn(incarnation, index)
    assert (of.incarnation, of.index) == (2, 3)


@pytest.mark.parametrize("code", ["busy", "history-behind"])
def test_busy_leader_is_asked_again_after_a_growing_pause(code: str) -> None:
    """The leader has too much to do: the same one is asked, less and less often."""
    asked = pursuit(cluster())
    pauses = []
    for number in range(8):
        asked.call(number)
        asked.judge(A, refused(code))
        assert asked.address() == A
        pauses.append(asked.pause_s)
    assert pauses == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5, 0.5]
    assert isinstance(asked.give_up(2.0), Unreachable)


def test_outcome_is_unknown_when_a_try_stays_open() -> None:
    """The leader died with the request in hand, and no other leader came before the deadline."""
    of = cluster()
    of.judge_welcome(welcome(index=5))
    asked = pursuit(of)
    asked.call(1)
    asked.lost(A, "the connection ended")
    asked.call(1)
    asked.judge(B, refused("not-leader"))
    fault = asked.give_up(30.0)
    assert isinstance(fault, OutcomeUnknown)
    assert (fault.request_id, fault.since) == (ID, 5)
    assert str(fault) == (
        "no outcome in 30 s (ctl2:6816: not-leader it is); the request may have been carried out"
        " or not; asking again with the same id is safe"
    )


def test_lost_leadership_leaves_the_outcome_open() -> None:
    """The entry was appended and the lead was lost: it may still commit."""
    asked = pursuit(cluster())
    asked.call(1)
    assert asked.judge(A, refused("ask-again")) is None
    assert asked.pause_s == 0.02
    assert isinstance(asked.give_up(1.0), OutcomeUnknown)


def test_forgotten_request_is_an_unknown_outcome() -> None:
    """The replicas have forgotten what became of the first try, so nobody can say."""
    asked = pursuit(cluster())
    asked.call(1)
    asked.lost(A, "the connection ended")
    asked.call(1)
    with pytest.raises(OutcomeUnknown, match="outcome-unknown it is; the request may have been"):
        asked.judge(B, refused("outcome-unknown"))


def test_forgotten_first_try_is_a_refusal() -> None:
    """The first and only try came too late: it was surely not carried out."""
    asked = pursuit(cluster())
    asked.call(1)
    assert asked.judge(A, refused("outcome-unknown")) == Rejection(
        "outcome-unknown", "outcome-unknown it is"
    )


def test_rejection_is_an_outcome() -> None:
    """A judged no is not asked again."""
    asked = pursuit(cluster())
    asked.call(1)
    assert asked.judge(A, refused("unknown-job")) == Rejection("unknown-job", "unknown-job it is")


def test_client_of_another_cluster_does_not_wait_for_its_deadline() -> None:
    """Every replica says that we are not of its cluster: waiting would not help."""
    asked = pursuit(cluster(A, B))
    foreign = Goodbye(code="foreign-peer", text="not of this cluster")
    asked.lost(A, foreign.text, foreign)
    assert not asked.is_hopeless()
    asked.lost(B, foreign.text, foreign)
    assert asked.is_hopeless()


def test_stopping_replicas_are_not_hopeless() -> None:
    """Every replica says goodbye because it restarts."""
    asked = pursuit(cluster(A))
    asked.lost(A, "this controller stops", Goodbye(code="ask-again", text=""))
    assert not asked.is_hopeless()


def test_request_over_the_limit_is_not_sent() -> None:
    """A script of nine megabytes is refused before anything is sent."""
    asked = pursuit(cluster(), bytes(9 << 20))
    assert asked.too_long() == Rejection(
        "limit-exceeded",
        "a request of 9437184 bytes; at most 8388608 are taken; nothing was sent",
    )
    assert pursuit(cluster(), bytes(8 << 20)).too_long() is None


def test_addresses_that_need_a_certificate_are_of_no_use_without() -> None:
    """Only TLS addresses and no certificate: said at once."""
    with pytest.raises(ValueError, match="no address to ask: give a Unix socket"):
        cluster(A, has_tls=False)
    with pytest.raises(ValueError, match="no address to ask"):
        Cluster((), cluster_id=b"", has_tls=True)


def test_other_cluster_is_refused_after_the_first() -> None:
    """One of the configured addresses belongs to another cluster now."""
    of = cluster()
    assert of.judge_welcome(welcome()) is None
    other = Welcome(version=1, cluster_id=b"x" * 16, replica=1, incarnation=1, index=5)
    assert of.judge_welcome(other) == f"it belongs to cluster {(b'x' * 16).hex()}, not to ours"
    newer = Welcome(version=2, cluster_id=CLUSTER, replica=1, incarnation=1, index=5)
    assert of.judge_welcome(newer) == "it speaks version 2 of the wire; this client 1"


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ((f"spur://{CLUSTER.hex()}/controller/1",), None),
        ((f"spur://{CLUSTER.hex()}/compute/1",), "which is no controller"),
        ((), "its certificate names nobody, which is no controller"),
        ((f"spur://{'0' * 32}/controller/1",), f"is of cluster {'0' * 32}, not of ours"),
    ],
)
def test_server_must_be_a_controller(names: tuple[str, ...], sentence: str | None) -> None:
    """A compute host with its own good certificate poses as a controller."""
    of = cluster()
    of.judge_welcome(welcome())
    why = of.judge_host(names)
    assert (why is None) if sentence is None else (sentence in str(why))


def test_leader_that_fell_silent_is_not_asked_again_at_once() -> None:
    """The leader's cable is cut, and the others have not noticed yet: they still name it.

    Whoever asks waits for an election rather than to ask there again; if they name it for long,
    it is the asker who was wrong.
    """
    of = cluster()
    asked = pursuit(of)
    asked.call(1)
    asked.lost(A, "no sign of life")
    for number in range(6):
        at = asked.address()
        assert at == (B, C)[number % 2]
        asked.call(1)
        assert asked.judge(at, refused("not-leader", leader="ctl1:6816")) is None
        assert asked.pause_s > 0
    at = asked.address()
    asked.call(1)
    assert asked.judge(at, refused("not-leader", leader="ctl1:6816")) is None
    assert asked.address() == A


def test_new_leader_is_followed_though_the_old_one_fell_silent() -> None:
    """The others have elected another: it is asked at once."""
    of = cluster()
    asked = pursuit(of)
    asked.lost(A, "no sign of life")
    asked.call(1)
    assert asked.judge(B, refused("not-leader", leader="ctl3:6816")) is None
    assert (asked.address(), asked.pause_s) == (C, 0.0)


def test_new_addresses_take_the_place_of_the_known() -> None:
    """Controllers come and go while a daemon runs; whom it speaks with is still asked first."""
    known = cluster(A, B)
    asked = pursuit(known)
    asked.judge(A, refused("not-leader", str(B)))
    known.know([C])
    assert asked.address() == B
    asked.lost(B, "gone")
    assert asked.address() == C
    asked.lost(C, "gone")
    assert asked.address() == C
    with pytest.raises(ValueError, match="no address to ask"):
        known.know([])
