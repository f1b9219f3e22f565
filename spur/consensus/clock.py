"""The clock judge: which time a leader may stamp, and who may lead at all. Pure.

Every reading is kept relative to this replica's own monotonic clock (`wall - monotonic`), so a step
of anybody's wall clock shows at once and ageing readings stay comparable. The judge trusts the
lower median of a majority: with one fast and one slow clock of three it follows the middle one, and
of two that disagree it follows the slower, so that one replica is always fit to lead.

Source: LOG-CONTRACT 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["MINUTES_10_NS", "SECONDS_2_NS", "ClockJudge", "ClockStep"]

SECONDS_2_NS = 2_000_000_000
"""How far a leader may be from the majority, and stamps beyond it."""

MINUTES_10_NS = 600_000_000_000
"""A longer step past the last stamp needs other clocks, or a person."""

READING_AGE_MAX_NS = 10_000_000_000
"""A peer's reading older than this no longer counts."""

SLEW_DIVISOR = 10
"""The stamp moves towards the median by at most a tenth of the time that passes."""


class ClockStep(Exception):
    """A single controller's clock is more than ten minutes past the last stamp."""

    def __init__(self, previous_ns: int, proposed_ns: int) -> None:
        super().__init__(
            f"the clock is {(proposed_ns - previous_ns) / 1e9:.0f} s past the last stamp in the"
            " log and no other controller can confirm it: nothing is decided until"
            " `spur clock accept`"
        )
        self.previous_ns = previous_ns
        self.proposed_ns = proposed_ns


class ClockJudge:
    """Judges one replica's clock against its peers'."""

    def __init__(self, me: int, voters: Iterable[int]) -> None:
        self._me = me
        self._voters = frozenset(voters)
        self._readings: dict[int, tuple[int, int]] = {}
        self._term_since_ns: int | None = None
        self._base_ns: int | None = None
        self._slewed_at_ns = 0
        self._accepted = False

    def set_voters(self, voters: Iterable[int]) -> None:
        """Take a new set of voters; readings of others no longer count."""
        self._voters = frozenset(voters)

    def heard(self, peer: int, *, wall_ns: int, sent_mono_ns: int, received_mono_ns: int) -> None:
        """Note a peer's wall clock, read between our sending and our receiving."""
        middle_ns = (sent_mono_ns + received_mono_ns) // 2
        self._readings[peer] = (wall_ns - middle_ns, received_mono_ns)

    def begin_term(self, mono_ns: int) -> None:
        """Start to lead: only readings from now on let this replica stamp."""
        self._term_since_ns = mono_ns

    def end_term(self) -> None:
        """Stop leading."""
        self._term_since_ns = None
        self._base_ns = None

    def _median(self, wall_ns: int, mono_ns: int, since_ns: int) -> int | None:
        """Return the lower median of (wall - monotonic), or None without a majority."""
        known = [
            relative
            for peer, (relative, at_ns) in self._readings.items()
            if peer in self._voters and at_ns >= since_ns
        ]
        if self._me in self._voters:
            known.append(wall_ns - mono_ns)
        if len(known) <= len(self._voters) // 2:
            return None
        known.sort()
        return known[(len(known) - 1) // 2]

    def distance_ns(self, wall_ns: int, mono_ns: int) -> int | None:
        """Return how far this clock is ahead of the majority; None while that is unknown."""
        median = self._median(wall_ns, mono_ns, mono_ns - READING_AGE_MAX_NS)
        return None if median is None else wall_ns - mono_ns - median

    def is_fit_to_lead(self, wall_ns: int, mono_ns: int) -> bool:
        """Tell whether this clock is within two seconds of the majority's, or nobody knows."""
        distance_ns = self.distance_ns(wall_ns, mono_ns)
        return distance_ns is None or abs(distance_ns) <= SECONDS_2_NS

    def can_stamp(self, wall_ns: int, mono_ns: int) -> bool:
        """Tell whether a majority's clocks are known in this term."""
        if self._term_since_ns is None:
            return False
        return (
            self._base_ns is not None
            or self._median(wall_ns, mono_ns, self._term_since_ns) is not None
        )

    def accept(self) -> None:
        """A person vouches for this clock; the next step is taken whatever its length."""
        self._accepted = True

    def stamp(self, previous_ns: int, wall_ns: int, mono_ns: int) -> int:
        """Return the time of the next entry; call only when `can_stamp`.

        Raises: ClockStep for a single controller whose first stamp would be more than ten minutes
        past the previous one.
        """
        since_ns = self._term_since_ns if self._base_ns is None else mono_ns - READING_AGE_MAX_NS
        median = self._median(wall_ns, mono_ns, since_ns or 0)
        if self._base_ns is None:
            if median is None:
                raise ValueError("a stamp was asked for before a majority's clocks were known")
            self._check_step(previous_ns, median + mono_ns)
            self._base_ns, self._slewed_at_ns = median, mono_ns
        elif median is not None:
            slew_ns = max(0, mono_ns - self._slewed_at_ns) // SLEW_DIVISOR
            error_ns = median - self._base_ns
            self._base_ns += max(-slew_ns, min(slew_ns, error_ns))
            self._base_ns = min(self._base_ns, median + SECONDS_2_NS)
            self._slewed_at_ns = mono_ns
        return max(previous_ns + 1, self._base_ns + mono_ns)

    def _check_step(self, previous_ns: int, proposed_ns: int) -> None:
        alone = len(self._voters) == 1
        if not alone or not previous_ns or self._accepted:
            self._accepted = False
            return
        if proposed_ns - previous_ns > MINUTES_10_NS:
            raise ClockStep(previous_ns, proposed_ns)
