"""Read barriers: the index that a read must have seen to be linearizable (ReadIndex).

The leader notes its commit index, asks its voters in one round of heartbeats whether it still
leads, and answers when a quorum said so after the question. Questions that arrive while a round is
open make up the next one, so any number of reads cost one round. A follower sends its questions to
the leader, batched the same way. Source: Raft thesis §6.4. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ForwardedReads", "ReadQuestion", "ReadRounds"]


class ReadQuestion(NamedTuple):
    """One question for a barrier."""

    asker: int
    """A follower's id, or 0 for this replica."""
    token: int


class ReadRounds:
    """The questions that a leader has to answer."""

    __slots__ = ("_forwarded", "_open", "_queued", "index", "round")

    def __init__(self) -> None:
        self.round = 0
        """The newest round; heartbeats carry it."""
        self.index = 0
        """The answer of the open round."""
        self._queued: list[ReadQuestion] = []
        self._open: list[ReadQuestion] = []
        self._forwarded: dict[int, int] = {}
        """The newest question of each follower; one that is put again is not another."""

    @property
    def is_open(self) -> bool:
        """A round waits for its quorum."""
        return bool(self._open)

    @property
    def may_open(self) -> bool:
        """Questions wait, and no round is open."""
        return bool(self._queued) and not self._open

    def ask(self, question: ReadQuestion) -> None:
        """Put a question; it belongs to the round that opens next."""
        if question.asker:
            if self._forwarded.get(question.asker) == question.token:
                return
            self._forwarded[question.asker] = question.token
        self._queued.append(question)

    def open(self, commit: int) -> None:
        """Begin a round with all that wait; its answer is this commit index."""
        self._open, self._queued = self._queued, []
        self.index = commit
        self.round += 1

    def close(self) -> list[ReadQuestion]:
        """Return the questions of the open round, which was confirmed."""
        done, self._open = self._open, []
        for question in done:
            # Its answer may be lost; put again, it is asked anew.
            self._forwarded.pop(question.asker, None)
        return done

    def void(self) -> list[ReadQuestion]:
        """Return all questions, none of which will be answered here."""
        lost = self._open + self._queued
        self._open, self._queued = [], []
        return lost


class ForwardedReads:
    """The questions that a follower has sent, or will send, to its leader."""

    __slots__ = ("_number", "_open", "_queued", "_waited_ticks")

    def __init__(self, number: int) -> None:
        # Drawn at random by the caller: an answer to a question of this replica's former life,
        # delayed in the network, must not fit one of the present.
        self._number = number
        self._waited_ticks = 0
        self._queued: list[int] = []
        self._open: list[int] = []

    @property
    def may_open(self) -> bool:
        """Tokens wait, and no question is with the leader."""
        return bool(self._queued) and not self._open

    @property
    def number(self) -> int:
        """The number of the newest question."""
        return self._number

    def ask(self, token: int) -> None:
        """Put a token; it belongs to the next question."""
        self._queued.append(token)

    def open(self) -> int:
        """Return the number of a question that stands for all that wait."""
        self._open, self._queued = self._queued, []
        self._number += 1
        self._waited_ticks = 0
        return self._number

    def has_waited(self, ticks_max: int) -> bool:
        """Count one tick; tell whether the open question must be put again: it may be lost."""
        if not self._open:
            return False
        self._waited_ticks += 1
        if self._waited_ticks < ticks_max:
            return False
        self._waited_ticks = 0
        return True

    def close(self, number: int) -> list[int]:
        """Return the tokens that this answer is for; none when it is an old one."""
        if number != self._number:
            return []
        done, self._open = self._open, []
        return done

    def void(self) -> list[int]:
        """Return all tokens, none of which will be answered."""
        lost = self._open + self._queued
        self._open, self._queued = [], []
        return lost
