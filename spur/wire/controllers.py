"""Requests about the controllers themselves: who takes part in the log."""

from __future__ import annotations

import msgspec

from spur.wire.declare import Answer, Request, answer, request

__all__ = [
    "AddController",
    "ControllerAdded",
    "ControllerInfo",
    "ControllerList",
    "ControllersFound",
    "FindControllers",
    "HandOver",
    "PromoteController",
    "RemoveController",
    "ShowControllers",
]


@request
class AddController(Request, frozen=True, tag="controller.add"):
    """Let a controller with an empty disk take part, as a learner until it is level.

    Asked again for the same disk, it is answered as the first time.
    """

    name: str
    """Of its host; no two controllers share one."""
    disk_id: bytes
    """16 random bytes, made with its directory and never used for another."""
    raft_address: str
    """host:port"""
    rpc_address: str
    """host:port"""


@answer
class ControllerAdded(Answer, frozen=True, tag="controller.added"):
    """What a new controller's directory is made of, besides its certificate."""

    node_id: int
    """Its id in the log, for its certificate and settings; never used before or again."""
    genesis: bytes
    """The cluster's genesis record."""
    members: bytes
    """The membership with the new controller: whom it may speak with at first."""


@request
class PromoteController(Request, frozen=True, tag="controller.promote"):
    """Let a learner that is level vote; the leader asks this of itself."""

    controller: str
    """Its name or its id."""


@request
class RemoveController(Request, frozen=True, tag="controller.remove"):
    """Let a controller take no part any more. Its id is never used again.

    Asked by its id, it may be asked again: an id that nobody has any more is removed already.
    """

    controller: str
    """Its name or its id."""
    gives_up_history: bool = False
    """Remove it although no other one has the log's oldest entries."""
    gives_up_authority: bool = False
    """Remove it although no other one has the key of the cluster's authority."""


@request
class HandOver(Request, frozen=True, tag="controller.hand-over"):
    """Let another controller lead; done already when `leader` leads no more."""

    leader: int
    """Id of the one that led when this was asked first."""
    to: int = 0
    """Id of the one that shall lead; 0 for whichever is best for it."""


@request
class ShowControllers(Request, frozen=True, tag="controller.list"):
    """Ask the controller that is called what it knows of all of them, quorum or not."""


class ControllerInfo(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A controller, as another one sees it."""

    node_id: int
    name: str
    disk_id: bytes
    voter: bool
    """False for a learner."""
    raft_address: str
    rpc_address: str
    leads: bool
    match: int
    """Up to here the log is durable there, as far as known; 0 when nothing was heard."""
    lag: int
    """Entries that are committed and not durable there."""
    history_from: int
    """First index from which on its ledger is whole; 0 when nothing was heard."""
    erased_to: int
    """What entries up to here erased is gone there; 0 when nothing was heard."""
    free_mib: int
    """Free space on its disk; -1 when nothing was heard."""
    heard_ms: int
    """Since it was last heard; -1 when it never was."""
    has_authority: bool = False
    """Whether it has the key of the cluster's authority, as it told last."""


@answer
class ControllerList(Answer, frozen=True, tag="controller.rows"):
    """The controllers in the order of their ids."""

    seen_by: int
    """Id of the controller that answers."""
    controllers: tuple[ControllerInfo, ...]
    genesis: bytes
    """The cluster's genesis record."""


@request
class FindControllers(Request, frozen=True, tag="controller.find"):
    """Ask the controller that is called where all of them take calls; for agents."""


@answer
class ControllersFound(Answer, frozen=True, tag="controller.found"):
    """Where the controllers are, as far as the one that answers knows."""

    addresses: tuple[str, ...]
    """host:port of each one's calls, in the order of their ids."""
    is_led: bool
    """Whether it knows of a leader; otherwise others may know better."""
