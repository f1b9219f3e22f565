"""The clock judge: whose time is stamped, and who may lead."""

import pytest

from spur.consensus.clock import MINUTES_10_NS, SECONDS_2_NS, ClockJudge, ClockStep

SECOND_NS = 1_000_000_000
NOON_NS = 1_800_000_000 * SECOND_NS


def judge_of_three(*, ahead_ns: tuple[int, int] = (0, 0), mono_ns: int = 0) -> ClockJudge:
    judge = ClockJudge(1, (1, 2, 3))
    judge.begin_term(mono_ns)
    for peer, ahead in zip((2, 3), ahead_ns, strict=True):
        judge.heard(peer, wall_ns=NOON_NS + ahead, sent_mono_ns=mono_ns, received_mono_ns=mono_ns)
    return judge


def test_leader_stamps_nothing_until_it_knows_a_majority() -> None:
    """A new leader that has heard nobody's clock in its term must wait."""
    judge = ClockJudge(1, (1, 2, 3))
    judge.heard(2, wall_ns=NOON_NS, sent_mono_ns=0, received_mono_ns=1)
    judge.begin_term(2)
    assert not judge.can_stamp(NOON_NS, 3)
    judge.heard(2, wall_ns=NOON_NS, sent_mono_ns=3, received_mono_ns=5)
    assert judge.can_stamp(NOON_NS, 6)


def test_leader_an_hour_ahead_is_not_fit_and_the_others_are() -> None:
    """One controller's clock is an hour ahead of the two that agree."""
    hour_ns = 3600 * SECOND_NS
    assert not judge_of_three(ahead_ns=(-hour_ns, -hour_ns)).is_fit_to_lead(NOON_NS, 0)
    assert judge_of_three(ahead_ns=(0, hour_ns)).is_fit_to_lead(NOON_NS, 0)


def test_of_two_clocks_that_disagree_the_slower_leads() -> None:
    """The third controller is dead and the two left disagree: one of them must still lead."""
    judge = ClockJudge(1, (1, 2, 3))
    judge.heard(2, wall_ns=NOON_NS + 5 * SECOND_NS, sent_mono_ns=0, received_mono_ns=0)
    assert judge.is_fit_to_lead(NOON_NS, 0)
    other = ClockJudge(2, (1, 2, 3))
    other.heard(1, wall_ns=NOON_NS, sent_mono_ns=0, received_mono_ns=0)
    assert not other.is_fit_to_lead(NOON_NS + 5 * SECOND_NS, 0)


def test_stamp_slews_by_a_tenth_towards_the_median() -> None:
    """The peers' clocks are set one second ahead while this leader stamps."""
    judge = judge_of_three()
    first = judge.stamp(0, NOON_NS, 0)
    for peer in (2, 3):
        judge.heard(
            peer,
            wall_ns=NOON_NS + 2 * SECOND_NS,
            sent_mono_ns=SECOND_NS,
            received_mono_ns=SECOND_NS,
        )
    second = judge.stamp(first, NOON_NS + SECOND_NS, SECOND_NS)
    assert second - first == SECOND_NS + SECOND_NS // 10


def test_stamp_never_goes_back_when_the_clock_does() -> None:
    """The wall clock of a single controller is set back by an hour."""
    judge = ClockJudge(1, (1,))
    judge.begin_term(0)
    first = judge.stamp(0, NOON_NS, 0)
    second = judge.stamp(first, NOON_NS - 3600 * SECOND_NS, 10)
    assert second > first


def test_stamp_stays_within_two_seconds_of_the_median() -> None:
    """The majority's clocks are set back by an hour under a leader that goes on."""
    judge = judge_of_three()
    judge.stamp(0, NOON_NS, 0)
    for peer in (2, 3):
        judge.heard(peer, wall_ns=NOON_NS - 3600 * SECOND_NS, sent_mono_ns=1, received_mono_ns=1)
    assert judge.stamp(0, NOON_NS, 2) <= NOON_NS - 3600 * SECOND_NS + SECONDS_2_NS + 2


def test_single_controller_that_steps_too_far_needs_a_person() -> None:
    """A single controller is started with its clock seventy years off."""
    judge = ClockJudge(1, (1,))
    judge.begin_term(0)
    with pytest.raises(ClockStep, match="spur clock accept"):
        judge.stamp(NOON_NS, NOON_NS + MINUTES_10_NS + 1, 0)
    judge.accept()
    assert judge.stamp(NOON_NS, NOON_NS + MINUTES_10_NS + 1, 0) == NOON_NS + MINUTES_10_NS + 1


def test_old_readings_no_longer_count() -> None:
    """Both peers fell silent: after a while nobody can say whether this clock is right."""
    judge = judge_of_three()
    assert judge.distance_ns(NOON_NS, 0) == 0
    assert judge.distance_ns(NOON_NS, 11 * SECOND_NS) is None
