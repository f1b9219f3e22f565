"""A disk that forgot what its replica had promised to keep: found out, said, and not used again."""

from __future__ import annotations

from random import Random

import pytest

from spur.consensus.boxes import Role
from spur.consensus.faults import PromiseLost
from spur.consensus.genesis import Genesis
from spur.consensus.membership import Member, Membership
from spur.consensus.messages import Append, AppendReply, Heartbeat, PreVoteReply, VoteReply
from spur.consensus.opening import ReplicaOptions, create_replica, open_replica
from spur.consensus.replica import Replica
from spur.controller.front import Front
from spur.controller.services import ReleaseOnly
from spur.projections.state import new_state
from spur.testing.disk import SimDisk

MEMBERS = tuple(
    Member(number, bytes([number]) * 16, True, f"h{number}:1", f"h{number}:2")
    for number in (1, 2, 3)
)
GENESIS = Genesis(cluster_id=b"cluster-of-tests", membership=Membership(MEMBERS).encode())
OPTIONS = ReplicaOptions(wal_segment_bytes=4096)


class NoonClocks:
    """Clocks that stand still."""

    def wall_ns(self) -> int:
        return 1

    def mono_ns(self) -> int:
        return 0


def opened() -> Replica:
    disk = SimDisk()
    create_replica(disk, GENESIS, me=1, options=OPTIONS)
    replica = open_replica(disk, me=1, rng=Random(1), clocks=NoonClocks(), options=OPTIONS)
    state = new_state(GENESIS.encoded, cluster_id=GENESIS.cluster_id, incarnation=0)
    replica.attach(
        Front(
            state,
            replica,
            noise=bytes,
            address_of=str,
            services=ReleaseOnly(lambda effect, index: None),
        )
    )
    return replica


def turn(replica: Replica) -> None:
    """Let everything happen that is to be done now."""
    for _ in range(10):
        replica.pump()
        for job in replica.take_jobs():
            replica.finish(job, job.run())


def elected() -> Replica:
    replica = opened()
    for _ in range(25):
        replica.tick()
    term = replica.core.term
    replica.take(PreVoteReply(2, 1, term + 1, True))
    turn(replica)
    replica.take(VoteReply(2, 1, replica.core.term, True))
    turn(replica)
    assert replica.core.is_leader
    return replica


def test_replica_that_lost_what_it_acknowledged_stops() -> None:
    """Its leader knows that entries up to 9 were acknowledged here, and they are not there."""
    replica = opened()
    replica.take(Append(2, 1, 2, 9, 2, 0, 9))
    with pytest.raises(PromiseLost, match="remove this controller and add it again"):
        replica.pump()


def test_leader_says_once_which_controller_lost_its_promises() -> None:
    """A follower's disk was put back to an older state behind everybody's back."""
    replica = elected()
    last, term = replica.core.last, replica.core.term
    replica.take(AppendReply(3, 1, term, last - 1, last))
    replica.take(AppendReply(3, 1, term, last, last - 1, refused=True, lost=True))
    for _ in range(3):
        replica.tick()
    said = [note for note in replica.storage.notes if "controller 3 lost entries" in note]
    assert len(said) == 1


def test_slow_disk_leaves_elections_more_time() -> None:
    """A sync took longer than an election: the next campaign must not end before two of them."""
    replica = opened()
    for _ in range(25):
        replica.tick()
    replica.take(PreVoteReply(2, 1, replica.core.term + 1, True))
    replica.pump()
    (vote,) = (job for job in replica.take_jobs() if job.lane == "wal")
    for _ in range(30):
        replica.tick()
    replica.finish(vote, vote.run())
    assert replica.core.sync_ticks == 30
    replica.take(Heartbeat(2, 1, replica.core.term + 1, 0, 1))
    term = replica.core.term
    for _ in range(59):
        replica.tick()
    assert (replica.core.role, replica.core.term) == (Role.FOLLOWER, term)
    for _ in range(61):
        replica.tick()
    assert replica.core.role is Role.PRE_CANDIDATE


def test_worst_sync_is_forgotten_after_ten_minutes() -> None:
    """A disk hung once, an hour ago: the next failover must be as quick as ever."""
    replica = elected()
    replica.core.sync_ticks = 30
    for _ in range(20_001):
        replica.tick()
    replica.take(PreVoteReply(2, 1, replica.core.term + 1, True))
    turn(replica)
    assert replica.core.sync_ticks == 0
