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
        kinds = [names for names in (self._segments(), self._packs(), self._snapshots()) if names]
        if not kinds:
            return
        name = rng.choice(rng.choice(kinds))
        disk = member.disk
        file = disk.open(name)
        size = file.size()
        file.close()
        if size:
            member.files_are_damaged = True
            disk.flip(name, rng.randrange(size), rng.randrange(8))
            self._world.counts["damage to " + name.partition("/")[0]] += 1
            self._world.tell(member.me, "is damaged in", name)

    def _segments(self) -> list[str]:
        return [
            f"ledger/{name}"
            for name in self._victim.disk.names("ledger")
            if name.endswith(".sealed") and self._is_elsewhere(name.partition(".")[0])
        ]

    def _packs(self) -> list[str]:
        names = self._victim.disk.names("blobs") if self._others else []
        return [f"blobs/{name}" for name in names]

    def _snapshots(self) -> list[str]:
        disk = self._victim.disk
        paths = [f"snapshots/{name}" for name in disk.names("snapshots") if name.isdigit()]
        return [f"{path}/{name}" for path in paths for name in disk.names(path)]

    def _is_elsewhere(self, number: str) -> bool:
        return any(
            name.startswith(number)
            for member in self._others
            for name in member.disk.names("ledger")
        )
