"""Adding, promoting and removing controllers: what is done, and what would harm and is refused."""

from __future__ import annotations

import pytest

from spur.commands.controllers import CONTROLLERS_MAX
from spur.commands.decide import Context, Decision, decide
from spur.events.envelope import Actor, EntryKind
from spur.projections.state import State
from spur.testing.builders import ADMIN, Cluster, actor
from spur.values.errors import Rejection
from spur.values.members import LEVEL_ENTRIES, Member, Membership, member_id_at
from spur.wire.controllers import (
    AddController,
    ControllerAdded,
    ControllerInfo,
    ControllerList,
    ControllersFound,
    FindControllers,
    PromoteController,
    RemoveController,
    ShowControllers,
)
from spur.wire.declare import Done, Request

DISK = bytes(range(16))
NEW = AddController("c9", DISK, "h9:1", "h9:2")


def member(number: int, *, voter: bool = True) -> Member:
    return Member(number, b"disk-%d" % number, voter, f"h{number}:1", f"h{number}:2", f"c{number}")


def info(of: Member, **known: int) -> ControllerInfo:
    """Return what is known of a member: all is well unless told otherwise."""
    values = {"match": 5000, "lag": 0, "history_from": 1, "heard_ms": 100} | known
    has_authority = bool(values.pop("has_authority", True))
    return ControllerInfo(
        node_id=of.id,
        name=of.name,
        disk_id=of.disk_id,
        voter=of.voter,
        raft_address=of.raft_address,
        rpc_address=of.rpc_address,
        leads=of.id == 1,
        erased_to=0,
        free_mib=1000,
        has_authority=has_authority,
        **values,
    )


def judged(
    request: Request,
    *infos: ControllerInfo,
    members: tuple[Member, ...],
    who: Actor = ADMIN,
) -> Decision | Rejection:
    """Return what the first controller decides; of whom nothing is said, all is well."""
    state = state_of(members)
    said = {each.node_id: each for each in infos}
    seen = ControllerList(1, tuple(said.get(one.id, info(one)) for one in members), b"genesis")
    context = Context(now_ns=1, index=state.index + 1, actor=who, controllers=seen)
    return decide(state, request, context)


def state_of(members: tuple[Member, ...]) -> State:
    cluster = Cluster(checked=False)
    cluster.append(EntryKind.MEMBERSHIP, Membership(members).encode())
    return cluster.state


ONE = (member(1),)
THREE = (member(1), member(2), member(3))
LEARNING = (member(1), member(20, voter=False))


def test_new_controller_is_a_learner_with_an_id_of_its_entry() -> None:
    """Somebody adds a second controller."""
    decision = judged(NEW, members=ONE)
    assert isinstance(decision, Decision)
    new = Member(member_id_at(3), DISK, False, "h9:1", "h9:2", "c9")
    assert decision.members == Membership((member(1), new))
    assert decision.answer == ControllerAdded(new.id, b"genesis", decision.members.encode())
    assert decision.events == ()


def test_same_disk_added_again_is_the_same_controller() -> None:
    """The answer was lost on its way, and the request comes once more."""
    known = Member(20, DISK, False, "h9:1", "h9:2", "c9")
    decision = judged(NEW, members=(member(1), known))
    assert isinstance(decision, Decision)
    assert decision.members is None
    assert isinstance(decision.answer, ControllerAdded)
    assert decision.answer.node_id == 20


@pytest.mark.parametrize(
    ("request_", "code", "sentence"),
    [
        (AddController("c9 ", DISK, "h9:1", "h9:2"), "invalid-value", "no controller's name"),
        (AddController("9", DISK, "h9:1", "h9:2"), "invalid-value", "is no number"),
        (AddController("c9", b"short", "h9:1", "h9:2"), "invalid-value", "16 bytes"),
        (AddController("c9", DISK, "h9", "h9:2"), "invalid-value", "'h9'; an address is host:port"),
        (AddController("c9", DISK, "h9:99999", "h9:2"), "invalid-value", "'h9:99999'; an address"),
        (AddController("c9", DISK, "h9:1", "h9:0"), "invalid-value", "'h9:0'; an address"),
        (AddController("c9", DISK, "h\0:1", "h9:2"), "invalid-value", "an address is host:port"),
        (AddController("c9", DISK, "h9:1", "h9:1"), "invalid-value", "can't be both"),
        (AddController("c9", DISK, "h1:2", "h9:2"), "wrong-state", "h1:2 is controller c1's"),
        (AddController("c1", DISK, "h9:1", "h9:2"), "wrong-state", "named c1 already"),
    ],
)
def test_new_controller_that_cannot_be_is_refused(
    request_: AddController, code: str, sentence: str
) -> None:
    """Names, addresses and disks are mistyped, or taken."""
    refused = judged(request_, members=ONE)
    assert isinstance(refused, Rejection)
    assert (refused.code, sentence in refused.text) == (code, True), refused.text
    assert refused.text.endswith("nothing was changed")


def test_too_many_controllers_are_refused() -> None:
    """Somebody adds one controller after the other."""
    members = tuple(member(number) for number in range(1, CONTROLLERS_MAX + 1))
    request = AddController("c99", DISK, "h99:1", "h99:2")
    refused = judged(request, members=members)
    assert isinstance(refused, Rejection)
    assert refused.code == "limit-exceeded"


def test_only_administrators_change_controllers() -> None:
    """An ordinary user tries each of the commands."""
    for request in (NEW, PromoteController("c2"), RemoveController("c2")):
        refused = judged(request, members=THREE, who=actor(1000))
        assert isinstance(refused, Rejection)
        assert refused.code == "not-permitted"
    seen = judged(ShowControllers(), members=THREE, who=actor(1000))
    assert isinstance(seen, Decision)


def test_hosts_are_told_where_the_controllers_are() -> None:
    """An agent asks; a controller that was left behind says that it knows of no leader."""
    found = judged(FindControllers(), members=THREE)
    assert isinstance(found, Decision)
    assert found.answer == ControllersFound(("h1:2", "h2:2", "h3:2"), is_led=True)
    alone = judged(FindControllers(), members=THREE[1:])
    assert isinstance(alone, Decision)
    assert alone.answer == ControllersFound(("h2:2", "h3:2"), is_led=False)
    stranger = judged(FindControllers(), members=THREE, who=actor(1000, host_role="router"))
    assert isinstance(stranger, Rejection)


def test_level_learner_is_promoted() -> None:
    """A learner lacks a few entries that are on their way."""
    near = info(LEARNING[1], lag=LEVEL_ENTRIES)
    decision = judged(PromoteController("c20"), near, members=LEARNING)
    assert isinstance(decision, Decision)
    assert decision.members == Membership((member(1), member(20)))
    again = judged(PromoteController("c2"), members=THREE)
    assert again == Decision((), Done())


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ({"lag": LEVEL_ENTRIES + 1}, f"learner c20 (20) lacks {LEVEL_ENTRIES + 1} entries"),
        ({"match": 0}, "learner c20 (20) lacks 0 entries"),
        ({"heard_ms": -1}, "learner c20 (20) was not heard"),
        ({"heard_ms": 60_000}, "learner c20 (20) was not heard"),
    ],
)
def test_learner_that_is_not_level_is_refused_by_name(known: dict[str, int], sentence: str) -> None:
    """Somebody is in a hurry: the learner lacks much, or is not even there."""
    refused = judged(PromoteController("20"), info(LEARNING[1], **known), members=LEARNING)
    assert isinstance(refused, Rejection)
    assert refused.code == "not-level"
    assert refused.text.startswith(sentence)


def test_controller_is_removed_by_name_or_id() -> None:
    """One of three goes."""
    for said in ("c3", "3"):
        decision = judged(RemoveController(said), members=THREE)
        assert isinstance(decision, Decision)
        assert decision.members == Membership(THREE[:2])
        assert not decision.hands_over


def test_leader_hands_over_before_it_is_removed() -> None:
    """The controller that leads is to go."""
    decision = judged(RemoveController("c1"), members=THREE)
    assert isinstance(decision, Decision)
    assert decision.hands_over
    assert decision.members is None


def test_id_that_is_removed_already_is_done() -> None:
    """The answer to a removal was lost, and it is asked for again."""
    assert judged(RemoveController("7"), members=THREE) == Decision((), Done())
    refused = judged(RemoveController("c7"), members=THREE)
    assert isinstance(refused, Rejection)
    assert refused.text == (
        "no controller is 'c7'; there are c1 (1), c2 (2), c3 (3); nothing was changed"
    )


def test_only_voter_is_not_removed() -> None:
    """A cluster of one, with a learner that does not vote yet."""
    refused = judged(RemoveController("c1"), members=LEARNING)
    assert isinstance(refused, Rejection)
    assert refused.text.startswith("controller c1 (1) is the only voter")


def test_dead_minority_is_removed_and_a_needed_voter_is_not() -> None:
    """One of three is dead: it may go; one of the two that live must stay."""
    dead = info(THREE[2], heard_ms=60_000)
    assert isinstance(judged(RemoveController("c3"), dead, members=THREE), Decision)
    refused = judged(RemoveController("c2"), dead, members=THREE)
    assert isinstance(refused, Rejection)
    assert refused.text.startswith(
        "without controller c2 (2) only 1 of 2 voters would answer, and nothing could be decided"
    )


@pytest.mark.parametrize(
    ("theirs", "held", "is_refused"),
    [((500, 900), 1, True), ((500, 900), 500, False), ((1, 900), 1, False), ((500, 900), 0, True)],
    ids=["last", "another has as much", "another has all", "nobody knows"],
)
def test_last_holder_of_history_is_not_removed(
    theirs: tuple[int, int], held: int, *, is_refused: bool
) -> None:
    """The others joined by a snapshot, and have not fetched the old segments yet."""
    members = THREE
    known = [
        info(members[0], history_from=theirs[0]),
        info(members[1], history_from=theirs[1]),
        info(members[2], history_from=held),
    ]
    outcome = judged(RemoveController("c3"), *known, members=members)
    assert isinstance(outcome, Rejection) is is_refused
    if isinstance(outcome, Rejection):
        assert outcome.code == "last-holder"
        assert "the history of the others is whole from entry 500 on" in outcome.text
    anyway = judged(RemoveController("c3", gives_up_history=True), *known, members=members)
    assert isinstance(anyway, Decision)


def infos_of(*, keys: str, dead: str = "") -> list[ControllerInfo]:
    """Return what is known of three controllers: who has the key, who is not heard any more."""
    return [
        info(
            each,
            has_authority=str(each.id) in keys,
            heard_ms=60_000 if str(each.id) in dead else 100,
        )
        for each in THREE
    ]


@pytest.mark.parametrize(
    ("keys", "dead", "is_refused"),
    [("3", "", True), ("12", "", False), ("23", "", False), ("", "", False), ("13", "1", True)],
    ids=["last", "not its", "another's too", "nobody has it", "the other is dead"],
)
def test_last_holder_of_the_authority_is_not_removed(
    keys: str, dead: str, *, is_refused: bool
) -> None:
    """The third is to go; new controllers may not have got the key of the authority yet."""
    known = infos_of(keys=keys, dead=dead)
    members = (*THREE, member(4))
    last = info(members[3], has_authority=False)
    outcome = judged(RemoveController("c3"), *known, last, members=members)
    assert isinstance(outcome, Rejection) is is_refused
    if isinstance(outcome, Rejection):
        assert outcome.code == "last-authority"
        assert outcome.text.startswith(
            "controller c3 (3) may be the last to have the key of the cluster's authority"
        )
        assert outcome.text.endswith("; nothing was changed")
        assert "spur controller list" in outcome.hint
    anyway = judged(RemoveController("c3", gives_up_authority=True), *known, last, members=members)
    assert isinstance(anyway, Decision)


def test_dead_controller_of_which_nothing_is_known_may_have_the_key() -> None:
    """The leader was just elected, and never heard of the one that is to be removed."""
    known = infos_of(keys="")
    silent = info(THREE[2], has_authority=False, heard_ms=-1, history_from=0)
    refused = judged(RemoveController("c3"), *known[:2], silent, members=THREE)
    assert isinstance(refused, Rejection)
    assert refused.code == "last-authority"


def test_learner_that_has_the_key_is_not_enough() -> None:
    """A learner may still be dropped: it does not count as one that stays."""
    members = (*THREE[:2], member(20, voter=False))
    known = [info(members[0], has_authority=False), info(members[1])]
    refused = judged(RemoveController("c2"), *known, members=members)
    assert isinstance(refused, Rejection)
    assert refused.code in ("last-authority", "wrong-state")


@pytest.mark.parametrize(
    "new",
    [{"match": 1}, {"match": 4_000, "lag": LEVEL_ENTRIES + 1}, {"heard_ms": 60_000}],
    ids=["just begun", "far behind", "dead"],
)
def test_who_may_begin_anew_holds_no_history_yet(new: dict[str, int]) -> None:
    """A new controller's ledger begins with entry 1, until a snapshot takes its place."""
    known = [info(THREE[0], history_from=500), info(THREE[1], history_from=1, **new)]
    refused = judged(RemoveController("c3"), *known, members=THREE)
    assert isinstance(refused, Rejection)
    assert refused.code in ("last-holder", "wrong-state")
    level = judged(RemoveController("c3"), known[0], members=THREE)
    assert isinstance(level, Decision)


@pytest.mark.parametrize("said", ["9" * 5_000, "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT ONE}"])
@pytest.mark.parametrize("kind", [RemoveController, PromoteController])
def test_what_only_looks_like_an_id_is_unknown(
    kind: type[RemoveController | PromoteController], said: str
) -> None:
    """Digits that no id has, or more of them than any has."""
    refused = judged(kind(said), members=ONE)
    assert isinstance(refused, Rejection)
    assert refused.code == "unknown-controller"
