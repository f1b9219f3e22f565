"""Requests for history: not judged to an answer here, but narrowed to what their caller may see.

    @history(QueryRecords, permission=Permission.USER)
    def narrow_records(state: State, request: QueryRecords, context: Context) -> ...

The front asks the projector what the narrowed request says, once the read model has reached the
entry that a read barrier gave. Source: LOG-CONTRACT 8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec.structs import replace

from spur.commands.decide import Context
from spur.commands.permissions import Permission, own_alone, refuse, sees_all_jobs
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.wire.declare import Request, name_of
from spur.wire.history import QueryRecords, ReadStory

__all__ = ["HISTORY", "HistoryType", "history", "narrow"]

PAGE_JOBS_MAX = 1_000
"""Jobs of one page."""

STORY_LINES_MAX = 1_000
"""Lines of one page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryType:
    """What the registry knows of one request for history."""

    request: type[Request]
    name: str
    permission: Permission
    narrow: Callable[[State, Any, Context], Request | Rejection]


HISTORY: dict[type[Request], HistoryType] = {}
"""Requests that the projector answers; no command judges them."""

N = TypeVar("N", bound=Callable[[State, Any, Context], Request | Rejection])


def history(request: type[Request], *, permission: Permission) -> Callable[[N], N]:
    """Register what narrows a class of requests for history."""

    def register(narrower: N) -> N:
        if request in HISTORY:
            raise ValueError(f"{request.__name__} is narrowed twice")
        HISTORY[request] = HistoryType(
            request=request, name=name_of(request), permission=permission, narrow=narrower
        )
        return narrower

    return register


def narrow(state: State, request: Request, context: Context) -> Request | Rejection:
    """Return what the projector is asked for this actor, or why the request is refused."""
    row = HISTORY[type(request)]
    refused = refuse(state, row.permission, context.actor)
    return row.narrow(state, request, context) if refused is None else refused


def _bad_limit(limit: int, most: int) -> Rejection | None:
    if 1 <= limit <= most:
        return None
    return Rejection("invalid-value", f"a page holds 1 to {most}, not {limit}")


@history(QueryRecords, permission=Permission.USER)
def narrow_records(state: State, request: QueryRecords, context: Context) -> Request | Rejection:
    """Leave a user their own records where others' are private."""
    if refused := _bad_limit(request.limit, PAGE_JOBS_MAX):
        return refused
    if sees_all_jobs(state, context.actor):
        return request
    wanted = request.filter
    uids = own_alone(wanted.uids, context.actor)
    return replace(request, filter=replace(wanted, uids=uids))


@history(ReadStory, permission=Permission.USER)
def narrow_story(state: State, request: ReadStory, context: Context) -> Request | Rejection:
    """Leave a user the stories of their own jobs where others' are private."""
    if refused := _bad_limit(request.limit, STORY_LINES_MAX):
        return refused
    return replace(
        request, uids=() if sees_all_jobs(state, context.actor) else (context.actor.uid,)
    )
