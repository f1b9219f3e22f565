"""The read model: each event once, in any batches, and the same when it is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import select, update

from spur.consensus.genesis import genesis_chain
from spur.events.declare import EVENTS
from spur.events.envelope import Entry
from spur.store.folds import FOLDS
from spur.store.model import Cursor, Model
from spur.store.records import job_record
from spur.store.story import TELLERS
from spur.store.tables import METADATA, cursor
from spur.testing.builders import ADMIN, GENESIS
from spur.testing.hall import SPEC, USER, Hall
from spur.values.arrays import TaskSet
from spur.values.errors import InvariantBroken
from spur.values.ids import JobId
from spur.values.states import Hold, JobState, NodeShareState, Reason
from spur.values.steps import BATCH_STEP, EXTERN_STEP
from spur.wire.history import JobRecord
from spur.wire.jobs import CancelJob, HoldJob, JobChanges, ReleaseJob, RequeueJob, UpdateJob

BEGINNING = Cursor(GENESIS.incarnation, 0, genesis_chain(GENESIS), 0)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    opened = Model.open(tmp_path / "model.db", BEGINNING)
    yield opened
    opened.close()


def contents(model: Model) -> dict[str, list[Any]]:
    """Return every row of every table."""
    with model.engine.connect() as connection:
        return {
            table.name: [
                tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))
            ]
            for table in METADATA.sorted_tables
        }


def record(model: Model, hall: Hall, job_id: JobId) -> JobRecord:
    """Return a job's record once the model has caught up."""
    model.fold(hall.cluster.entries)
    with model.engine.connect() as connection:
        found = job_record(connection, job_id)
    assert found is not None
    return found


def test_a_job_that_ran_is_recorded_with_its_script_and_its_place(model: Model) -> None:
    """A script runs on two nodes and fails with 3."""
    hall = Hall()
    job_id = hall.submit()
    shares = (hall.share("n2", cpus=2), hall.share("n1", cpus=1))
    hall.start(job_id, *shares)
    hall.report("n2", job_id, NodeShareState.LAUNCHED)
    hall.report("n2", job_id, NodeShareState.ENDED, exit_code=3)
    hall.report("n1", job_id, NodeShareState.ENDED)
    found = record(model, hall, job_id)
    view = hall.view(job_id)
    assert (found.spec, found.uid, found.array_id, found.tasks) == (SPEC, 1001, 0, None)
    [run] = found.runs
    assert (run.run, run.state, run.exit_code, run.signal) == (0, JobState.FAILED, 3, 0)
    assert (run.submit_ns, run.eligible_ns) == (view.submit_ns, view.submit_ns)
    assert (run.start_ns, run.end_ns) == (view.start_ns, view.end_ns)
    assert (run.partition, run.shares, run.time_limit_s) == ("gpu", shares, 3_600)
    script, extern = run.steps
    assert (script.step, script.state, script.exit_code) == (
        BATCH_STEP,
        JobState.FAILED,
        3,
    )
    assert (script.shares, script.tasks) == (shares[:1], 1)
    assert (extern.step, extern.state, extern.tasks) == (
        EXTERN_STEP,
        JobState.COMPLETED,
        2,
    )


def test_who_cancelled_a_job_is_known(model: Model) -> None:
    """One job is cancelled by its owner while it runs, another by root while it waits."""
    hall = Hall()
    running, waiting = hall.submit(), hall.submit()
    hall.start(running)
    hall.cluster.ask(CancelJob(running, None), USER)
    hall.cluster.ask(CancelJob(waiting, None), ADMIN)
    hall.report("n1", running, NodeShareState.ENDED, signal=15)
    [run] = record(model, hall, running).runs
    assert (run.state, run.killed_by) == (JobState.CANCELLED, 1001)
    assert (run.steps[0].state, run.steps[0].signal) == (JobState.CANCELLED, 15)
    [run] = record(model, hall, waiting).runs
    assert (run.state, run.killed_by, run.start_ns) == (JobState.CANCELLED, 0, 0)
    assert run.steps == ()


def test_the_cluster_is_no_person_who_ends_a_job(model: Model) -> None:
    """A job reaches its time limit."""
    hall = Hall()
    job_id = hall.submit(replace(SPEC, time_limit_s=60))
    hall.start(job_id)
    hall.tick(61)
    hall.report("n1", job_id, NodeShareState.ENDED, signal=15)
    [run] = record(model, hall, job_id).runs
    assert (run.state, run.killed_by) == (JobState.TIMEOUT, None)


def test_every_run_of_a_requeued_job_has_its_record(model: Model) -> None:
    """A running job is put back into the queue and runs a second time."""
    hall = Hall()
    job_id = hall.submit()
    hall.start(job_id)
    hall.cluster.ask(RequeueJob(job_id, None, hold=False), USER)
    hall.report("n1", job_id, NodeShareState.ENDED, signal=15)
    hall.start(job_id, hall.share("n3"))
    hall.end(job_id)
    first, second = record(model, hall, job_id).runs
    assert (first.state, first.shares[0].node) == (JobState.REQUEUED, "n1")
    assert (second.state, second.shares[0].node) == (JobState.COMPLETED, "n3")
    assert first.end_ns <= second.submit_ns <= second.start_ns
    assert first.index < second.index


def test_tasks_of_an_array_have_records_of_their_own(model: Model) -> None:
    """Of an array of three the second task runs; the others wait in one row."""
    hall = Hall()
    array_id = hall.submit(tasks=TaskSet.of((1, 2, 3)), throttle=2)
    task_id = hall.start(array_id, task=2)
    hall.end(task_id)
    task = record(model, hall, task_id)
    assert (task.array_id, task.tasks) == (array_id, TaskSet.single(2))
    rest = record(model, hall, array_id)
    assert rest.tasks is not None
    assert list(rest.tasks) == [1, 3]
    assert (rest.throttle, rest.runs[0].state) == (2, JobState.PENDING)
    assert task.runs[0].index > rest.runs[0].index


def test_a_held_job_is_not_eligible_until_it_is_released(model: Model) -> None:
    """Submitted with --hold, released an hour later, then held again."""
    hall = Hall()
    job_id = hall.submit(hold=True)
    before = record(model, hall, job_id)
    assert (before.runs[0].eligible_ns, before.runs[0].reason) == (0, Reason.HELD_BY_USER)
    hall.cluster.pass_seconds(3_600)
    hall.cluster.ask(ReleaseJob(job_id, None), USER)
    released = record(model, hall, job_id).runs[0]
    assert released.eligible_ns >= released.submit_ns + 3_600 * 10**9
    assert released.reason is Reason.NONE
    hall.cluster.ask(HoldJob(job_id, None, Hold.USER), USER)
    assert record(model, hall, job_id).runs[0].eligible_ns == released.eligible_ns


def test_changes_of_a_job_are_in_its_record(model: Model) -> None:
    """A user renames a running job and root gives it more time."""
    hall = Hall()
    job_id = hall.submit()
    hall.start(job_id)
    hall.cluster.ask(UpdateJob(job_id, None, JobChanges(name="other", time_limit_s=7_200)), ADMIN)
    found = record(model, hall, job_id)
    assert (found.spec.name, found.runs[0].time_limit_s) == ("other", 7_200)


def test_batches_of_any_size_make_the_same_rows(model: Model, tmp_path: Path) -> None:
    """The projector falls behind and catches up in one go; another took every entry alone."""
    hall = Hall()
    for _ in range(3):
        job_id = hall.submit()
        hall.start(job_id)
        hall.end(job_id)
    model.fold(hall.cluster.entries)
    other = Model.open(tmp_path / "other.db", BEGINNING)
    for entry in hall.cluster.entries:
        other.fold([entry])
    assert contents(other) == contents(model)
    other.close()


def test_entries_behind_the_cursor_are_passed_over(model: Model) -> None:
    """The front sends again what the projector has already written."""
    hall = Hall()
    job_id = hall.submit()
    model.fold(hall.cluster.entries)
    before = contents(model)
    model.fold(hall.cluster.entries[3:])
    assert contents(model) == before
    assert model.cursor.index == hall.state.index
    assert model.cursor.chain == hall.state.chain
    assert record(model, hall, job_id).uid == 1001


def test_a_gap_is_refused_and_nothing_is_written(model: Model) -> None:
    """An entry is missing from what the front sends."""
    hall = Hall()
    hall.submit()
    entries = hall.cluster.entries
    before = contents(model)
    with pytest.raises(InvariantBroken, match="was given"):
        model.fold([*entries[:2], *entries[3:]])
    assert contents(model) == before
    model.fold(entries)
    assert model.cursor.index == entries[-1].index


def test_a_model_is_found_again_where_it_was(tmp_path: Path) -> None:
    """The projector is killed and started again."""
    hall = Hall()
    model = Model.open(tmp_path / "model.db", BEGINNING)
    model.fold(hall.cluster.entries)
    at = model.cursor
    model.close()
    again = Model.open(tmp_path / "model.db", BEGINNING)
    assert again.cursor == at
    again.close()


@pytest.mark.parametrize("harm", ["other arms", "damaged", "newer release"])
def test_a_model_that_can_not_be_used_is_made_anew(tmp_path: Path, harm: str) -> None:
    """A release folds in another way, the file is damaged, or a newer release wrote it."""
    path = tmp_path / "model.db"
    hall = Hall()
    entries: list[Entry] = hall.cluster.entries
    model = Model.open(path, BEGINNING)
    model.fold(entries)
    wanted = contents(model)
    with model.engine.begin() as connection:
        if harm == "other arms":
            connection.execute(update(cursor).values(model_version=0))
        elif harm == "newer release":
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    model.close()
    if harm == "damaged":
        path.write_bytes(b"\x00spoiled" * 1_000)
    again = Model.open(path, BEGINNING)
    assert again.cursor == BEGINNING
    again.fold(entries)
    assert contents(again) == wanted
    again.close()


def test_the_file_is_private(tmp_path: Path) -> None:
    """Users of the controller's machine look for others' jobs in its directory."""
    model = Model.open(tmp_path / "model.db", BEGINNING)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    model.close()


PASSED_OVER = (
    "cluster.",
    "crontab.entry-ended",
    "crontab.set",
    "entity.",
    "host.",
    "node.",
    "partition.",
    "run.notified",
    "run.report-voided",
    "run.signalled",
    "step.guest-admitted",
    "step.reported",
    "step.signalled",
    "token.",
)
"""Events that say nothing of a job's record."""


def test_every_event_of_jobs_and_runs_is_folded() -> None:
    """Someone adds an event and forgets the history of jobs."""
    folded = {row.name for row in EVENTS.values() if row.cls in FOLDS}
    assert sorted(n for n in EVENTS if n not in folded and not n.startswith(PASSED_OVER)) == []
    assert [name for name in folded if name.startswith(PASSED_OVER)] == []


def test_every_event_with_a_job_can_be_told() -> None:
    """Someone adds an event and forgets the stories of jobs."""
    of_jobs = [
        row for row in EVENTS.values() if {"job_id", "array_id"} & {*row.cls.__struct_fields__}
    ]
    assert sorted(row.name for row in of_jobs if row.cls not in TELLERS) == []
