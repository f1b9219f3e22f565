"""Queries for what was handed in with a job; the shell reads the attachments."""

from __future__ import annotations

from collections.abc import Sequence

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, may_act_for
from spur.events.envelope import AttachmentRef
from spur.projections.attachments import unpack_attachments
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.wire.declare import Done
from spur.wire.texts import JobScript, JobTexts, JobTextView, ReadScript, ReadTexts

__all__ = ["decide_read_script", "decide_read_texts"]

TEXTS_MAX = 1_000
"""Jobs that one request may ask the texts of."""

TEXT_BYTES_MAX = 8 << 20
"""Bytes of texts after which an answer ends; one text may be longer alone."""


def _attachment(state: State, job_id: JobId, name: str) -> AttachmentRef | None:
    """Return what a job, or its array, was handed in with under this name."""
    job = state.jobs[job_id]
    holder = state.arrays[job.array_id] if job.array_id else job
    return next((ref for ref in unpack_attachments(holder.attachments) if ref.name == name), None)


@command(ReadTexts, permission=Permission.USER, reads=True)
def decide_read_texts(state: State, request: ReadTexts, context: Context) -> Decision | Rejection:
    """Show the texts of the caller's own jobs, or of anyone's to an operator."""
    if len(request.job_ids) > TEXTS_MAX:
        return Rejection(
            "limit-exceeded", f"{len(request.job_ids)} jobs are named; it takes at most {TEXTS_MAX}"
        )
    shown: list[tuple[JobId, AttachmentRef | None]] = []
    size = seen = 0
    for job_id in request.job_ids:
        job = state.jobs.get(job_id)
        if job is not None and may_act_for(state, context.actor, job.uid):
            reference = _attachment(state, job_id, "text")
            size += 0 if reference is None else reference.size
            if shown and size > TEXT_BYTES_MAX:
                break
            shown.append((job_id, reference))
        seen += 1

    def finish(contents: Sequence[bytes | None]) -> JobTexts:
        left = iter(contents)
        texts = []
        for job_id, reference in shown:
            content = b"" if reference is None else next(left)
            texts.append(JobTextView(job_id, content or b"", is_erased=content is None))
        return JobTexts(tuple(texts), seen)

    digests = tuple(reference.digest for _, reference in shown if reference is not None)
    return Decision((), Done(), blobs=digests, finish=finish)


@command(ReadScript, permission=Permission.USER, reads=True)
def decide_read_script(state: State, request: ReadScript, context: Context) -> Decision | Rejection:
    """Show the script of the caller's own job, or of anyone's to an operator."""
    job_id = request.job_id
    job = state.jobs.get(job_id)
    if job is None:
        return Rejection("unknown-job", f"there is no job {job_id}")
    if not may_act_for(state, context.actor, job.uid):
        return Rejection("not-permitted", f"job {job_id} belongs to uid {job.uid}")
    reference = _attachment(state, job_id, "script")
    if reference is None:
        return Rejection("wrong-state", f"job {job_id} has no script")

    def finish(contents: Sequence[bytes | None]) -> JobScript:
        return JobScript(contents[0] or b"", is_erased=contents[0] is None)

    return Decision((), Done(), blobs=(reference.digest,), finish=finish)
