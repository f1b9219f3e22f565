"""What waits for the log: answers and calls for the commit of an entry, readers for a barrier."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from spur.consensus.port import TimedLog
from spur.events.envelope import Actor
from spur.wire.calls import Call, Refused, Reply
from spur.wire.declare import Request

__all__ = ["Asked", "Respond", "Waiting"]

Respond = Callable[[Reply], None]

Passed = Callable[[int | None], None]
"""Called with the index of a barrier, or None when this replica did not lead."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request on its way, and how to answer it."""

    call: Call
    actor: Actor
    respond: Respond
    request: Request
    resume_after: int = 0
    """Where the next part of a divisible command goes on."""
    prepared: object = None
    """What needed no state and was done beside the loop."""


class Waiting:
    """Answers by the entry that they rest on, and readers by their barrier."""

    def __init__(self, log: Callable[[], TimedLog]) -> None:
        self.commit = 0
        """The last entry known to be committed."""
        self.lost_leads = 0
        """How often leadership was lost; what was computed before rests on nothing since."""
        self._log = log
        self._answers: dict[int, list[tuple[Respond, Reply]]] = {}
        self._calls: dict[int, list[Callable[[], None]]] = {}
        self._unconfirmed: list[Passed] = []
        self._barriers: dict[int, list[Passed]] = {}
        self._token = 0

    def answer_at(self, index: int, respond: Respond, reply: Reply) -> None:
        """Let an answer leave once its entry is committed."""
        if index <= self.commit:
            respond(reply)
        else:
            self._answers.setdefault(index, []).append((respond, reply))

    def call_at(self, index: int, call: Callable[[], None]) -> None:
        """Call once an entry that is still to come is committed."""
        self._calls.setdefault(index, []).append(call)

    def committed(self, index: int) -> None:
        """Let go what waited for an entry."""
        self.commit = index
        for respond, reply in self._answers.pop(index, ()):
            respond(reply)
        for call in self._calls.pop(index, ()):
            call()

    def lost(self) -> None:
        """Leadership is lost: whoever waits for what is not committed must ask again."""
        self.lost_leads += 1
        answers, self._answers = self._answers, {}
        for waiting in answers.values():
            for respond, reply in waiting:
                outcome = Refused("ask-again", "leadership was lost; ask with the same request id")
                respond(replace(reply, index=self.commit, outcome=outcome))

    # -- barriers
    def confirm(self, passed: Passed) -> None:
        """Have it called behind the barrier that the next turn asks for."""
        self._unconfirmed.append(passed)

    def confirm_all(self) -> None:
        """Ask one barrier for all that came since the last turn."""
        if self._unconfirmed:
            asking, self._unconfirmed = self._unconfirmed, []
            if not self.ask_barrier(asking):
                for passed in asking:
                    passed(None)

    def ask_barrier(self, asking: Sequence[Passed]) -> bool:
        """Ask the log for a barrier; False when it takes none, and nobody is called."""
        self._token += 1
        if not self._log().barrier(self._token):
            return False
        self._barriers[self._token] = list(asking)
        return True

    def barrier_passed(self, token: int, index: int | None) -> None:
        """Let the readers of one barrier go on."""
        for passed in self._barriers.pop(token, ()):
            passed(index)
