"""What must hold once everything was healed and every job has had its time.

answers         the cluster answers, all nodes are there, every job ends, nothing is left running
records         see records.py; sacct shows as many; every controller's read model has the same
linearizable    what those saw who wrote and read a few jobs has one order that explains it
sold once       no resource is oversold after any start in the log
equal           all controllers stand at one entry, with one chain and one state
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from spur.agent.stream import AWAITED_S
from spur.client.client import Client
from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.consensus.ledger import Ledger
from spur.controller.logtool import head, verify
from spur.events.codec import decode_envelope
from spur.events.envelope import Entry, EntryKind
from spur.projections.apply import follow
from spur.projections.invariants import INVARIANTS
from spur.projections.state import new_state
from spur.testing.chaos.clients import Clients, waiting_job
from spur.testing.chaos.records import judge_jobs, judge_records, read_log
from spur.testing.chaos.scripts import read_notes
from spur.testing.chaos.stage import Stage
from spur.testing.chaos.users import Users, persist
from spur.testing.controllers import ControllerProcess
from spur.testing.live.load import FIRST, Wrong
from spur.testing.simulation.linearizability import is_linearizable
from spur.values.errors import Rejection, SpurError
from spur.values.ids import JobId
from spur.values.states import Hold, JobState
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.declare import Done
from spur.wire.history import JobRecord, QueryRecords, RecordFilter, RecordPage, decode_job_record
from spur.wire.jobs import (
    CancelJobs,
    JobFilter,
    JobPage,
    JobView,
    QueryJobs,
    ReleaseJob,
    page_views,
)
from spur.wire.nodes import ListNodes, NodeList

__all__ = ["Verdict", "await_ends", "judge"]

PATIENCE_S = 60.0
"""Within which a healed cluster must have all nodes, and all jobs must have ended."""

LEFT_S = AWAITED_S + 15.0
"""How long a node may take to clear up what ended: a step whose srun is gone waits for it."""

LOOKS = 8

LOOK_AGAIN_S = 0.5
"""Between two comparisons of controllers that run."""

OVER = frozenset(state for state in JobState if state not in (JobState.PENDING, JobState.RUNNING))

_SACCT = (
    "from spur_cli.main import main; raise SystemExit(main())",
    *("sacct", "-D", "-X", "-n", "-P", "-o", "jobidraw", "-j"),
)


@dataclass(frozen=True)
class Verdict:
    """What a run that ended well came to."""

    index: int
    term: int
    jobs: int
    """Of the load, tasks of arrays counted."""
    runs: int
    """Records of all jobs."""
    began: int
    """Runs of the load whose script began."""
    relaunches: int
    requeued: int
    """Runs after which their job was put back."""
    unfenced: int
    """Runs recorded as unfenced."""
    beside: int
    """Runs that lived on beside a later one."""
    operations: int


async def await_ends(stage: Stage, client: Client, clients: Clients) -> None:
    """Wait until nodes are there and jobs have ended; release what the cluster held. Raises: Wrong.

    What waits for the far time is ended.
    """
    if clients.names:
        names = JobFilter(names=tuple(clients.names))
        cancelled = await persist(client, CancelJobs(names), Done)
        if isinstance(cancelled, Rejection):
            raise Wrong(f"what waits can't be cancelled: {cancelled.text}")
    end_s = time.monotonic() + PATIENCE_S
    while True:
        out = await _nodes_out(client)
        views = [view async for view in _jobs(client)]
        left = [view for view in views if view.state not in OVER or view.completing]
        if not out and not left:
            return
        if time.monotonic() > end_s:
            shown = ", ".join(
                f"job {view.job_id} ({view.spec.name}) run {view.run} is {view.state}"
                f" ({view.reason})" + " completing" * view.completing
                for view in left[:10]
            )
            raise Wrong(f"after {PATIENCE_S:g} s: nodes {out} are out; {len(left)} jobs: {shown}")
        for view in left:
            if view.hold is not Hold.NONE and view.state is JobState.PENDING:
                await persist(client, ReleaseJob(view.job_id, None), Done)
        await asyncio.sleep(0.3)


async def judge(
    stage: Stage, client: Client, readers: list[Client], users: Users, clients: Clients
) -> Verdict:
    """Judge a run whose jobs have ended, and end it. Raises: Wrong."""
    if not is_linearizable(clients.history, None, waiting_job):
        raise Wrong("what the clients saw of the jobs that wait is not linearizable")
    await _nothing_left(stage)
    term = await _converged(stage)
    records = [record async for record in _records(client)]
    for number, reader in enumerate(readers, 1):
        if [record async for record in _records(reader)] != records:
            raise Wrong(f"controller {number}'s read model differs from another's")
    await asyncio.to_thread(_compare_sacct, stage, records)
    # While they run: one that ends hands over first, which is an entry for the others.
    index = await asyncio.to_thread(_equal, stage)
    statuses = await asyncio.to_thread(stage.stop)
    if any(statuses):
        raise Wrong(f"controllers ended with statuses {statuses}")
    log = read_log(str(stage.member(1).directory))
    runs = judge_records(records, log)
    began, beside = judge_jobs(
        stage.plan.jobs, users.accepted, records, read_notes(stage.notes), stage.plan.policy
    )
    await asyncio.to_thread(_sold_once, str(stage.member(1).directory))
    return Verdict(
        index=index,
        term=term,
        jobs=sum(job.members for job in stage.plan.jobs),
        runs=runs,
        began=began,
        relaunches=log.relaunches,
        requeued=sum(1 for _, run in log.ended if run),
        unfenced=sum(1 for _, _, unfenced in log.ends.values() if unfenced),
        beside=beside,
        operations=len(clients.history),
    )


async def _nodes_out(client: Client) -> list[str]:
    answer = await persist(client, ListNodes("", "", 1000), NodeList)
    if isinstance(answer, Rejection):
        raise Wrong(f"nodes can't be listed: {answer.text}")
    return [f"{node.name} {node.state}" for node in answer.nodes if not _is_in(node.state)]


def _is_in(state: str) -> bool:
    return (
        state.partition("+")[0] in ("IDLE", "MIXED", "ALLOCATED") and "NOT_RESPONDING" not in state
    )


async def _jobs(client: Client) -> AsyncIterator[JobView]:
    after: JobId | None = FIRST
    while after is not None:
        page = await persist(client, QueryJobs(JobFilter(), after, 1000), JobPage)
        if isinstance(page, Rejection):
            raise Wrong(f"jobs can't be listed: {page.text}")
        for view in page_views(page):
            yield view
        after = page.next


async def _records(client: Client) -> AsyncIterator[JobRecord]:
    after: JobId | None = FIRST
    while after is not None:
        request = QueryRecords(RecordFilter(all_runs=True), after, 500)
        page = await persist(client, request, RecordPage)
        if isinstance(page, Rejection):
            raise Wrong(f"records can't be read: {page.text}")
        for record in map(decode_job_record, page.rows):
            yield record
        after = page.next


async def _nothing_left(stage: Stage) -> None:
    """Wait until no supervisor and no script is left. Raises: Wrong."""
    end_s = time.monotonic() + LEFT_S
    while True:
        left = [pid for agent in stage.agents for pid in stage.supervisors(agent)]
        left += await asyncio.to_thread(_scripts, str(stage.notes))
        if not left:
            return
        if time.monotonic() > end_s:
            raise Wrong(f"every job has ended, and processes {left} are left of them")
        await asyncio.sleep(0.2)


def _scripts(notes: str) -> list[int]:
    """Return the processes whose command line names the notes' directory, or that are scripts."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            is_job = any(each.startswith(b"SLURM_JOB_ID=") for each in variables)
            socket = next((each for each in variables if each.startswith(b"SPUR_SOCKET=")), b"")
            if is_job and os.path.dirname(notes).encode() in socket:
                found.append(int(name))
        except OSError:
            continue
    return found


async def _converged(stage: Stage) -> int:
    """Wait until all controllers stand at one place; return the term. Raises: Wrong."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        infos = [await _info(stage, member) for member in stage.controllers.members]
        places = {(info.last, info.commit, info.recorded) for info in infos if info is not None}
        if None not in infos and len(places) == 1 and len(set(*places)) == 1:
            return max(info.term for info in infos if info is not None)
        if time.monotonic() > end_s:
            raise Wrong(f"the controllers do not come to stand at one place: {infos}")
        await asyncio.sleep(0.1)


async def _info(stage: Stage, member: ControllerProcess) -> ReplicaInfo | None:
    try:
        async with stage.controllers.local(member, deadline_s=1.0) as client:
            answer = await client.ask(ShowReplica(), ReplicaInfo)
    except SpurError:
        return None
    return answer if isinstance(answer, ReplicaInfo) else None


def _compare_sacct(stage: Stage, records: Sequence[JobRecord]) -> None:
    """See that `sacct -D` prints a line for each record. Raises: Wrong."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path))),
        "SPUR_SOCKET": str(stage.login.directory / "spurd.sock"),
    }
    # Named, since a window of time leaves out what never might have started.
    ids = ",".join(sorted({str(record.array_id or record.job_id) for record in records}))
    for _ in range(LOOKS):
        done = subprocess.run(
            [sys.executable, "-c", *_SACCT, ids],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        if "timed out" not in done.stderr:  # on a busy machine one asks again, as a person would
            break
    printed = Counter(int(line) for line in done.stdout.splitlines())
    expected = Counter({int(record.job_id): len(record.runs) for record in records})
    if done.returncode or printed != expected:
        raise Wrong(
            f"sacct -D lacks {sorted(expected - printed)[:9]} and has"
            f" {sorted(printed - expected)[:9]} too many {done.stderr}"
        )


def _equal(stage: Stage) -> int:
    """Compare the logs and states of all controllers; return where they end. Raises: Wrong.

    They run, and an agent that was away may still have something to say: then it is looked again.
    """
    for _ in range(LOOKS):
        found = [_report(str(member.directory)) for member in stage.controllers.members]
        if len(set(found)) == 1:
            return found[0][0]
        time.sleep(LOOK_AGAIN_S)
    raise Wrong(f"the controllers differ: {found}")


def _report(directory: str) -> tuple[int, str, str, int]:
    """Return where a controller's log ends, its chain, its state, and how many attachments."""
    ending, report = head(directory), verify(directory, replay=True)
    if report["missing"] or report["torn"] or report["attachments_missing"]:
        raise Wrong(f"{directory} is not whole: {report}")
    return ending["index"], ending["chain"], report["state"], report["attachments"]


def _sold_once(directory: str) -> None:
    """Check the invariants about resources after each entry that starts something."""
    checks = [INVARIANTS[name] for name in ("resources-never-oversold", "one-task-per-allocation")]
    disk = OsDisk(directory)
    genesis = load_genesis(disk)
    state = new_state(
        genesis.encoded, cluster_id=genesis.cluster_id, incarnation=genesis.incarnation
    )
    ledger = Ledger.view(disk, genesis)
    try:
        for index in range(ledger.first, ledger.last + 1):
            (entry,) = ledger.read(index, index, 1)
            follow(state, (entry,))
            if _starts(entry) and (found := [each for check in checks for each in check(state)]):
                raise Wrong(f"after entry {entry.index}: {found}")
    finally:
        ledger.close()


def _starts(entry: Entry) -> bool:
    if entry.kind != EntryKind.EVENTS:
        return False
    envelope, _ = decode_envelope(entry.body, entry.index)
    return any(stored.type in ("job.started", "step.started") for stored in envelope.events)
