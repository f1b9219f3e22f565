"""A cluster that only thinks: the state that a site's files make, asked what it would take."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from spur.commands import SUBJECTS
from spur.commands.decide import Context, Decision, decide
from spur.events.codec import encode_envelope
from spur.events.declare import NEWEST_CLUSTER_VERSION
from spur.events.envelope import Actor, Entry, EntryKind, RequestMark
from spur.projections.apply import apply
from spur.projections.state import State, new_state
from spur.slurm.submission import Submission
from spur.slurm.wording import sentence_of
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.values.jobspec import encode_text
from spur.wire.cluster import Reconfigure
from spur.wire.declare import Attachment
from spur.wire.jobs import SubmitJob

__all__ = ["judge_of"]

_ENFORCED = re.compile(r"^\s*AccountingStorageEnforce\s*=.*$", re.IGNORECASE | re.MULTILINE)

_SITE = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="scheduler")
_USER = replace(_SITE, uid=1000, gid=1000)


def judge_of(files: Sequence[ConfigFile], now_ns: int) -> Callable[[Submission], str] | None:
    """Return what says why a cluster of these files would not take a submission.

    Accounts and associations are not in the files, so they are not asked for. None when the files
    are no configuration.
    """
    state = _state_of(files, now_ns)
    if state is None:
        return None

    def judge(submission: Submission) -> str:
        spec = replace(submission.spec, dependency=None)
        array = submission.array
        request = SubmitJob(
            spec=spec,
            tasks=None if array is None else array.tasks,
            throttle=0 if array is None else array.throttle,
            hold=submission.hold,
            priority=submission.priority,
            attachments=(
                Attachment("script", b"#!/bin/sh\n"),
                Attachment("environment", b""),
                Attachment("text", encode_text(submission.text)),
            ),
        )
        decided = decide(state, request, _context(state, now_ns, _USER))
        return sentence_of(decided) if isinstance(decided, Rejection) else ""

    return judge


def _context(state: State, now_ns: int, actor: Actor) -> Context:
    return Context(now_ns=now_ns, index=state.index + 1, actor=actor)


def _state_of(files: Sequence[ConfigFile], now_ns: int) -> State | None:
    """Return the state of a cluster that was just given these files."""
    state = new_state(b"", cluster_id=bytes(16), incarnation=0)
    open_files = tuple(ConfigFile(file.name, _ENFORCED.sub("", file.text)) for file in files)
    if not SUBJECTS:
        return None
    decided = decide(state, Reconfigure(open_files), _context(state, now_ns, _SITE))
    if not isinstance(decided, Decision):
        return None
    body = encode_envelope(
        time_ns=now_ns,
        command="cluster.reconfigure",
        request=RequestMark("uid:0", b"", 0, bytes(32), b"", 1, 1),
        actor=_SITE,
        events=decided.events,
        attachments=(),
        cluster_version=NEWEST_CLUSTER_VERSION,
    )
    apply(state, Entry(state.index + 1, 1, EntryKind.EVENTS, body, ()))
    return state
