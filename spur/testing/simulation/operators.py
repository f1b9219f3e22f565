"""People who change the cluster's controllers while it works: add, remove, and replace a lost disk.

They ask for what they like; the cluster has to refuse what would harm it. A controller that was
removed runs on until it learns of it, and may disturb nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from spur.consensus.genesis import Genesis
from spur.consensus.membership import Membership
from spur.consensus.opening import create_learner
from spur.testing.disk import SimDisk
from spur.testing.simulation.callers import ADMINISTRATOR, FOR_EVER, Callers, Outcome
from spur.testing.simulation.member import SimMember
from spur.testing.simulation.network import Network
from spur.testing.simulation.plan import Plan, options_of
from spur.testing.simulation.world import World
from spur.wire.calls import Refused
from spur.wire.controllers import AddController, ControllerAdded, RemoveController
from spur.wire.declare import Answer

__all__ = ["Operators"]

MEMBERS_MAX = 6
MEMBERS_MIN = 2

AGAIN_S = 1.0
"""Until what has to be is asked for again."""

QUORUM_LEFT = 2
"""Voters that are left when a disk is lost."""

PAUSE_S = (0.5, 2.0, 5.0)
"""Between an answer and the next thing that they do."""


class Operators:
    """One person after the other, each waits for an answer."""

    def __init__(
        self,
        world: World,
        network: Network,
        members: list[SimMember],
        plan: Plan,
        seed: int,
        *,
        adopt: Callable[[SimMember], None],
    ) -> None:
        """Prepare; `adopt` hears of each new member before it starts."""
        self._world = world
        self._network = network
        self._members = members
        self._plan = plan
        # Of its own, so that runs without any change are as they were.
        self._rng = Random(f"operators {seed}")
        self._adopt = adopt
        self._caller = Callers(world, members).caller(ADMINISTRATOR)
        self._names = len(members)
        self._is_busy = False
        self._is_stopped = True

    def start(self) -> None:
        """Begin to change the members."""
        if self._plan.has_changes:
            self._is_stopped = False
            self._later()

    def stop(self) -> None:
        """Begin nothing new; what was asked for goes on."""
        self._is_stopped = True

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that was asked for is open, and every member votes by now."""
        return not self._is_busy and self._voters() == {member.me for member in self._members}

    def _voters(self) -> set[int]:
        """Return who votes, as those see it who lead; nobody while nobody does."""
        return {
            number
            for member in self._members
            if member.is_up and member.replica.is_attached and member.replica.core.is_leader
            for number in member.replica.core.members.voters()
        }

    def _later(self) -> None:
        self._world.after(self._rng.choice(PAUSE_S) * self._rng.random(), self._act)

    def _act(self) -> None:
        if self._is_stopped or self._is_busy:
            return
        rng, members = self._rng, self._members
        choice = rng.randrange(3)
        if choice == 0 and len(members) < MEMBERS_MAX:
            self._names += 1
            self._add(f"c{self._names}")
        elif choice == 1 and len(members) > MEMBERS_MIN:
            self._remove(rng.choice(members), None)
        elif choice == 2 and len(members) > MEMBERS_MIN:
            self._replace(rng.choice(members))
        else:
            self._later()

    def _ask(
        self,
        request: AddController | RemoveController,
        done: Callable[[Answer], None],
        *,
        insists: bool = False,
    ) -> None:
        """Ask until it is answered; a refusal is the end of the matter, unless it must be."""
        self._is_busy = True

        def heard(outcome: Outcome) -> None:
            self._is_busy = False
            if isinstance(outcome, Refused):
                self._world.tell("operator", "is refused:", outcome.text)
                self._world.counts[f"change refused: {outcome.code}"] += 1
                if insists:
                    self._is_busy = True
                    self._world.after(AGAIN_S, lambda: self._ask(request, done, insists=True))
                else:
                    self._later()
            elif outcome is not None:
                done(outcome)

        self._world.tell("operator", "asks:", request)
        self._caller.ask(request, heard, patience_s=FOR_EVER)

    def _add(self, name: str) -> None:
        disk_id = self._rng.randbytes(16)
        address = self._rng.randrange(1 << 40)
        request = AddController(name, disk_id, f"{name}-{address}:1", f"{name}-{address}:2")

        def added(answer: Answer) -> None:
            if isinstance(answer, ControllerAdded):
                self._world.counts["controllers added"] += 1
                self._make(answer, disk_id)
                self._later()

        self._ask(request, added)

    def _make(self, added: ControllerAdded, disk_id: bytes) -> None:
        """Make the directory of a new controller, and start it."""
        disk, options = SimDisk(), options_of(self._plan)
        create_learner(
            disk,
            Genesis.decode(added.genesis),
            me=added.node_id,
            disk_id=disk_id,
            members=Membership.decode(added.members),
            options=options,
        )
        former = self._members[0]
        member = SimMember(
            self._world,
            self._network,
            former.watcher,
            me=added.node_id,
            disk=disk,
            options=options,
            disk_delay_s=self._plan.disk_delay_s,
            snapshot_entries=self._plan.snapshot_entries,
        )
        self._members.append(member)
        self._adopt(member)
        member.start()

    def _remove(self, member: SimMember, then: Callable[[], None] | None) -> None:
        def removed(_: Answer) -> None:
            self._world.counts["controllers removed"] += 1
            if member in self._members:
                self._members.remove(member)
            if then is None:
                self._later()
            else:
                then()

        # Others are not heard yet, perhaps; but what is lost has to go.
        self._ask(RemoveController(str(member.me)), removed, insists=member.is_gone)

    def _can_spare(self, other: SimMember, lost: SimMember) -> bool:
        """Whether a member's log, which may be behind, still has a quorum without the lost one."""
        if not other.replica.is_attached:
            return False
        core, known = other.replica.core, [each for each in self._members if each.is_up]
        if core.stable < max(each.replica.core.last for each in known):
            return False  # What it lacks may be committed, and on the lost disk.
        voters = core.members.voters()
        left = [number for number in voters if number != lost.me]
        return len(left) >= max(QUORUM_LEFT, len(voters) // 2 + 1)

    def _replace(self, member: SimMember) -> None:
        """A disk is lost for good: its controller is removed and added again under a new id."""
        others: Sequence[SimMember] = [other for other in self._members if other is not member]
        if not all(other.is_up and self._can_spare(other, member) for other in others):
            # What a majority holds survives the loss of one disk, and of no more.
            self._later()
            return
        member.lose_disk()
        self._world.counts["disks lost"] += 1
        self._names += 1
        name = f"c{self._names}"
        self._remove(member, lambda: self._add(name))
