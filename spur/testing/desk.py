"""A desk: a front on a log in memory, and what it answered. For tests of the front alone."""

from __future__ import annotations

from spur.consensus.memory import MemoryLog
from spur.consensus.port import Refusal
from spur.controller.front import Front
from spur.controller.services import ReleaseOnly, Services
from spur.events.envelope import Actor, Entry
from spur.projections.react import Effect
from spur.projections.state import State
from spur.testing.builders import ADMIN, BIRTH_NS, SMALL_CONFIG, actor, newborn
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import NodeName
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.cluster import AddHost, Reconfigure, ReplicaInfo
from spur.wire.controllers import ControllerList
from spur.wire.declare import Answer, Request, encode_request
from spur.wire.nodes import RegisterNode
from spur.wire.registry import decode_answer

__all__ = ["Desk", "TimedMemoryLog", "furnished"]


class TimedMemoryLog(MemoryLog):
    """The log in memory, with a clock that moves by a microsecond at each stamp."""

    now_ns = BIRTH_NS
    has_quorum = True
    is_full = False
    may_hand_over = False
    learner = 0
    is_handing_over = False
    known = ControllerList(1, (), b"genesis")

    def propose(self, kind: int, body: bytes, blobs: tuple[bytes, ...]) -> Entry | Refusal:
        return Refusal("busy") if self.is_full else super().propose(kind, body, blobs)

    @property
    def leader(self) -> int:
        return super().leader if self.has_quorum else 0

    def barrier(self, token: int) -> bool:
        return self.has_quorum and super().barrier(token)

    def stamp(self, previous_ns: int) -> int | None:
        self.now_ns = max(self.now_ns, previous_ns) + 1_000
        return self.now_ns

    def describe(self) -> ReplicaInfo:
        raise AssertionError("nobody asks for it here")

    def accept_clock(self) -> None:
        raise AssertionError("nobody asks for it here")

    def controllers(self) -> ControllerList:
        return self.known

    def level_learner(self) -> int:
        return self.learner

    def hand_over(self, successor: int = 0) -> bool:
        self.is_handing_over = self.may_hand_over
        return self.may_hand_over

    def silence_ns(self) -> int:
        return 7_000_000_000


class Desk:
    """A front that leads, and the answers it gave."""

    def __init__(self, state: State | None = None, services: Services | None = None) -> None:
        self.effects: list[Effect] = []
        self.replies: list[Reply] = []
        self.asked = 0
        self.log: TimedMemoryLog
        self.front = Front(
            state or newborn(),
            None,  # type: ignore[arg-type]  # the log needs the front, and follows at once
            noise=bytes,
            address_of=lambda replica: f"c{replica}:6816" if replica else "",
            services=services or ReleaseOnly(lambda effect, _: self.effects.append(effect)),
        )
        self.log = TimedMemoryLog(self.front)
        self.front._log = self.log

    def put(
        self,
        request: Request,
        who: Actor = ADMIN,
        *,
        request_id: bytes = b"",
        since: int | None = None,
        at_least: int = 0,
    ) -> None:
        """Hand in a request; its answer comes when it comes."""
        self.asked += 1
        call = Call(
            self.asked,
            request_id or self.asked.to_bytes(16, "big"),
            self.front.commit if since is None else since,
            self.front.state.cluster[1].incarnation,
            at_least,
            None,
            encode_request(request),
        )
        self.front.submit(call, who, self.replies.append)

    def turn(self) -> None:
        """Let the log commit what it has, as a turn of the loop does."""
        self.front.before_turn()
        self.log.pump()
        self.front.before_turn()
        self.log.pump()

    def answer(self) -> Answer:
        """Return the newest answer."""
        outcome = self.replies[-1].outcome
        assert isinstance(outcome, Answered), outcome
        return decode_answer(outcome.answer)

    def refusal(self) -> Refused:
        """Return the newest refusal."""
        outcome = self.replies[-1].outcome
        assert isinstance(outcome, Refused), outcome
        return outcome


def furnished(services: Services | None = None) -> Desk:
    """Return a front that leads a configured cluster whose node n1 is there."""
    desk = Desk(services=services)
    desk.turn()
    desk.put(Reconfigure((ConfigFile(CONFIG_FILE, SMALL_CONFIG),)))
    desk.turn()
    desk.put(AddHost("n1", "compute"))
    desk.turn()
    host = desk.front.state.index
    agent = actor(0, host_role="compute", host_id=host, via="agent")
    desk.put(RegisterNode(NodeName("n1"), b"boot", 64, 512_000, "gfx942", 8), agent)
    desk.turn()
    assert all(isinstance(reply.outcome, Answered) for reply in desk.replies), desk.replies
    desk.replies.clear()
    return desk
