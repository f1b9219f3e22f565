"""Commands about crontabs."""

from __future__ import annotations

from msgspec.structs import replace

from spur.commands.admission import placed_spec, refuse_submission
from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, Role, role_of
from spur.events.crontabs import CronEntry, CrontabSet
from spur.events.declare import Event
from spur.events.jobs import JobSubmitted
from spur.events.runs import RunEnded
from spur.projections.attachments import unpack_attachments
from spur.projections.cluster import parameter_of
from spur.projections.jobs import next_job_id
from spur.projections.state import State
from spur.values.crontimes import next_time
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import Hold, JobState, Phase, Reason
from spur.values.zones import Zone, parse_zone
from spur.wire.crontabs import CronAsk, CrontabText, ReadCrontab, SetCrontab
from spur.wire.declare import Done
from spur.wire.jobs import SubmitJob

__all__ = ["ENTRIES_MAX"]

ENTRIES_MAX = 200
"""Entries of one crontab: each is a job, and all are submitted in one entry of the log."""

TEXT_BYTES_MAX = 64 << 10

_NS = 1_000_000_000


@command(SetCrontab, permission=Permission.USER, needs_room=True)
def decide_set_crontab(state: State, request: SetCrontab, context: Context) -> Decision | Rejection:
    """Submit a job for each entry, each to begin when it is due."""
    uid = _whose(state, request.uid, context)
    if isinstance(uid, Rejection):
        return uid
    if 1 not in state.config or "enable" not in _parameters(state):
        return Rejection("cron-disabled", "this site has no crontabs; nothing was changed")
    if uid != context.actor.uid and request.entries:
        return Rejection(
            "not-permitted",
            "another's crontab can be shown and removed alone; nothing was changed",
        )
    zone = _zone(request)
    if isinstance(zone, Rejection):
        return zone
    events: list[Event] = list(_cancelled(state, uid, context))
    entries: list[CronEntry] = []
    job_id = next_job_id(state)
    for entry in request.entries:
        event = _submitted(state, entry, request, context, job_id, uid, zone)
        if isinstance(event, Rejection):
            return event
        events.append(event)
        entries.append(CronEntry(job_id, entry.time))
        job_id = JobId(job_id + 1)
    places = (0,) if request.attachments else ()
    if places or entries or uid in state.crontabs:
        events.append(CrontabSet(uid, request.zone, tuple(entries), places))
    return Decision(tuple(events), Done())


def _whose(state: State, uid: int | None, context: Context) -> int | Rejection:
    if uid is None or uid == context.actor.uid:
        return context.actor.uid
    if role_of(state, context.actor) < Role.ADMINISTRATOR:
        return Rejection(
            "not-permitted", "another's crontab takes an administrator; nothing was changed"
        )
    return uid


def _parameters(state: State) -> list[str]:
    return parameter_of(state, "ScronParameters").lower().split(",")


def _zone(request: SetCrontab) -> Zone | Rejection:
    """Return the rule for local time of a request that makes sense, or why it makes none."""
    if len(request.entries) > ENTRIES_MAX:
        return Rejection(
            "limit-exceeded",
            f"crontab-entries-max is {ENTRIES_MAX}, and this needs {len(request.entries)}; "
            "nothing was changed",
        )
    first = request.attachments[0] if request.attachments else None
    if first is not None and (first.name != "crontab" or len(first.content) > TEXT_BYTES_MAX):
        return Rejection("invalid-value", "that is no text of a crontab; nothing was changed")
    try:
        return parse_zone(request.zone)
    except ValueError as error:
        return Rejection("invalid-value", f"{error}; nothing was changed")


def _cancelled(state: State, uid: int, context: Context) -> list[Event]:
    """Return the ends of the former crontab's jobs that wait."""
    row = state.crontabs.get(uid)
    found: list[Event] = []
    for entry in () if row is None else row.entries:
        run = state.runs.get(entry.job_id)
        if run is not None and run.phase is Phase.PENDING:
            found.append(
                RunEnded(
                    entry.job_id, run.number, JobState.CANCELLED, Reason.NONE, 0, 0,
                    context.now_ns, False,
                )
            )  # fmt: skip
    return found


def _submitted(
    state: State,
    entry: CronAsk,
    request: SetCrontab,
    context: Context,
    job_id: JobId,
    uid: int,
    zone: Zone,
) -> JobSubmitted | Rejection:
    places = entry.attachments
    if any(not 0 < place < len(request.attachments) for place in places):
        return Rejection("invalid-value", "an entry has no such attachment; nothing was changed")
    begin_s = next_time(entry.time, zone, context.now_ns // _NS)
    if begin_s is None:
        return Rejection("invalid-value", "an entry is never due; nothing was changed")
    wanted = replace(entry.spec, begin_ns=begin_s * _NS, requeue=False)
    spec = placed_spec(state, wanted, context)
    if isinstance(spec, Rejection):
        return spec
    attachments = tuple(request.attachments[place] for place in places)
    submit = SubmitJob(spec, None, 0, hold=False, priority=None, attachments=attachments)
    refused = refuse_submission(state, submit, context)
    if refused is not None:
        return refused
    gid = context.actor.gid
    return JobSubmitted(job_id, uid, gid, spec, None, 0, JobId(0), 0, 0, Hold.NONE, None, places)


@command(ReadCrontab, permission=Permission.USER, reads=True)
def decide_read_crontab(
    state: State, request: ReadCrontab, context: Context
) -> Decision | Rejection:
    """Show a crontab as it was handed in."""
    uid = _whose(state, request.uid, context)
    if isinstance(uid, Rejection):
        return uid
    row = state.crontabs.get(uid)
    if row is None:
        return Decision((), CrontabText(b"", is_there=False))
    references = unpack_attachments(row.attachments)
    return Decision(
        (),
        CrontabText(b"", is_there=True),
        blobs=tuple(reference.digest for reference in references),
        finish=lambda contents: CrontabText(
            b"".join(content or b"" for content in contents), is_there=True
        ),
    )
