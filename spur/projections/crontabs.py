"""Crontabs: which jobs come again, and when. A job of an entry that ended is followed by the next.

A job that is cancelled ends its entry. Source: scrontab(1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.crontabs import CronEntry, CronEntryEnded, CronRepeated, CrontabSet
from spur.events.declare import Event
from spur.projections.apply import At, applies
from spur.projections.attachments import pack_attachments
from spur.projections.due import Due, falls_due
from spur.projections.jobs import next_job_id, take_job_id
from spur.projections.runrows import RunRow
from spur.projections.tables import Row
from spur.values.crontimes import next_time
from spur.values.states import Hold, JobState, Phase, Reason
from spur.values.zones import parse_zone

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["CrontabRow"]

_NS = 1_000_000_000


class CrontabRow(Row, frozen=True):
    """A user's crontab; its key is the uid."""

    zone: str
    entries: tuple[CronEntry, ...]
    attachments: bytes
    """Packed: its text."""


@applies(CrontabSet)
def apply_crontab_set(state: State, at: At, event: CrontabSet) -> None:
    """Keep it in place of the former."""
    packed = pack_attachments(at.attachments[place] for place in event.attachments)
    if packed or event.entries:
        state.crontabs.put(event.uid, CrontabRow(event.zone, event.entries, packed))
    elif event.uid in state.crontabs:
        state.crontabs.delete(event.uid)


@applies(CronRepeated)
def apply_cron_repeated(state: State, at: At, event: CronRepeated) -> None:
    """Add the next job of the entry, with its run 0."""
    row = state.crontabs[event.uid]
    take_job_id(state, event.job_id)
    former = state.jobs[event.from_id]
    spec = state.shared.spec(replace(former.spec, begin_ns=event.begin_ns))
    state.jobs.put(event.job_id, replace(former, submit_ns=at.time_ns, spec=spec))
    ended = state.runs[event.from_id]
    run = replace(
        ended,
        number=0,
        attempt=0,
        phase=Phase.PENDING,
        hold=Hold.NONE,
        reason=Reason.NONE,
        since_ns=at.time_ns,
        started=None,
        stop=None,
        end=None,
    )
    state.runs.put(event.job_id, run)
    entries = tuple(
        CronEntry(event.job_id, entry.time) if entry.job_id == event.from_id else entry
        for entry in row.entries
    )
    state.crontabs.put(event.uid, replace(row, entries=entries))


@applies(CronEntryEnded)
def apply_cron_entry_ended(state: State, at: At, event: CronEntryEnded) -> None:
    """Forget the entry; the text stays as it was written."""
    row = state.crontabs[event.uid]
    entries = tuple(entry for entry in row.entries if entry.job_id != event.job_id)
    state.crontabs.put(event.uid, replace(row, entries=entries))


@falls_due
def crons(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield the first entry whose job has ended: one at a time, since each takes the next id."""
    for uid in state.crontabs.sorted_keys():
        row = state.crontabs[uid]
        for entry in row.entries:
            run = state.runs.get(entry.job_id)
            if run is not None and run.end is None:
                continue
            # What ended is followed at once; `now_ns` may lie in the far future.
            time_ns = 0 if run is None or run.end is None else run.end.end_ns
            yield Due(time_ns, "runs", entry.job_id, (_following(state, uid, entry, run),))
            return


def _following(state: State, uid: int, entry: CronEntry, run: RunRow | None) -> Event:
    begin_s = None
    end = None if run is None or run.started is None else run.end
    # One that ends before it starts would only be followed by another such.
    if end is not None and end.state is not JobState.CANCELLED:
        zone = parse_zone(state.crontabs[uid].zone)
        begin_s = next_time(entry.time, zone, end.end_ns // _NS)
    if begin_s is None:
        return CronEntryEnded(uid, entry.job_id)
    return CronRepeated(uid, entry.job_id, next_job_id(state), begin_s * _NS)
