"""Requests for what was handed in with a job: text for people, and its script.

They are the owner's, and operators'. What the log says was erased is not there any more.
"""

from __future__ import annotations

from spur.values.ids import JobId
from spur.wire.declare import Answer, Request, answer, request
from spur.wire.jobs import Part

__all__ = ["JobScript", "JobTextView", "JobTexts", "ReadScript", "ReadTexts"]


@request
class ReadTexts(Request, frozen=True, tag="jobs.read-texts"):
    """Read the texts of jobs: paths, arguments, comment; answered with `JobTexts`."""

    job_ids: tuple[JobId, ...]
    """At most 1000."""


class JobTextView(Part, frozen=True):
    """The text of one job."""

    job_id: JobId
    content: bytes
    """An encoded `JobText`; empty when none was handed in, or it is erased."""
    is_erased: bool
    """People are shown "(erased)". So it is for a moment on a replica that lacks it yet."""


@answer
class JobTexts(Answer, frozen=True, tag="jobs.texts"):
    """Texts of those of the jobs that are there and that the caller may read, in their order."""

    texts: tuple[JobTextView, ...]
    seen: int
    """How many of the ids were looked at, from the first; the rest is to be asked for anew."""


@request
class ReadScript(Request, frozen=True, tag="job.read-script"):
    """Read the script of a batch job; answered with `JobScript`."""

    job_id: JobId


@answer
class JobScript(Answer, frozen=True, tag="job.script"):
    """A script as it was handed in."""

    content: bytes
    is_erased: bool
