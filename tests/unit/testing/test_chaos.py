"""The ordeal's own judgement: a plan is drawn alike; what must be found wrong is found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from spur.testing.chaos.clients import waiting_job
from spur.testing.chaos.plan import AGENTS, LEADER, Kind, PlannedJob, Task, draw
from spur.testing.chaos.records import Ends, judge_jobs, judge_records
from spur.testing.chaos.scripts import Notes
from spur.testing.chaos.stage import Stage
from spur.testing.hall import SPEC
from spur.testing.live.hosts import Hosts
from spur.testing.live.load import Wrong
from spur.testing.simulation.linearizability import Operation, is_linearizable
from spur.testing.small_disk import SmallDisk
from spur.values.config import RequeuePolicy
from spur.values.ids import JobId, PartitionName
from spur.values.states import Hold, JobState, Reason
from spur.wire.history import JobRecord, RunRecord

CONFIRMED, SLURM = RequeuePolicy.CONFIRMED, RequeuePolicy.SLURM

JOB = PlannedJob(
    at_s=0.0,
    task=Task.PLAIN,
    name="job-1",
    runs_s=1.0,
    members=1,
    requeue=True,
    after="",
    then_s=0.0,
)

WHOLE = (("start", 0), ("tick", 0), ("end", 0))


def run_record(run: int = 0, state: JobState = JobState.COMPLETED, **fields: object) -> RunRecord:
    made = RunRecord(
        run=run,
        index=10,
        state=state,
        reason=Reason.NONE,
        submit_ns=1,
        eligible_ns=1,
        start_ns=2,
        end_ns=3,
        suspended_ns=0,
        time_limit_s=60,
        partition=PartitionName("gpu"),
        shares=(),
        exit_code=0,
        signal=0,
        killed_by=None,
        unfenced=False,
        steps=(),
    )
    return replace(made, **fields)


def record(*runs: RunRecord) -> JobRecord:
    spec = replace(SPEC, name="job-1")
    number = JobId(1)
    none = JobId(0)
    return JobRecord(number, none, None, 0, none, 0, 0, 0, spec, Hold.NONE, None, runs)


def ends(*runs: RunRecord) -> Ends:
    """Return a log that says the same as these records."""
    return Ends(
        Counter((1, run.run) for run in runs),
        {(1, run.run): (run.exit_code, run.signal, run.unfenced) for run in runs},
        Counter((1, run.run) for run in runs),
        0,
    )


def judged(
    notes: tuple[tuple[str, int], ...], *runs: RunRecord, policy: RequeuePolicy = CONFIRMED
) -> tuple[int, int]:
    """Judge job-1 by what it wrote down and what is recorded of it."""
    written = {1: Notes(notes)} if notes else {}
    return judge_jobs([JOB], {"job-1": JobId(1)}, [record(*runs)], written, policy)


def test_plan_is_the_same_for_a_seed() -> None:
    """Somebody repeats a run: the same strikes at the same times, the same jobs."""
    plan = draw(7, jobs=100, seconds=20.0)
    assert plan == draw(7, jobs=100, seconds=20.0)
    assert plan != draw(8, jobs=100, seconds=20.0)
    assert sum(job.members for job in plan.jobs) == 100
    assert all(0 <= strike.target <= max(3, AGENTS) for strike in plan.strikes)
    assert all(strike.at_s < 20.0 for strike in plan.strikes)
    names = [job.name for job in plan.jobs]
    assert all(job.after in names[: names.index(job.name)] for job in plan.jobs if job.after)


def test_every_kind_of_strike_and_job_is_drawn() -> None:
    """Fifty seeds leave nothing out, nor either policy, nor the leader as a target."""
    plans = [draw(seed, jobs=100, seconds=20.0) for seed in range(1, 51)]
    assert {strike.kind for plan in plans for strike in plan.strikes} == set(Kind)
    assert {job.task for plan in plans for job in plan.jobs} == set(Task)
    assert {plan.policy for plan in plans} == set(RequeuePolicy)
    assert any(strike.target == LEADER for plan in plans for strike in plan.strikes)


def test_what_is_whole_is_passed() -> None:
    """A job ran once and is recorded so; another was put back after its node was lost."""
    assert judged(WHOLE, run_record()) == (1, 0)
    lost = run_record(0, JobState.NODE_FAIL)
    again = (("start", 0), ("start", 1), ("end", 1))
    assert judged(again, lost, run_record(1)) == (2, 0)
    overlapping = (("start", 0), ("start", 1), ("tick", 0), ("end", 1))
    unfenced = run_record(0, JobState.NODE_FAIL, unfenced=True)
    assert judged(overlapping, unfenced, run_record(1), policy=SLURM) == (2, 1)
    runs = (unfenced, run_record(1))
    assert judge_records([record(*runs)], ends(*runs)) == 2


@pytest.mark.parametrize(
    ("notes", "runs", "policy", "sentence"),
    [
        ((("start", 0), *WHOLE), (run_record(),), CONFIRMED, "began 2 times"),
        ((), (run_record(),), CONFIRMED, "wrote 0 start and 0 end lines"),
        ((("start", 0),), (run_record(),), CONFIRMED, "wrote 1 start and 0 end lines"),
        (
            (("start", 0), ("start", 1), ("tick", 0), ("end", 1)),
            (run_record(0, JobState.NODE_FAIL), run_record(1)),
            CONFIRMED,
            "lived on beside a later run",
        ),
        (
            (("start", 0), ("start", 1), ("tick", 0), ("end", 1)),
            (run_record(0, JobState.NODE_FAIL), run_record(1)),
            SLURM,
            "is recorded as fenced",
        ),
        (
            (*WHOLE, ("start", 1)),
            (run_record(),),
            CONFIRMED,
            "run 1\\) ran and has no record",
        ),
        (
            WHOLE,
            (run_record(0, JobState.CANCELLED, start_ns=0),),
            CONFIRMED,
            "recorded as never started",
        ),
    ],
)
def test_what_never_may_be_of_a_job_is_found(
    notes: tuple[tuple[str, int], ...],
    runs: tuple[RunRecord, ...],
    policy: RequeuePolicy,
    sentence: str,
) -> None:
    """A job's own lines contradict its record."""
    with pytest.raises(Wrong, match=sentence):
        judged(notes, *runs, policy=policy)


def test_lost_jobs_are_found() -> None:
    """A job was accepted and is nowhere; an array has too few tasks; a stranger ran."""
    with pytest.raises(Wrong, match="accepted with 1 jobs, and 0 are there"):
        judge_jobs([JOB], {"job-1": JobId(9)}, [record(run_record())], {}, CONFIRMED)
    with pytest.raises(Wrong, match="has no outcome"):
        judge_jobs([JOB], {}, [], {}, CONFIRMED)
    with pytest.raises(Wrong, match="job 2 ran and has no record"):
        judge_jobs([], {}, [], {2: Notes(WHOLE)}, CONFIRMED)


def test_records_that_differ_from_the_log_are_found() -> None:
    """A record is missing, there twice, open, without a number, or says something else."""
    run = run_record()
    log = ends(run)
    for records, sentence in (
        ([], "records and log differ in"),
        ([record(run), record(run)], "2 records of"),
        ([record(run_record(end_ns=0))], "is recorded as COMPLETED"),
        ([record(run_record(1))], "has a record of run 1 as its 0th"),
        ([record(run_record(exit_code=1))], "the log has"),
    ):
        with pytest.raises(Wrong, match=sentence):
            judge_records(records, log)
    twice = Ends(Counter({(1, 0): 2}), log.ends, log.started, 0)
    with pytest.raises(Wrong, match="2 ends of"):
        judge_records([record(run)], twice)


def test_history_of_a_waiting_job() -> None:
    """Its submission was acknowledged, and a follower does not show it: that can't be."""

    def history(*results: object) -> list[Operation]:
        actions = ("submit", ("nice", 5), None, "cancel", ("hold", 1), None)
        return [
            Operation(float(at), at + 0.5, "waiting-1", action, result)
            for at, (action, result) in enumerate(zip(actions, results, strict=False))
        ]

    free = Hold.NONE.value
    good = history("done", "done", (5, free, False), "done", "refused", (5, free, True))
    assert is_linearizable(good, None, waiting_job)
    assert not is_linearizable(history("done", "done", None), None, waiting_job)
    assert not is_linearizable(history("done", "done", (0, free, False)), None, waiting_job)
    assert not is_linearizable(history("done", "done", "twice"), None, waiting_job)


def test_small_disks_of_a_run_that_failed_are_kept(tmp_path: Path) -> None:
    """They are in memory and end with the run; somebody wants to know what a controller said."""
    stage = Stage(tmp_path, draw(1, jobs=1, seconds=1.0), Hosts(0))
    stage.disk, stage.agent_disk = (SmallDisk(tmp_path / name) for name in ("disk", "agent-disk"))
    log = stage.disk.directory / "c1" / "log"
    for directory in (log.parent, stage.agent_disk.directory):
        directory.mkdir(parents=True)
    log.write_text("it said this\n")
    stage.keep_disks(None)
    assert not (tmp_path / "disk-kept").exists()
    stage.keep_disks(Wrong)
    assert [path.name for path in (tmp_path / "disk-kept").iterdir()] == ["c1"]
    assert (tmp_path / "disk-kept" / "c1" / "log").read_text() == "it said this\n"
    assert (tmp_path / "agent-disk-kept").is_dir()
