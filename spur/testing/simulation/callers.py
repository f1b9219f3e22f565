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
from spur.wire.declare import Answer, Request, encode_request
from spur.wire.registry import decode_answer

__all__ = ["ADMINISTRATOR", "CLUSTER", "FOR_EVER", "Caller", "Callers", "Outcome", "agent", "user"]

ADMINISTRATOR = Actor(uid=0, gid=0, host_id=0, host_role="controller", via="socket")
CLUSTER = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="scheduler")

RETRY_S = 1.5
"""How long a caller waits for an answer before it asks another member."""

LATE_S = 4.0
"""How late a call may come that is repeated on its way."""

FOR_EVER = float("inf")

AGAIN_CODES = frozenset({"not-leader", "ask-again", "busy", "clock-step", "disk-low"})

Outcome = Answer | Refused | None
"""An answer, a judged no, or None: the caller gave up without knowing."""


def user(uid: int) -> Actor:
    """Return an ordinary user on a controller's host."""
    return Actor(uid=uid, gid=uid, host_id=0, host_role="controller", via="socket")


def agent(host_id: int) -> Actor:
    """Return the agent of a compute host."""
    return Actor(uid=0, gid=0, host_id=host_id, host_role="compute", via="agent")


@dataclass
class _Ask:
    request_id: bytes
    since: int
    payload: bytes
    done: Callable[[Outcome], None]
    gives_up_s: float
    tries: int = 0
    is_over: bool = False


class Callers:
    """Makes callers, who share what they know of the members."""

    def __init__(self, world: World, members: Sequence[SimMember]) -> None:
        self.world = world
        self.members = members
        self.loss = 0.0
        """Share of the calls, and of the answers, that are lost; as many calls come twice."""
        self.on_clock_step: Callable[[], None] = _nobody_looks
        """Called when the cluster waits for a person to accept its clock."""

    def caller(self, actor: Actor) -> Caller:
        """Return a new caller."""
        return Caller(self, actor)


class Caller:
    """One caller; it may have several requests under way."""

    def __init__(self, callers: Callers, actor: Actor) -> None:
        self.actor = actor
        self.index = 0
        """The highest index that this caller has seen."""
        self._callers = callers
        self._world = callers.world
        self._members = callers.members
        self._favourite = 0

    def ask(self, request: Request, done: Callable[[Outcome], None], *, patience_s: float) -> bytes:
        """Ask until an answer came or patience ends; return the request's id."""
        world = self._world
        request_id = world.rng.randbytes(16)
        ask = _Ask(request_id, self.index, encode_request(request), done, world.now_s + patience_s)
        world.tell("caller", "asks", request_id.hex()[:8], request)
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
        number = ask.tries
        if self._favourite == 0 or world.rng.random() < 0.2:
            member = world.rng.choice(self._members)
        else:
            named = (each for each in self._members if each.me == self._favourite)
            member = next(named, self._members[0])
        world.tell("caller", "tries", ask.request_id.hex()[:8], "with", member.me)
        call = Call(number, ask.request_id, ask.since, 0, self.index, None, ask.payload)

        def respond(reply: Reply) -> None:
            if world.rng.random() >= loss:
                world.after(0.001 + world.rng.random() * 0.02, self._hear, ask, number, reply)

        loss = self._callers.loss
        if world.rng.random() >= loss:
            world.after(0.001 + world.rng.random() * 0.02, member.submit, call, self.actor, respond)
        if world.rng.random() < loss:
            world.after(world.rng.random() * LATE_S, member.submit, call, self.actor, respond)
        world.after(RETRY_S * (0.7 + 0.6 * world.rng.random()), self._silent, ask, number)

    def _silent(self, ask: _Ask, number: int) -> None:
        if ask.tries == number and not ask.is_over:
            self._favourite = 0
            self._try(ask)

    def _once_more(self, ask: _Ask, number: int) -> None:
        if ask.tries == number:
            self._try(ask)

    def _hear(self, ask: _Ask, number: int, reply: Reply) -> None:
        if ask.is_over:
            return
        outcome = reply.outcome
        if (isinstance(outcome, Refused) and outcome.code in AGAIN_CODES) or reply.warning:
            self._hear_again(ask, number, outcome)
            return
        self.index = max(self.index, reply.index)
        if isinstance(outcome, Answered):
            self._finish(ask, decode_answer(outcome.answer))
        else:
            self._world.counts[f"refused: {outcome.code}"] += 1
            self._finish(ask, outcome)

    def _hear_again(self, ask: _Ask, number: int, outcome: Answered | Refused) -> None:
        """Ask again a little later, the leader if it was named."""
        world = self._world
        self._favourite = 0
        if isinstance(outcome, Refused):
            world.tell(
                "caller", "is told of", ask.request_id.hex()[:8], outcome.code, outcome.leader
            )
            world.counts[f"told: {outcome.code}"] += 1
            self._favourite = int(outcome.leader or 0)
            if outcome.code == "clock-step":
                self._callers.on_clock_step()
        else:
            world.counts["told the state without a quorum"] += 1
        if number == ask.tries:
            world.after(0.05 + 0.2 * world.rng.random(), self._once_more, ask, number)

    def _finish(self, ask: _Ask, outcome: Outcome) -> None:
        ask.is_over = True
        heard = outcome if isinstance(outcome, Refused) else type(outcome).__name__
        self._world.tell("caller", "heard of", ask.request_id.hex()[:8], heard)
        ask.done(outcome)


def _nobody_looks() -> None:
    """Let the alarm ring."""
