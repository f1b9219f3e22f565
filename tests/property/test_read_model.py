"""The read model over random lives of jobs.

Made anew it is the same, and it says what the state says of every job that the state still knows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from spur.consensus.genesis import genesis_chain
from spur.projections.runrows import RunRow
from spur.store.model import Cursor, Model
from spur.store.records import job_record, record_page
from spur.store.tables import METADATA
from spur.testing.builders import GENESIS, SMALL_CONFIG
from spur.testing.hall import Hall
from spur.testing.lifecycles import Lifecycles
from spur.values.ids import JobId
from spur.values.states import Hold, JobState, Phase
from spur.wire.history import JobRecord, QueryRecords, RecordFilter, decode_job_record

BEGINNING = Cursor(GENESIS.incarnation, 0, genesis_chain(GENESIS), 0)

STEPS = 400

FORGETFUL = SMALL_CONFIG.replace('name = "hall"', 'name = "hall"\nmin_job_age_s = 60', 1)
"""Ended jobs leave the state after a minute."""


@contextmanager
def opened(path: Path) -> Iterator[Model]:
    """Open a model for a while."""
    model = Model.open(path, BEGINNING)
    yield model
    model.close()


def contents(model: Model) -> dict[str, list[Any]]:
    """Return every row of every table."""
    with model.engine.connect() as connection:
        return {
            table.name: [
                tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))
            ]
            for table in METADATA.sorted_tables
        }


@pytest.mark.parametrize("seed", range(4))
def test_a_model_made_anew_is_the_one_that_was_kept(tmp_path: Path, seed: int) -> None:
    """One model follows in batches and is closed now and then; another takes the log at once."""
    rng = random.Random(seed)
    hall = Hall(FORGETFUL, checked=False)
    lives = Lifecycles(hall, seed=seed)
    path = tmp_path / "kept.db"
    for _ in range(4):
        with opened(path) as kept:
            for _ in range(STEPS // 20):
                lives.run(rng.randrange(1, 10))
                behind = max(0, kept.cursor.index - rng.randrange(3))
                kept.fold(hall.cluster.entries[behind:])
    with opened(path) as kept, opened(tmp_path / "anew.db") as anew:
        anew.fold(hall.cluster.entries)
        assert contents(anew) == contents(kept)


def judged(hall: Hall, found: JobRecord, job_id: JobId) -> None:
    """Compare a record with the rows of the state."""
    job, row, view = hall.state.jobs[job_id], hall.state.runs[job_id], hall.view(job_id)
    assert (found.spec, found.uid, found.gid) == (job.spec, job.uid, job.gid)
    assert (found.array_id, found.tasks) == (job.array_id, job.tasks)
    assert (found.priority, found.hold) == (row.priority, row.hold)
    past = hall.state.past_runs.get(job_id)
    assert [run.run for run in found.runs] == list(range(row.number + 1))
    for record, former in zip(found.runs, () if past is None else past.runs, strict=False):
        assert (record.state, record.end_ns) == (former.end.state, former.end.end_ns)
        assert (record.exit_code, record.signal) == (former.end.exit_code, former.end.signal)
        assert bool(record.shares) == (former.started is not None)
    newest = found.runs[-1]
    assert (newest.state, newest.start_ns, newest.end_ns) == (
        view.state,
        view.start_ns,
        view.end_ns,
    )
    assert (newest.partition, newest.shares) == (view.partition, view.shares)
    if not newest.eligible_ns:
        waits_for_others = job.spec.dependency is not None
        assert row.hold is not Hold.NONE or newest.end_ns or waits_for_others
    ended(newest.state, row)


def ended(state: JobState, row: RunRow) -> None:
    """An ended run is recorded as its row says."""
    if row.phase is Phase.ENDED and row.end is not None:
        assert state is row.end.state


@pytest.mark.parametrize("seed", range(4, 8))
def test_records_say_what_the_state_says(tmp_path: Path, seed: int) -> None:
    """Someone compares sacct with squeue for every job that squeue still shows."""
    hall = Hall(FORGETFUL, checked=False)
    lives = Lifecycles(hall, seed=seed)
    with opened(tmp_path / "model.db") as model:
        for _ in range(4):
            lives.run(STEPS // 4)
            model.fold(hall.cluster.entries)
            with model.engine.connect() as connection:
                for job_id in hall.state.jobs.sorted_keys():
                    found = job_record(connection, job_id)
                    assert found is not None
                    judged(hall, found, job_id)


@pytest.mark.parametrize("seed", range(8, 10))
def test_pages_hold_every_job_once(tmp_path: Path, seed: int) -> None:
    """A long answer comes in slices of a few jobs."""
    hall = Hall(FORGETFUL, checked=False)
    Lifecycles(hall, seed=seed).run(STEPS)
    with opened(tmp_path / "model.db") as model:
        model.fold(hall.cluster.entries)
        with model.engine.connect() as connection:
            found: list[JobId] = []
            after: JobId | None = JobId(0)
            while after is not None:
                page = record_page(connection, QueryRecords(RecordFilter(), after, 7))
                found += [decode_job_record(row).job_id for row in page.rows]
                after = page.next
    assert found == sorted(set(found))
    assert len(found) == hall.state.counters["job-id"].value
