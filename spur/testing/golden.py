"""The story behind the golden ledger, and ledgers in directories of their own."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis, store_genesis
from spur.consensus.ledger import Ledger
from spur.events.envelope import Entry, EntryKind
from spur.slurm.crontab import parse_cron_time
from spur.testing.accounts import add_account, add_association, add_user, number, remove
from spur.testing.builders import CLUSTER, GENESIS, SMALL_CONFIG
from spur.testing.hall import SPEC, STEP, USER, Hall, submission
from spur.testing.requests import random_request
from spur.testing.steplives import StepLives
from spur.values.accounts import Subject
from spur.values.arrays import TaskSet
from spur.values.config import ConfigFile, PartitionState, SlurmParameter
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.errors import Rejection
from spur.values.ids import PartitionName
from spur.values.states import Hold, NodeShareState, Reach
from spur.wire.accounts import EditEntities
from spur.wire.cluster import (
    AcceptClock,
    AddHost,
    Checkpoint,
    Reconfigure,
    RecordRestore,
    RemoveHost,
    SetParameter,
)
from spur.wire.crontabs import CronAsk, SetCrontab
from spur.wire.declare import Attachment
from spur.wire.jobs import (
    CancelJob,
    HoldJob,
    JobChanges,
    NotifyJob,
    ReleaseJob,
    ResumeJob,
    SignalJob,
    SuspendJob,
    UpdateJob,
)
from spur.wire.joining import (
    CreateToken,
    HostCertified,
    JoinHost,
    RenewHost,
    RevokeToken,
    TokenCreated,
)
from spur.wire.partitions import CreatePartition, DeletePartition, UpdatePartition
from spur.wire.steps import AdmitGuest, CancelStep, SignalStep

__all__ = ["golden_story", "read_ledger", "write_ledger"]

_SEED = 20_260_901
_STEPS = 350

_READ_BYTES = 4 << 20


def golden_story(*, checked: bool = True) -> list[Entry]:
    """Return the entries of the story, under both policies of requeueing."""
    chance = random.Random(_SEED)
    text = SMALL_CONFIG.replace('name = "hall"', 'name = "hall"\nmin_job_age_s = 60')
    hall = Hall(text, checked=checked)
    cluster, lives = hall.cluster, StepLives(hall, seed=_SEED)
    _tell_one_life(hall)
    _tell_of_a_step(hall)
    _tell_of_accounts(hall)
    _tell_of_a_crontab(hall)
    cluster.ask(Reconfigure((ConfigFile("spur.toml", text),)))
    lives.run(_STEPS)
    confirmed = 'name = "hall"\nmin_job_age_s = 30\nrequeue_policy = "confirmed"'
    text = SMALL_CONFIG.replace('name = "hall"', confirmed)
    cluster.ask(Reconfigure((ConfigFile("spur.toml", text),)))
    cluster.append(EntryKind.NOOP, b"", term=4)
    lives.run(_STEPS)
    for request in (
        AddHost("login1", "login"),
        RemoveHost("login1"),
        UpdatePartition(PartitionName("gpu"), PartitionState.DRAIN),
        CreatePartition(PartitionName("fresh"), (SlurmParameter("Nodes", "n1"),)),
        DeletePartition(PartitionName("fresh")),
        SetParameter("SlurmctldDebug", "debug"),
        AcceptClock(),
    ):
        cluster.ask(request)
    cluster.ask(RecordRestore(2, "the third of the disks was lost"), CLUSTER)
    cluster.append(EntryKind.MEMBERSHIP, b"members after the restore", term=5)
    for _ in range(60):
        cluster.ask(*random_request(chance, cluster.state))
    lives.run(_STEPS)
    _tell_of_tokens(hall)
    cluster.ask(Checkpoint(), CLUSTER)
    return cluster.entries


_WITH_CRONTABS = """\
ClusterName=hall
SlurmctldHost=ctl
ScronParameters=enable
NodeName=n[1-4] CPUs=64 RealMemory=512000
PartitionName=gpu Nodes=n[1-4] Default=YES
PartitionName=debug Nodes=n1
"""


def _tell_of_a_crontab(hall: Hall) -> None:
    """Let a job come again, and its entry end."""
    cluster = hall.cluster
    cluster.ask(Reconfigure((ConfigFile("slurm.conf", _WITH_CRONTABS),)))
    text = Attachment("crontab", b"* * * * * look")
    attachments = (text, *submission(SPEC).attachments)
    entry = CronAsk(parse_cron_time("* * * * *"), SPEC, tuple(range(1, len(attachments))))
    answer = cluster.ask(SetCrontab("UTC0", (entry,), attachments), USER)
    if isinstance(answer, Rejection):
        raise ValueError(answer.text)
    (known,) = cluster.state.crontabs[USER.uid].entries
    hall.tick(61)
    hall.end(hall.start(known.job_id))
    hall.tick()
    (known,) = cluster.state.crontabs[USER.uid].entries
    cluster.ask(CancelJob(known.job_id, None), USER)
    hall.tick()


def _tell_of_tokens(hall: Hall) -> None:
    """Let a host join and be certified anew, one token be taken back, and both be forgotten."""
    cluster = hall.cluster
    digests = [bytes([number]) * 32 for number in range(100, 103)]
    key = bytes(range(32))
    ids = []
    for digest in digests[:2]:
        made = cluster.ask(CreateToken(digest, "login", (), "", 3600))
        if not isinstance(made, TokenCreated):
            raise ValueError(str(made))
        ids.append(made.token_id)
    joined = cluster.ask(
        JoinHost(digests[0], "front", key, "", (), cluster.now_ns, 86_400), CLUSTER
    )
    if not isinstance(joined, HostCertified):
        raise ValueError(str(joined))
    cluster.ask(RevokeToken(ids[1]))
    cluster.ask(RenewHost(joined.host_id, "", key[::-1], 86_400), CLUSTER)
    cluster.pass_seconds(8 * 86_400)
    cluster.ask(CreateToken(digests[2], "login", (), "", 3600))


def _tell_of_a_step(hall: Hall) -> None:
    """Let a step be signalled and cancelled, which random lives seldom do in time."""
    job_id = hall.start(hall.submit())
    step_id = hall.start_step(job_id, STEP)
    guest = AdmitGuest(job_id, step_id, bytes(32))
    for request in (guest, SignalStep(job_id, step_id, 10), CancelStep(job_id, step_id)):
        hall.cluster.ask(request, USER)
    hall.report_step("n1", job_id, step_id, NodeShareState.ENDED, signal=15)
    hall.end(job_id)


def _tell_of_accounts(hall: Hall) -> None:
    """Let an account and two users come, and one of them go, before the random ones."""
    here = (
        *add_account("physics"),
        add_user("ada", uid=USER.uid),
        add_association("physics", "ada", settings=(number("MaxTRESPerJob", 8, "cpu"),)),
    )
    guest = (add_user("guest", uid=1999), add_association("physics", "guest"))
    for edits in (here, guest, (remove(Subject.USER, "guest"),)):
        answer = hall.cluster.ask(EditEntities(edits))
        if isinstance(answer, Rejection):
            raise ValueError(answer.text)


def _tell_one_life(hall: Hall) -> None:
    """Let one job meet what random lives seldom do."""
    job_id = hall.submit()
    for request in (
        HoldJob(job_id, None, Hold.USER),
        ReleaseJob(job_id, None),
        UpdateJob(job_id, None, JobChanges(priority=5)),
        UpdateJob(job_id, None, JobChanges(name="renamed")),
    ):
        hall.cluster.ask(request)
    hall.start(job_id)
    hall.cluster.ask(SignalJob(job_id, None, 10, Reach.ALL))
    hall.cluster.ask(NotifyJob(job_id, None, (Attachment("notice", b"the end is near"),)))
    hall.cluster.ask(SuspendJob(job_id, None))
    hall.cluster.ask(ResumeJob(job_id, None))
    hall.end(job_id)
    array_id = hall.submit(tasks=TaskSet(((1, 3, 1),)), throttle=2)
    hall.cluster.ask(UpdateJob(array_id, None, JobChanges(throttle=1)))
    comment = (Attachment("comment", b"for the paper"),)
    hall.cluster.ask(UpdateJob(array_id, None, JobChanges(), comment))
    condition = Condition(DependencyKind.AFTER_OK, array_id, 1, 0)
    hall.submit(replace(SPEC, dependency=Dependency(False, (condition,))))
    hall.end(hall.start(array_id, task=1))
    hall.tick()


def write_ledger(root: Path, entries: Sequence[Entry]) -> None:
    """Write a directory as a replica has it: the genesis file and a ledger, sealed but its end."""
    disk = OsDisk(str(root))
    store_genesis(disk, GENESIS)
    ledger = Ledger.open(disk, GENESIS, covered_from=1)
    ledger.append(entries)
    ledger.sync()
    while ledger.seal():
        pass
    ledger.close()


def read_ledger(root: Path) -> Iterator[Entry]:
    """Yield the entries of a directory's ledger, each checked."""
    disk = OsDisk(str(root), read_only=True)
    ledger = Ledger.view(disk, load_genesis(disk))
    first = 1
    try:
        while entries := ledger.read(first, ledger.last, _READ_BYTES):
            yield from entries
            first += len(entries)
    finally:
        ledger.close()
