"""Read barriers: which index a read must have seen, and when that is known."""

from __future__ import annotations

from spur.consensus.core import Core, HardState
from spur.consensus.messages import (
    AppendReply,
    BarrierAsk,
    BarrierTell,
    Heartbeat,
    HeartbeatReply,
)
from spur.testing.simulation.core_script import CoreScript, EvenRng, membership_of, scripted_core


def ask(script: CoreScript, number: int, token: int) -> bool:
    asked = script.core(number).barrier(token)
    script.nodes[number].pump()
    return asked


def test_barrier_is_answered_when_a_quorum_confirmed_the_lead_after_it() -> None:
    """Somebody lists jobs at the leader, which may have been deposed without knowing it."""
    script = CoreScript()
    leader = script.elect(1)
    assert ask(script, 1, 7)
    assert script.answers == []
    for message in script.sent(Heartbeat, to=2):
        script.deliver(message)
    for reply in script.sent(HeartbeatReply):
        script.deliver(reply)
    assert script.answers == [(1, 7, leader.commit)]


def test_confirmation_of_before_the_question_does_not_count() -> None:
    """An answer to a former heartbeat arrives just after the question was asked."""
    script = CoreScript()
    script.elect(1)
    script.tick(1)
    for message in script.sent(Heartbeat, to=2):
        script.deliver(message)
    ask(script, 1, 7)
    for reply in script.sent(HeartbeatReply):
        script.deliver(reply)
    assert script.answers == []


def test_barrier_waits_for_the_no_op_of_the_term() -> None:
    """A new leader does not know yet what its predecessor had committed and answered."""
    script = CoreScript()
    script.elect(1)
    script.propose(1, b"job")
    script.settle()
    script.cut = {1}
    script.settle()
    for number in (2, 3):
        script.forget_leader(number)
    script.tick(2, 20)
    script.settle(unless=lambda message: isinstance(message, AppendReply))
    leader = script.core(2)
    assert leader.is_leader
    assert not leader.no_op_committed
    ask(script, 2, 7)
    for _ in range(3):
        script.tick(2)
        script.settle(unless=lambda message: isinstance(message, AppendReply))
    assert script.answers == []
    script.tick(2, script.settings.resend_ticks)
    script.settle()
    assert leader.no_op_committed
    assert script.answers == [(2, 7, 4)]


def test_deposed_leader_answers_no_barrier() -> None:
    """A leader is cut off, another is elected and commits: a read at the first would be old."""
    script = CoreScript()
    script.elect(1)
    script.cut = {1}
    ask(script, 1, 7)
    script.elect(2)
    script.propose(2, b"job")
    script.settle()
    script.tick(1, 5)
    script.settle()
    assert script.answers == []
    script.tick(1, 20)
    assert script.answers == [(1, 7, None)]


def test_any_number_of_questions_costs_one_round() -> None:
    """A thousand clients list their jobs at once."""
    script = CoreScript()
    script.elect(1)
    for token in range(1000):
        script.core(1).barrier(token)
    script.nodes[1].pump()
    assert len(script.sent(Heartbeat)) == 2
    script.core(1).barrier(1000)
    script.nodes[1].pump()
    assert len(script.sent(Heartbeat)) == 2
    script.settle()
    assert [token for _, token, _ in script.answers] == list(range(1001))


def test_round_that_was_lost_is_confirmed_by_the_next_heartbeat() -> None:
    """The heartbeats that carried a question were lost."""
    script = CoreScript()
    script.elect(1)
    ask(script, 1, 7)
    script.drop(Heartbeat)
    script.settle()
    assert script.answers == []
    script.beat(1)
    assert script.answers == [(1, 7, 2)]


def test_single_voter_answers_at_once() -> None:
    """A controller on its own needs nobody's confirmation."""
    script = CoreScript((1,))
    script.elect(1)
    ask(script, 1, 7)
    assert script.answers == [(1, 7, 2)]


def test_round_is_closed_when_the_membership_comes_to_need_fewer() -> None:
    """The only other voter is dead, and is removed while a read waits for its confirmation."""
    script = CoreScript((1, 2))
    script.elect(1)
    script.crash(2)
    ask(script, 1, 7)
    script.core(1).propose(1, membership_of((1,)).encode())
    script.nodes[1].pump()
    script.sync(1)
    script.tick(1)
    assert script.answers == [(1, 7, 2)]


def test_without_a_leader_there_is_no_barrier() -> None:
    """Nobody leads: the caller is told at once."""
    assert not scripted_core().barrier(7)


def test_follower_asks_its_leader() -> None:
    """Somebody lists jobs at a follower."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"job")
    script.settle()
    assert ask(script, 3, 7)
    script.settle()
    assert script.answers == [(3, 7, leader.commit)]
    assert script.core(3).commit == leader.commit


def test_questions_of_a_follower_travel_together() -> None:
    """Many clients ask a follower; one question stands for those that wait."""
    script = CoreScript()
    script.elect(1)
    for token in range(100):
        ask(script, 3, token)
    assert len(script.sent(BarrierAsk)) == 1
    script.settle()
    assert [token for _, token, _ in script.answers] == list(range(100))


def test_lost_question_is_put_again() -> None:
    """A follower's question, then the answer to it, is lost."""
    script = CoreScript()
    script.elect(1)
    ask(script, 3, 7)
    script.drop(BarrierAsk)
    script.tick(3, script.settings.resend_ticks)
    script.settle(unless=lambda message: isinstance(message, BarrierTell))
    assert script.answers == []
    script.beat(1)
    script.tick(3, script.settings.resend_ticks)
    script.settle()
    assert script.answers == [(3, 7, 2)]


def test_question_that_is_put_again_counts_once() -> None:
    """The leader can't confirm its lead for long; its follower keeps asking."""
    script = CoreScript((1, 2, 3, 4, 5))
    leader = script.elect(1)
    script.cut = {2, 4, 5}
    ask(script, 3, 7)
    for _ in range(6):
        script.tick(3, script.settings.resend_ticks)
        script.settle(unless=lambda message: isinstance(message, HeartbeatReply))
        script.nodes[3].take(Heartbeat(1, 3, leader.term, 0, 0))
    script.cut = set()
    script.tick(1)
    told = 0
    for message in script.sent(Heartbeat):
        script.deliver(message)
    for reply in script.sent(HeartbeatReply):
        script.deliver(reply)
    told = len(script.sent(BarrierTell))
    assert told == 1


def test_follower_that_loses_its_leader_gives_its_questions_back() -> None:
    """The leader dies with a follower's question: the client is told to ask again."""
    script = CoreScript()
    script.elect(1)
    ask(script, 3, 7)
    ask(script, 3, 8)
    script.forget_leader(3)
    assert script.answers == [(3, 7, None), (3, 8, None)]


def test_replica_that_does_not_lead_any_more_says_so() -> None:
    """A follower's question reaches its leader just after that stepped down."""
    script = CoreScript()
    script.elect(1)
    ask(script, 3, 7)
    script.core(1).step_down()
    script.settle()
    assert script.answers == [(3, 7, None)]


def test_leader_that_steps_down_gives_a_followers_question_back() -> None:
    """The same, with the question already taken."""
    script = CoreScript((1, 2, 3, 4, 5))
    script.elect(1)
    ask(script, 3, 7)
    for message in script.sent(BarrierAsk):
        script.deliver(message)
    script.core(1).step_down()
    script.settle()
    assert script.answers == [(3, 7, None)]


def test_answer_to_a_former_question_is_ignored() -> None:
    """An answer is delayed in the network until the follower asks something else."""
    script = CoreScript()
    leader = script.elect(1)
    ask(script, 3, 7)
    (question,) = script.sent(BarrierAsk)
    script.settle()
    script.propose(1, b"job")
    script.settle()
    ask(script, 3, 8)
    script.nodes[3].take(
        BarrierTell(sender=1, to=3, term=leader.term, number=question.number, index=2)
    )
    assert script.answers == [(3, 7, 2)]


def test_questions_of_two_lives_do_not_share_numbers() -> None:
    """A follower restarts; the answer to a question of its former life comes late."""

    class Rising(EvenRng):
        drawn = 0

        def randrange(self, stop: int, /) -> int:
            Rising.drawn += 1000
            return Rising.drawn % stop

    numbers = []
    for _ in range(2):
        core = Core(
            me=1,
            settings=CoreScript().settings,
            rng=Rising(),
            hard=HardState(1, 0),
            membership=membership_of((1, 2, 3)),
            base_index=0,
            base_term=0,
            entries=(),
            commit=0,
        )
        core.step(Heartbeat(sender=2, to=1, term=1, commit=0, round=0))
        core.barrier(7)
        numbers += [m.number for m in core.take_messages() if isinstance(m, BarrierAsk)]
    assert len(set(numbers)) == 2


def asks_of(script: CoreScript, asker: int) -> tuple[int, int]:
    """Let a replica ask; return how many heartbeats and answers the leader sends at once."""
    before = len(script.sent(Heartbeat)), len(script.sent(BarrierTell))
    ask(script, asker, 7)
    for message in script.sent(BarrierAsk):
        script.deliver(message)
    after = len(script.sent(Heartbeat)), len(script.sent(BarrierTell))
    return after[0] - before[0], after[1] - before[1]


def test_question_of_one_of_three_voters_needs_no_round() -> None:
    """Leader and asker are a quorum: when it asked, nobody else could have been elected."""
    script = CoreScript()
    leader = script.elect(1)
    script.cut = {2}
    assert asks_of(script, 3) == (0, 1)
    script.settle()
    assert script.answers == [(3, 7, leader.commit)]


def test_question_of_one_of_five_voters_needs_a_round() -> None:
    """Two of five are none."""
    script = CoreScript((1, 2, 3, 4, 5))
    script.elect(1)
    assert asks_of(script, 3) == (4, 0)


def test_question_of_one_that_has_no_vote_needs_a_round() -> None:
    """What a learner follows elects nobody."""
    script = CoreScript((1, 2, 3), learners=(4,))
    script.elect(1)
    assert asks_of(script, 4)[1] == 0
    script.settle()
    assert script.answers == [(4, 7, script.core(1).commit)]
