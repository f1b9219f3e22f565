"""What `spur migrate` executes: texts in, reports and texts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spur.migrate.html import page_of
from spur.migrate.parameters import BESIDE, check_parameters
from spur.migrate.report import Severity, SiteReport, Word
from spur.migrate.scripts import Judge, check_script
from spur.migrate.site import judge_of
from spur.migrate.tomlfile import to_toml
from spur.slurm.submission import Submission
from spur.slurm.timespec import Calendar
from spur.values.config import ConfigFile

__all__ = ["BESIDE", "Severity", "Word", "check", "page_of", "to_toml"]


def check(
    scripts: Iterable[tuple[str, bytes]],
    files: Sequence[ConfigFile],
    beside: Sequence[ConfigFile],
    *,
    calendar: Calendar,
    asked: Callable[[Submission], str] | None = None,
) -> SiteReport:
    """Return what becomes of scripts, and of a site's files where there are any.

    `asked` speaks for a cluster that is there, before the files do.
    """
    parameters, errors = check_parameters(files, beside) if files else ((), ())
    site = judge_of(files, calendar.now() * 1_000_000_000) if files else None
    judge = _both(asked, site) if asked and site else asked or site
    reports = tuple(
        check_script(name, content, calendar=calendar, judge=judge) for name, content in scripts
    )
    return SiteReport(reports, parameters, errors)


def _both(asked: Judge, site: Judge) -> Judge:
    """Return what lets a cluster speak first: it is not asked for arrays."""
    return lambda submission: asked(submission) or site(submission)
