"""Decide: the judging of a request against the present state.

    @command(HoldJob, permission=Permission.OWNER)
    def decide_hold_job(state: State, request: HoldJob, context: Context) -> Decision | Rejection:
        ...

A command reads the state and writes nothing: it returns the events that say what shall be, and
the answer. Rejections are values. Everything that a command may know of the world is in its
context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from spur.commands.permissions import Permission, refuse
from spur.events.declare import Event
from spur.events.envelope import Actor, AttachmentRef
from spur.projections.state import State
from spur.values.errors import InvariantBroken, Rejection
from spur.values.ids import JobId, NodeName
from spur.values.members import Membership
from spur.wire.cluster import ReplicaInfo
from spur.wire.controllers import ControllerList
from spur.wire.declare import Answer, Request, name_of
from spur.wire.jobs import StartView

__all__ = ["COMMANDS", "Attendance", "CommandType", "Context", "Decision", "command", "decide"]


class Attendance(msgspec.Struct, frozen=True, gc=False):
    """What the leader knows of a node from its agent alone; no log has it."""

    load_milli: int
    free_memory_mib: int


class Context(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a command may know besides state and request."""

    now_ns: int
    """The stamp that the entry will carry."""
    index: int
    """The index that the entry will have: that of the state, plus one."""
    actor: Actor
    attachments: tuple[AttachmentRef, ...] = ()
    """In the order of the request's attachments."""
    part: int = 1
    """Which part of a divisible command this is."""
    resume_after: int = 0
    """What the part before said in its decision; 0 when nobody knows, and rows that it dealt with
    are met again."""
    replica: ReplicaInfo | None = None
    """What the controller that is called knows of itself; given to local requests alone."""
    controllers: ControllerList | None = None
    """What it knows of all of them; given to requests about controllers alone."""
    agents: Mapping[NodeName, Attendance] = MappingProxyType({})
    """What agents said of their nodes; empty on a controller that does not lead."""
    starts: Mapping[JobId, StartView] = MappingProxyType({})
    """When waiting jobs would start, as the scheduler foresees it; empty where none plans."""
    prepared: Any = None
    """What the command's `prepare` made of the request; None when nobody did."""
    disk_is_low: bool = False
    """The disk is at its first mark: what needs room is refused (LOG-CONTRACT 5.9)."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What a command came to: events for one entry, and the answer."""

    events: tuple[Event, ...]
    answer: Answer
    members: Membership | None = None
    """Who takes part from now on: an entry of its own kind, which holds no events."""
    hands_over: bool = False
    """Another controller has to lead first, and to be asked then."""
    successor: int = 0
    """Id of the one that shall lead; 0 for whichever is best for it."""
    more: bool = False
    """A divisible command is not finished: log this part, then decide again with the next part's
    number. The answer of the last part counts."""
    resume_after: int = 0
    """The last row that this part looked at, if the next may go on behind it: a hint that spares
    a walk and is in no log."""
    blobs: tuple[bytes, ...] = ()
    """Digests of attachments that the answer of a query holds: the shell reads them, and `finish`
    makes the answer."""
    finish: Callable[[Sequence[bytes | None]], Answer] | None = None
    """Given the contents in the order of `blobs`; None for one that is erased."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandType:
    """What the registry knows of one command."""

    request: type[Request]
    name: str
    permission: Permission
    divisible: bool
    reads: bool
    """It never makes an event: any replica may answer it behind a barrier."""
    local: bool
    """The controller that is called answers it at once, from what it knows itself."""
    soft: bool
    """It rests on what agents told the leader and not on the log: the leader alone answers."""
    needs_room: bool
    """It adds to what is kept: refused while the disk is low (LOG-CONTRACT 5.9)."""
    about_controllers: bool
    """Its context has what is known of all controllers."""
    remembered: bool
    """A repetition is recognised by the request's id; off for what carries a number of its own,
    as agents' reports do (LOG-CONTRACT 7.6): the shell logs those without their id."""
    prepare: Callable[[Any], Any] | None
    """What of the judging needs no state and may take long: a shell runs it beside its loop."""
    judge: Callable[[State, Any, Context], Decision | Rejection]


COMMANDS: dict[type[Request], CommandType] = {}

J = TypeVar("J", bound=Callable[[State, Any, Context], Decision | Rejection])


def command(
    request: type[Request],
    *,
    permission: Permission,
    divisible: bool = False,
    reads: bool = False,
    local: bool = False,
    soft: bool = False,
    needs_room: bool = False,
    about_controllers: bool = False,
    remembered: bool = True,
    prepare: Callable[[Any], Any] | None = None,
) -> Callable[[J], J]:
    """Register what judges a class of requests."""

    def register(judge: J) -> J:
        if request in COMMANDS:
            raise ValueError(f"{request.__name__} is judged twice")
        COMMANDS[request] = CommandType(
            request=request,
            name=name_of(request),
            permission=permission,
            divisible=divisible,
            reads=reads,
            local=local,
            soft=soft,
            needs_room=needs_room,
            about_controllers=about_controllers,
            remembered=remembered,
            prepare=prepare,
            judge=judge,
        )
        return judge

    return register


def decide(state: State, request: Request, context: Context) -> Decision | Rejection:
    """Return the events that the request comes to, or why it is refused.

    A decision without events needs no entry: the answer stands for the state as it is.
    """
    row = COMMANDS[type(request)]
    refused = refuse(state, row.permission, context.actor)
    if refused is not None:
        return refused
    if row.needs_room and context.disk_is_low:
        return Rejection(
            "disk-low",
            f"the controllers' disks have too little room for {row.name}; nothing was changed",
            "free some room on them, then ask again",
        )
    decision = row.judge(state, request, context)
    if isinstance(decision, Decision) and decision.more and not row.divisible:
        raise InvariantBroken(f"{row.name} is not declared divisible, and asks for more parts")
    return decision
