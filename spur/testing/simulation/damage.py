"""Bits that flip by themselves in the files of one member, while it is down.

Only what peers can repair is damaged: sealed segments of the ledger that another member holds,
blobs, snapshots. A damaged write-ahead log means removal of the member; directed tests show that it
refuses to start.
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.testing.simulation.member import SimMember
from spur.testing.simulation.world import World

__all__ = ["Vandal"]

CHANCE = 0.5


class Vandal:
    """Damages the files of one member of the cluster, never those of the others."""

    def __init__(self, world: World, members: Sequence[SimMember]) -> None:
        self._world = world
        self._victim = world.rng.choice(members)
        self._others = [member for member in members if member is not self._victim]

    def visit(self, member: SimMember) -> None:
        """Perhaps flip a bit of a member that is down."""
        rng = self._world.rng
        if member is not self._victim or rng.random() > CHANCE:
            return
        names = self._candidates()
        if not names:
            return
        name = rng.choice(names)
        disk = member.disk
        file = disk.open(name)
        size = file.size()
        file.close()
        if size:
            disk.flip(name, rng.randrange(size), rng.randrange(8))
            self._world.counts["damage to " + name.partition("/")[0]] += 1
            self._world.tell(member.me, "is damaged in", name)

    def _candidates(self) -> list[str]:
        disk = self._victim.disk
        found = []
        for name in disk.names("ledger"):
            path = f"ledger/{name}"
            if name.endswith(".sealed") and self._is_elsewhere(name.partition(".")[0]):
                found.append(path)
        if self._others:
            found += [f"blobs/{name}" for name in disk.names("blobs")]
        for directory in disk.names("snapshots"):
            path = f"snapshots/{directory}"
            found += [f"{path}/{name}" for name in disk.names(path)]
        return found

    def _is_elsewhere(self, number: str) -> bool:
        return any(
            name.startswith(number)
            for member in self._others
            for name in member.disk.names("ledger")
        )
