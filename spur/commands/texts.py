"""Queries for what was handed in with a job; the shell reads the attachments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, may_act_for
from spur.events.envelope import AttachmentRef
from spur.projections.attachments import AMENDED_NAMES, attachments_of, unpack_attachments
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.jobspec import amended, decode_text, encode_text
from spur.wire.declare import Done
from spur.wire.texts import JobScript, JobTexts, JobTextView, ReadScript, ReadTexts

__all__ = ["decide_read_script", "decide_read_texts"]

TEXTS_MAX = 1_000
"""Jobs that one request may ask the texts of."""

_TEXTS = ("text", *AMENDED_NAMES)

TEXT_BYTES_MAX = 8 << 20
"""Bytes of texts after which an answer ends; one text may be longer alone."""


def _attachments(state: State, job_id: JobId, names: tuple[str, ...]) -> list[AttachmentRef]:
    """Return what a job, or its array, carries under these names."""
    packed = attachments_of(state, job_id)
    return [reference for reference in unpack_attachments(packed) if reference.name in names]


@command(ReadTexts, permission=Permission.USER, reads=True)
def decide_read_texts(state: State, request: ReadTexts, context: Context) -> Decision | Rejection:
    """Show the texts of the caller's own jobs, or of anyone's to an operator."""
    if len(request.job_ids) > TEXTS_MAX:
        return Rejection(
            "limit-exceeded", f"{len(request.job_ids)} jobs are named; it takes at most {TEXTS_MAX}"
        )
    shown: list[tuple[JobId, list[AttachmentRef]]] = []
    size = seen = 0
    for job_id in request.job_ids:
        job = state.jobs.get(job_id)
        if job is not None and may_act_for(state, context.actor, job.uid):
            references = _attachments(state, job_id, _TEXTS)
            size += sum(reference.size for reference in references)
            if shown and size > TEXT_BYTES_MAX:
                break
            shown.append((job_id, references))
        seen += 1

    def finish(contents: Sequence[bytes | None]) -> JobTexts:
        left = iter(contents)
        texts = []
        for job_id, references in shown:
            found = {reference.name: next(left) for reference in references}
            texts.append(_view(job_id, found))
        return JobTexts(tuple(texts), seen)

    digests = tuple(reference.digest for _, references in shown for reference in references)
    return Decision((), Done(), blobs=digests, finish=finish)


def _view(job_id: JobId, found: Mapping[str, bytes | None]) -> JobTextView:
    """Return a job's text with what was amended later; one part that is erased hides it all."""
    text = found.get("text", b"")
    changes = {name: content for name, content in found.items() if content is not None}
    if text is None or len(changes) < len(found):
        return JobTextView(job_id, b"", is_erased=True)
    if text and not changes.keys().isdisjoint(AMENDED_NAMES):
        text = encode_text(amended(decode_text(text), changes))
    return JobTextView(job_id, text, is_erased=False)


@command(ReadScript, permission=Permission.USER, reads=True)
def decide_read_script(state: State, request: ReadScript, context: Context) -> Decision | Rejection:
    """Show the script of the caller's own job, or of anyone's to an operator."""
    job_id = request.job_id
    job = state.jobs.get(job_id)
    if job is None:
        return Rejection("unknown-job", f"there is no job {job_id}")
    if not may_act_for(state, context.actor, job.uid):
        return Rejection("not-permitted", f"job {job_id} belongs to uid {job.uid}")
    references = _attachments(state, job_id, ("script",))
    if not references:
        return Rejection("wrong-state", f"job {job_id} has no script")

    def finish(contents: Sequence[bytes | None]) -> JobScript:
        return JobScript(contents[0] or b"", is_erased=contents[0] is None)

    return Decision((), Done(), blobs=(references[0].digest,), finish=finish)
