"""sacct, word for word: a scene of a real Slurm 22.05 whose jobs ended in every way.

`slurm/sacct.json` holds the recorded command lines and what they printed. The events below are what
Spur's log would hold of those jobs; they are folded into a read model, and the command asks it.

--array is left out: later releases know it, and so do we.
"""

from __future__ import annotations

import calendar
import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from spur.consensus.genesis import genesis_chain
from spur.events.codec import encode_envelope
from spur.events.declare import Event
from spur.events.envelope import Actor, Entry, EntryKind, RequestMark
from spur.events.jobs import JobRequeued, JobSubmitted, JobTasksSplit
from spur.events.runs import (
    JobStarted,
    NodeCutOff,
    PlacementDecision,
    RunEnded,
    RunReported,
    RunStopped,
)
from spur.events.steps import StepEnded, StepStarted, StepStopped
from spur.slurm.configfile import parse_slurm_config
from spur.slurm.wording import SlurmError
from spur.store.model import Cursor, Model
from spur.store.records import record_page
from spur.testing.builders import CLUSTER, GENESIS, actor
from spur.testing.hall import SPEC
from spur.values.arrays import TaskSet
from spur.values.config import ConfigFile, PartitionBlock
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec, JobText, encode_text
from spur.values.states import Hold, JobState, NodeShareState, Reason
from spur.values.steps import Dealing, StepState
from spur.values.tres import GresAsk, NodeShare, Per
from spur.wire.cluster import ClusterInfo, ShowCluster
from spur.wire.declare import Answer, Request
from spur.wire.history import QueryRecords
from spur.wire.partitions import ListPartitions, PartitionInfo, PartitionList
from spur.wire.texts import JobScript, JobTexts, JobTextView, ReadScript, ReadTexts
from spur_cli.commands.sacct import show
from spur_cli.slurm.people import LocalCalendar, Viewpoint
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals

HERE = Path(__file__).parent
SCENE: dict[str, Any] = json.loads(  # as recorded: texts and statuses
    (HERE / "slurm" / "sacct.json").read_text(encoding="utf-8")
)
CONFIG = parse_slurm_config(
    tuple(
        ConfigFile(name, (HERE.parent / "data" / "slurm" / "cluster" / name).read_text())
        for name in ("slurm.conf", "gres.conf", "topology.conf")
    )
)

DAY_S = calendar.timegm((2026, 11, 30, 0, 0, 0))
NS = 1_000_000_000


def at(clock: str) -> int:
    """Return the second of the day of the recording that a clock shows."""
    hour, minute, second = (int(part) for part in clock.split(":"))
    return DAY_S + hour * 3_600 + minute * 60 + second


USERS = {"root": 0, "u1": 2001, "u2": 2002, "u3": 2003, "u4": 2004}
NAMES = {uid: name for name, uid in USERS.items()}


class Log:
    """Events with the times of the recording, which become entries in the order of time."""

    def __init__(self) -> None:
        self._noted: list[tuple[int, int, Actor, tuple[Event, ...]]] = []
        self.rank = 0
        """Orders what is of one second: the job's number, mostly."""

    def note(self, clock: str, *events: Event, by: Actor = CLUSTER) -> None:
        """Note events; those of one second and rank stay in the order in which they are noted."""
        self._noted.append((at(clock) * NS, self.rank, by, events))

    def entries(self) -> list[Entry]:
        """Return the log."""
        found: list[Entry] = []
        last_ns = 0
        for time_ns, _, by, events in sorted(self._noted, key=lambda noted: noted[:2]):
            last_ns = max(time_ns, last_ns + 1_000)
            body = encode_envelope(
                time_ns=last_ns,
                command="story",
                request=RequestMark("cluster", b"", 0, bytes(32), b"", 1, 1),
                actor=by,
                events=events,
                cluster_version=1,
            )
            found.append(Entry(len(found) + 1, 1, EntryKind.EVENTS, body))
        return found

    def submit(self, clock: str, job_id: int, spec: JobSpec, user: str, **more: Any) -> None:
        """Submit a job."""
        self.rank = job_id
        uid = USERS[user]
        fields: dict[str, Any] = {  # the rest of an event's fields
            "tasks": None,
            "throttle": 0,
            "het_id": JobId(0),
            "het_offset": 0,
            "het_size": 0,
            "hold": Hold.NONE,
            "priority": None,
            "attachments": (),
        } | more
        event = JobSubmitted(job_id=JobId(job_id), uid=uid, gid=uid, spec=spec, **fields)
        self.note(clock, event, by=actor(uid))

    def start(self, clock: str, job_id: int, what: JobSpec, held: str, run: int = 0) -> None:
        """Start a run on such nodes as "n1:4:2000", with CPUs and MiB."""
        shares = tuple(_share(word) for word in held.split())
        decision = PlacementDecision(b"", 0, (), (), "")
        limit_s, partition = what.time_limit_s or 0, what.partitions[0]
        job = JobId(job_id)
        self.note(clock, JobStarted(job, run, run + 1, partition, shares, limit_s, decision))

    def stop(self, clock: str, job_id: int, state: JobState, by: Actor = CLUSTER) -> None:
        """Settle how a run ends."""
        again = state is JobState.REQUEUED
        stopped = RunStopped(JobId(job_id), 0, state, Reason.NONE, again, Hold.NONE, 0, 0)
        self.note(clock, stopped, by=by)

    def end(
        self,
        clock: str,
        job_id: int,
        node: str,
        state: JobState,
        script: tuple[int, int] = (0, 0),
        job: tuple[int, int] | None = None,
        run: int = 0,
    ) -> None:
        """Let the first node report the script's end, and record the run."""
        end_ns = at(clock) * NS
        name, ended, attempt = NodeName(node), NodeShareState.ENDED, run + 1
        report = RunReported(
            name, b"o", 1, JobId(job_id), run, attempt, ended, *script, False, end_ns
        )
        code, signal = script if job is None else job
        record = RunEnded(JobId(job_id), run, state, Reason.NONE, code, signal, end_ns, False)
        self.note(clock, report, record)


def _share(word: str) -> NodeShare:
    node, cpus, memory_mib, *gpus = word.split(":")
    mask = int(gpus[0]) if gpus else 0
    return NodeShare(NodeName(node), int(cpus), int(memory_mib), mask, b"", False)


def spec(
    name: str,
    account: str = "physics",
    partition: str = "debug",
    *,
    minutes: int = 10,
    tasks: int = 1,
    memory_mib: int = 0,
    batch: bool = True,
    begin_ns: int = 0,
    qos: str = "normal",
    **ask: Any,
) -> JobSpec:
    """Return what such a job asks for."""
    asked = replace(SPEC.ask, tasks=tasks, memory_mib=memory_mib, memory_per=Per.NODE, **ask)
    return replace(
        SPEC,
        name=name,
        partitions=(PartitionName(partition),),
        account=account,
        qos=qos,
        ask=asked,
        time_limit_s=minutes * 60,
        batch=batch,
        begin_ns=begin_ns,
    )


CD, F, CA, TO = JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.TIMEOUT
KILLED, NOUGHT = (0, 15), (0, 0)
BEGAN = "8:29:49"


def run_at_once(log: Log) -> None:
    """Note the jobs that began as they were submitted, but for those that were stopped."""
    gpus = (GresAsk("gpu", "mi300x", 2, Per.NODE),)
    long_name = "this_is_a_very_long_job_name_indeed"
    long_named = spec(long_name, partition="killable", minutes=30)
    for job_id, user, what, held, clock, state, script in (
        (1002, "u1", spec("ok", tasks=2), "n2:2:1000", BEGAN, CD, NOUGHT),
        (1003, "u1", spec("fails", "astro", qos="high"), "n1:1:500", BEGAN, F, (7, 0)),
        (1004, "u1", spec("killed_by_signal"), "n4:1:500", BEGAN, F, (0, 9)),
        (
            1005,
            "u1",
            spec("steps", tasks=4, nodes_min=2),
            "n1:3:1500 n2:1:500",
            "8:29:50",
            F,
            (3, 0),
        ),
        (1011, "u3", spec("oom", "chem", memory_mib=60), "n5:2:60", "8:29:54", F, (0, 9)),
        (1012, "u3", spec("oomstep", "chem", memory_mib=60), "n5:2:60", "8:29:55", F, (9, 0)),
        (
            1013,
            "u1",
            spec("gpujob", partition="gpu", minutes=60, cpus_per_task=4, gres=gpus),
            "g1:4:8000:3",
            BEGAN,
            CD,
            NOUGHT,
        ),
        (1015, "u1", long_named, "n5:2:1000", BEGAN, CD, NOUGHT),
        (1023, "u1", spec("licensed", licenses="matlab:2"), "n3:1:500", BEGAN, CD, NOUGHT),
        (
            1024,
            "u1",
            spec("interactive", tasks=2, nodes_min=2, batch=False),
            "n2:1:500 n3:1:500",
            BEGAN,
            CD,
            NOUGHT,
        ),
    ):
        log.submit(BEGAN, job_id, what, user)
        log.start(BEGAN, job_id, what, held)
        log.end(clock, job_id, held.partition(":")[0], state, script)
    for offset, partition, minutes, cpus, node in (
        (0, "debug", 10, 1, "n3"),
        (1, "long", 60, 2, "n1"),
    ):
        what = spec(
            "het",
            "hep",
            partition,
            minutes=minutes,
            tasks=cpus,
            memory_mib=cpus * 100,
        )
        het = {"het_id": JobId(1007), "het_offset": offset, "het_size": 2}
        log.submit(BEGAN, 1007 + offset, what, "u2", **het)
        log.start(BEGAN, 1007 + offset, what, f"{node}:{cpus}:{cpus * 100}")
        log.end("8:29:50", 1007 + offset, node, CD)


def run_and_stopped(log: Log) -> None:
    """Note the jobs that somebody or something stopped."""
    u2, root = actor(2002), actor(0)
    victim = spec("victim", partition="killable", minutes=30, tasks=16, memory_mib=100)
    for job_id, user, what, held, clock, state, by, script in (
        (
            1001,
            "u1",
            spec("timeout", minutes=1),
            "n4:1:500",
            "8:31:06",
            JobState.TIMEOUT,
            CLUSTER,
            KILLED,
        ),
        (1017, "u2", spec("cancelled_running", "hep"), "n1:1:500", "8:29:53", CA, u2, KILLED),
        (1018, "u2", spec("cancelled_by_root", "hep"), "n2:1:500", "8:29:53", CA, root, KILLED),
        (1022, "u1", victim, "n6:16:100", "8:29:53", JobState.PREEMPTED, CLUSTER, KILLED),
    ):
        log.submit(BEGAN, job_id, what, user)
        log.start(BEGAN, job_id, what, held)
        log.stop(clock, job_id, state, by)
        log.end(clock, job_id, held.partition(":")[0], state, script, NOUGHT)
    lost = spec("nodefail", "bio")
    log.submit(BEGAN, 1019, lost, "u4")
    log.start(BEGAN, 1019, lost, "n3:1:500")
    log.stop("8:29:53", 1019, JobState.NODE_FAIL, root)
    log.note(
        "8:29:53",
        NodeCutOff(JobId(1019), 0, NodeName("n3"), NodeShareState.LOST, at("8:29:53") * NS),
        RunEnded(JobId(1019), 0, JobState.NODE_FAIL, Reason.NONE, 0, 0, at("8:29:53") * NS, True),
    )


def never_ran(log: Log) -> None:
    """Note the jobs that ended before they started, or still wait."""
    log.submit(BEGAN, 1016, spec("cancelled_pending", "hep"), "u2", hold=Hold.USER)
    end_ns = at("8:29:53") * NS
    log.note(
        "8:29:53", RunEnded(JobId(1016), 0, CA, Reason.NONE, 0, 0, end_ns, False), by=actor(2002)
    )
    log.submit(BEGAN, 1021, spec("deadline", partition="broken", minutes=1), "u1")
    end_ns = at("8:30:05") * NS
    log.note(
        "8:30:05", RunEnded(JobId(1021), 0, JobState.DEADLINE, Reason.NONE, 1, 0, end_ns, False)
    )
    begin_ns = at("13:30:02") * NS
    waits = spec("still_pending", "chem", "long", minutes=60, begin_ns=begin_ns)
    log.submit("8:30:02", 1030, waits, "u3")


def array_and_later(log: Log) -> None:
    """Note the array, whose tasks started after all that was submitted with it, and the rest."""
    tasks = spec("arr", "hep")
    log.submit(BEGAN, 1006, tasks, "u2", tasks=TaskSet.of((1, 2, 3, 7)), throttle=2)
    log.rank = 1024
    for job_id, task, node in ((1009, 1, "n3"), (1010, 2, "n3"), (1014, 3, "n4"), (1006, 7, "n4")):
        if job_id != 1006:
            log.note(BEGAN, JobTasksSplit(JobId(job_id), JobId(1006), TaskSet.single(task)))
        log.start(BEGAN, job_id, tasks, f"{node}:1:500")
        log.end(BEGAN, job_id, node, F, (task, 0))
    for job_id, user, what, held, submitted, started, clock in (
        (1025, "u3", spec("alloc1", "chem", batch=False), "n1:1:500", BEGAN, "8:29:50", "8:29:53"),
        (
            1026,
            "u1",
            spec("evictor", tasks=16, memory_mib=200),
            "n6:16:200",
            "8:29:53",
            "8:29:55",
            "8:29:57",
        ),
    ):
        log.submit(submitted, job_id, what, user)
        log.start(started, job_id, what, held)
        log.end(clock, job_id, held.partition(":")[0], CD)
    running = spec("still_running", "chem", "long", minutes=60, tasks=2)
    log.submit("8:30:01", 1029, running, "u3")
    log.start("8:30:02", 1029, running, "n2:2:1000")


def requeued(log: Log) -> None:
    """Note the jobs that were put back into the queue."""
    again, held = spec("requeued", "bio"), spec("requeuehold")
    for job_id, user, what, node, began, stopped, hold in (
        (1020, "u4", again, "n2", BEGAN, "8:29:53", Hold.NONE),
        (1028, "u1", held, "n1", "8:30:00", "8:30:02", Hold.REQUEUE),
    ):
        log.submit(began, job_id, what, user)
        log.start(began, job_id, what, f"{node}:1:500")
        log.stop(stopped, job_id, JobState.REQUEUED, actor(0))
        log.end(stopped, job_id, node, JobState.REQUEUED, KILLED, NOUGHT)
        log.rank = 1029
        log.note(stopped, JobRequeued(JobId(job_id), 1, hold))
    log.start("8:31:56", 1020, again, "n2:1:500", run=1)
    log.end("8:32:00", 1020, "n2", CD, run=1)
    suspended = spec("suspended", minutes=5)
    log.submit("8:29:57", 1027, suspended, "u1")
    log.start("8:29:57", 1027, suspended, "n1:1:500")
    log.end("8:30:03", 1027, "n1", CD)


STEPS: dict[int, tuple[tuple[Any, ...], ...]] = {  # rows of the table below
    # name, end, state, exit, tasks, what it holds, distribution, who ended it
    1005: (
        ("true", BEGAN, CD, NOUGHT, 4, "n1:3:1500 n2:1:500", Dealing.BLOCK, None),
        ("second", BEGAN, F, (1, 0), 2, "n1:3:1500 n2:1:500", Dealing.CYCLIC, None),
        ("sleep", "8:29:50", CD, NOUGHT, 1, "n1:3:100", Dealing.CYCLIC, None),
    ),
    1007: (("true", "8:29:50", CD, NOUGHT, 1, "n3:1:100", Dealing.CYCLIC, None),),
    1008: (("true", "8:29:50", CD, NOUGHT, 2, "n1:2:200", Dealing.CYCLIC, None),),
    1012: (("python3", "8:29:55", CA, (0, 9), 1, "n5:2:60", Dealing.CYCLIC, 0),),
    1013: (("true", BEGAN, CD, NOUGHT, 1, "g1:4:8000:3", Dealing.CYCLIC, None),),
    1017: (("sleep", "8:29:53", CA, KILLED, 1, "n1:1:500", Dealing.CYCLIC, None),),
    1024: (("interactive", BEGAN, CD, NOUGHT, 2, "n2:1:500 n3:1:500", Dealing.CYCLIC, None),),
    1025: (("true", "8:29:53", CD, NOUGHT, 1, "n1:1:500", Dealing.CYCLIC, None),),
    1029: (("sleep", "", JobState.RUNNING, NOUGHT, 2, "n2:2:1000", Dealing.CYCLIC, None),),
}
"""The numbered steps of the scene."""


def stepped(log: Log) -> None:
    """Note the steps, each as its job began."""
    for number, steps in STEPS.items():
        began = "8:30:02" if number == 1029 else "8:29:50" if number == 1025 else BEGAN
        for step_id, (name, end, state, exits, tasks, held, dealing, by) in enumerate(steps):
            shares = tuple(_share(word) for word in held.split())
            counts = (tasks, *(0 for _ in shares[1:]))
            job, log.rank = JobId(number), number
            started = StepStarted(
                job, 0, 1, step_id, name, shares, counts, dealing, 0, 1, False, 0, b""
            )
            log.note(began, started)
            if by is not None:
                stopped = StepStopped(job, 0, step_id, StepState(state.value), True)
                log.note(end, stopped, by=actor(by))
            if end:
                record = StepState(state.value)
                log.note(end, StepEnded(job, 0, step_id, record, exits[0], exits[1], at(end) * NS))


A = TypeVar("A", bound=Answer)


class Recorded(Session):
    """A session whose cluster is the scene's read model."""

    def __init__(self, environment: dict[str, str], connection: Connection) -> None:
        super().__init__("sacct", environment)
        self._connection = connection

    def ask(
        self, request: Request, expected: type[A], *, held_with: Signals | None = None
    ) -> A | Rejection:
        """Answer as the controller would."""
        answer: Answer
        if isinstance(request, QueryRecords):
            answer = record_page(self._connection, request)
        elif isinstance(request, ReadTexts):
            answer = JobTexts(tuple(_text(job_id) for job_id in request.job_ids), 1_000)
        elif isinstance(request, ReadScript):
            answer = JobScript(SCRIPTS.get(request.job_id, b""), is_erased=False)
        elif isinstance(request, ListPartitions):
            answer = PartitionList(tuple(_partition(block) for block in CONFIG.partitions))
        else:
            assert isinstance(request, ShowCluster)
            answer = ClusterInfo(bytes(16), 1, 1, 1, 0, 0, CONFIG.settings, (), ())
        assert isinstance(answer, expected)
        return answer


COMMENTS = {1005: b"hello", 1029: b"a comment"}

WRAPPED = b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"
SCRIPTS = {
    1002: WRAPPED + b"true\n",
    1005: b"""#!/bin/bash
#SBATCH -J steps
#SBATCH -n4 -N2
#SBATCH --comment=hello
srun -n4 true
srun -n2 --job-name=second bash -c 'exit $SLURM_PROCID'
srun -n1 -N1 --mem=100 sleep 1
exit 3
""",
    **dict.fromkeys((1006, 1009, 1010, 1014), WRAPPED + b"exit $SLURM_ARRAY_TASK_ID\n"),
}


def _text(job_id: JobId) -> JobTextView:
    user = "u3" if job_id == 1029 else "u2" if job_id in (1006, 1009, 1010, 1014, 1017) else "u1"
    home = f"/home/{'u3' if job_id == 1030 else user}".encode()
    text = JobText(home, (), b"", b"", b"", COMMENTS.get(job_id, b""))
    return JobTextView(job_id, encode_text(text), is_erased=False)


def _partition(block: PartitionBlock) -> PartitionInfo:
    return PartitionInfo(
        name=block.name,
        state=block.state,
        default=block.default,
        nodes=block.nodes,
        node_count=1,
        default_time_s=block.default_time_s,
        max_time_s=block.max_time_s,
        block=block,
    )


def _user_id(text: str) -> int | None:
    return USERS.get(text)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    log = Log()
    for part in (run_and_stopped, run_at_once, never_ran, array_and_later, requeued, stepped):
        part(log)
    path = tmp_path_factory.mktemp("sacct") / "model.db"
    model = Model.open(path, Cursor(1, 0, genesis_chain(GENESIS), 0))
    model.fold(log.entries())
    with model.engine.connect() as opened:
        yield opened
    model.close()


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone of the recording."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("case", SCENE["cases"], ids=lambda case: case["name"])
def test_sacct_shows_what_slurm_showed(
    case: dict[str, Any], connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody typed this at a real Slurm, and wants to see the same here."""
    command = case["command"]
    for name, value in SCENE["vars"].items():
        command = command.replace(f"${{{name}}}", value).replace(f"${name}", value)
    viewpoint = Viewpoint(
        uid=USERS[case["user"]],
        calendar=LocalCalendar(at("8:32:46")),
        user=NAMES.__getitem__,
        group=NAMES.__getitem__,
        user_id=_user_id,
        group_id=_user_id,
    )
    status, errors = 0, ""
    try:
        show(Recorded(case["env"], connection), shlex.split(command)[1:], viewpoint)
    except SlurmError as error:
        status, errors = error.status, "".join(f"{line}\n" for line in error.lines)
    assert capsys.readouterr().out == case["stdout"]
    assert (errors, status) == (case["stderr"], case["exit_code"])
