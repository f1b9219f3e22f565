"""Founding a simulated cluster: one genesis, and a disk for each member."""

from __future__ import annotations

from spur.consensus.genesis import Genesis
from spur.consensus.membership import Member, Membership
from spur.consensus.opening import create_replica
from spur.testing.disk import SimDisk
from spur.testing.simulation.member import SimMember, Watcher
from spur.testing.simulation.network import Network
from spur.testing.simulation.plan import Plan, options_of
from spur.testing.simulation.world import World

__all__ = ["found_members"]


def found_members(world: World, network: Network, watcher: Watcher, plan: Plan) -> list[SimMember]:
    """Return the members of a new cluster, all of them still off."""
    rng, options = world.rng, options_of(plan)
    members = tuple(
        Member(number, rng.randbytes(16), True, f"h{number}:1", f"h{number}:2")
        for number in range(1, plan.members + 1)
    )
    genesis = Genesis(
        cluster_id=rng.randbytes(16),
        membership=Membership(members).encode(),
        segment_entries=plan.segment_entries,
    )
    founded = []
    for member in members:
        disk = SimDisk()
        create_replica(disk, genesis, me=member.id, options=options)
        founded.append(
            SimMember(
                world,
                network,
                watcher,
                me=member.id,
                disk=disk,
                options=options,
                disk_delay_s=plan.disk_delay_s,
                snapshot_entries=plan.snapshot_entries,
            )
        )
    return founded
