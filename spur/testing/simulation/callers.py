"""Those who call the simulated cluster: a caller retries with the same id until it knows.

Callers reach every member, also one that is cut off from the others, so a deposed leader that still
answers is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spur.events.envelope import Actor
from spur.testing.simulation.member import SimMember
from spur.testing.simulation.world import World
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.declare import Answer, Request
from spur.wire.registry import decode_answer, encode_request

__all__ = ["ADMINISTRATOR", "SCHEDULER", "Caller", "Outcome", "user"]

ADMINISTRATOR = Actor(uid=0, gid=0, host_id=0, host_role="controller", via="socket")
SCHEDULER = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="scheduler")

RETRY_S = 1.5
"""How long a caller waits for an answer before it asks another member."""

AGAIN_CODES = frozenset({"not-leader", "ask-again", "busy", "clock-step"})

Outcome = Answer | Refused | None
"""An answer, a judged no, or None: the caller gave up without knowing."""


def user(uid: int) -> Actor:
    """Return an ordinary user on a login host."""
    return Actor(uid=uid, gid=uid, host_id=0, host_role="controller", via="socket")


@dataclass
class _Ask:
    request_id: bytes
    since: int
    payload: bytes
    done: Callable[[Outcome], None]
    gives_up_s: float
    tries: int = 0
    is_over: bool = False


class Caller:
    """One caller; it may have several requests under way."""

    def __init__(self, world: World, members: Sequence[SimMember], actor: Actor) -> None:
        self.actor = actor
        self.incarnation = 0
        self.index = 0
        """The highest index that this caller has seen."""
        self.on_clock_step: Callable[[], None] = lambda: None
        """Called when the cluster waits for a person to accept its clock."""
        self._world = world
        self._members = members
        self._favourite = 0

    def ask(self, request: Request, done: Callable[[Outcome], None], *, patience_s: float) -> bytes:
        """Ask until an answer came or patience ends; return the request's id."""
        request_id = self._world.rng.randbytes(16)
        ask = _Ask(
            request_id,
            self.index,
            encode_request(request),
            done,
            self._world.now_s + patience_s,
        )
        self._try(ask)
        return request_id

    def _try(self, ask: _Ask) -> None:
        world = self._world
        if ask.is_over:
            return
        if world.now_s > ask.gives_up_s:
            self._finish(ask, None)
            return
        ask.tries += 1
        if self._favourite == 0 or world.rng.random() < 0.2:
            member = world.rng.choice(self._members)
        else:
            member = self._members[self._favourite - 1]
        call = Call(ask.tries, ask.request_id, ask.since, 0, self.index, None, ask.payload)
        number = ask.tries

        def respond(reply: Reply) -> None:
            world.after(0.001 + world.rng.random() * 0.02, self._hear, ask, number, reply)

        world.after(0.001 + world.rng.random() * 0.02, member.submit, call, self.actor, respond)
        world.after(RETRY_S * (0.7 + 0.6 * world.rng.random()), self._silent, ask, number)

    def _silent(self, ask: _Ask, number: int) -> None:
        if ask.tries == number and not ask.is_over:
            self._favourite = 0
            self._try(ask)

    def _hear(self, ask: _Ask, number: int, reply: Reply) -> None:
        if ask.is_over:
            return
        outcome = reply.outcome
        if (isinstance(outcome, Refused) and outcome.code in AGAIN_CODES) or reply.warning:
            leader = outcome.leader if isinstance(outcome, Refused) else ""
            self._favourite = int(leader or 0)
            if isinstance(outcome, Refused) and outcome.code == "clock-step":
                self.on_clock_step()
            if number == ask.tries:
                self._world.after(0.05 + 0.2 * self._world.rng.random(), self._silent, ask, number)
            return
        self.index = max(self.index, reply.index)
        if isinstance(outcome, Answered):
            self._finish(ask, decode_answer(outcome.answer))
        else:
            self._finish(ask, outcome)

    def _finish(self, ask: _Ask, outcome: Outcome) -> None:
        ask.is_over = True
        ask.done(outcome)
