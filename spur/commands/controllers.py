"""Commands about the controllers: one voter changes at a time, and none that is needed goes.

Their entries hold no events but the full membership (LOG-CONTRACT 5.1). What is known of the other
controllers, such as how far their disks are, is no part of the log and comes with the context.
"""

from __future__ import annotations

from msgspec.structs import replace

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.projections.state import State
from spur.values.addresses import parse_tcp_address
from spur.values.errors import InvariantBroken, Rejection
from spur.values.ids import NAME_GRAMMAR, is_name
from spur.values.members import (
    HEARD_MS_MAX,
    LEVEL_ENTRIES,
    Member,
    Membership,
    is_level,
    member_id_at,
)
from spur.wire.controllers import (
    AddController,
    ControllerAdded,
    ControllerInfo,
    ControllerList,
    ControllersFound,
    FindControllers,
    HandOver,
    PromoteController,
    RemoveController,
    ShowControllers,
)
from spur.wire.declare import Done

__all__ = [
    "CONTROLLERS_MAX",
    "decide_add_controller",
    "decide_find_controllers",
    "decide_promote_controller",
    "decide_remove_controller",
    "decide_show_controllers",
]

CONTROLLERS_MAX = 9
"""Controllers of a cluster, learners included."""

_DISK_ID_BYTES = 16
_ID_LENGTH_MAX = 20


@command(ShowControllers, permission=Permission.USER, local=True, about_controllers=True)
def decide_show_controllers(
    state: State, request: ShowControllers, context: Context
) -> Decision | Rejection:
    """Show what the controller that is called knows of all of them."""
    return Decision((), _seen(context))


@command(FindControllers, permission=Permission.HOST, local=True, about_controllers=True)
def decide_find_controllers(
    state: State, request: FindControllers, context: Context
) -> Decision | Rejection:
    """Tell a host of the cluster where the controllers are."""
    infos = _seen(context).controllers
    found = ControllersFound(
        tuple(info.rpc_address for info in infos), is_led=any(info.leads for info in infos)
    )
    return Decision((), found)


@command(
    AddController,
    permission=Permission.ADMINISTRATOR,
    about_controllers=True,
    needs_room=True,
    remembered=False,
)
def decide_add_controller(
    state: State, request: AddController, context: Context
) -> Decision | Rejection:
    """Add a learner; its id follows from the index of the entry."""
    present, genesis = _present(state), _seen(context).genesis
    for member in present.members:
        if member.disk_id == request.disk_id:
            return Decision((), ControllerAdded(member.id, genesis, present.encode()))
    refused = _refuse_new(present, request)
    if refused is not None:
        return refused
    new = Member(
        id=member_id_at(context.index),
        disk_id=request.disk_id,
        voter=False,
        raft_address=request.raft_address,
        rpc_address=request.rpc_address,
        name=request.name,
    )
    members = present.with_member(new)
    return Decision((), ControllerAdded(new.id, genesis, members.encode()), members=members)


def _refuse_new(present: Membership, request: AddController) -> Rejection | None:
    if not is_name(request.name) or request.name.isdigit():
        return _refuse(
            "invalid-value",
            f"{request.name!r} is no controller's name: it takes {NAME_GRAMMAR}, and is no number",
        )
    if len(request.disk_id) != _DISK_ID_BYTES:
        return _refuse("invalid-value", f"a disk id has {_DISK_ID_BYTES} bytes")
    for address in (request.raft_address, request.rpc_address):
        try:
            parse_tcp_address(address)
        except ValueError as error:
            return _refuse("invalid-value", str(error))
        for member in present.members:
            if address in (member.raft_address, member.rpc_address):
                return _refuse("wrong-state", f"{address} is controller {member.name}'s")
    if request.raft_address == request.rpc_address:
        return _refuse("invalid-value", f"{request.rpc_address} can't be both of its addresses")
    if present.named(request.name) is not None:
        return _refuse(
            "wrong-state",
            f"a controller is named {request.name} already",
            "`spur controller repair` gives one that lost its disk a new id",
        )
    if len(present.members) >= CONTROLLERS_MAX:
        return _refuse("limit-exceeded", f"CONTROLLERS_MAX is {CONTROLLERS_MAX}")
    return None


@command(
    PromoteController,
    permission=Permission.ADMINISTRATOR,
    about_controllers=True,
    remembered=False,
)
def decide_promote_controller(
    state: State, request: PromoteController, context: Context
) -> Decision | Rejection:
    """Let a learner vote, once it lacks hardly anything."""
    present = _present(state)
    member = _find(present, request.controller)
    if member is None:
        return _unknown(present, request.controller)
    if member.voter:
        return Decision((), Done())
    info = _info(context, member)
    if not is_level(info.match, info.lag, info.heard_ms):
        what = "was not heard" if not _is_heard(info) else f"lacks {info.lag} entries"
        return _refuse(
            "not-level",
            f"learner {_called(member)} {what}; it is promoted when it lacks at most"
            f" {LEVEL_ENTRIES}",
        )
    return Decision((), Done(), members=present.with_member(replace(member, voter=True)))


@command(
    RemoveController,
    permission=Permission.ADMINISTRATOR,
    about_controllers=True,
    remembered=False,
)
def decide_remove_controller(
    state: State, request: RemoveController, context: Context
) -> Decision | Rejection:
    """Remove a controller, unless those that stay could not go on, or would lack something.

    An id that is not there stands for one that was removed: asked again, it is done already.
    """
    present = _present(state)
    member = _find(present, request.controller)
    if member is None and _is_id(request.controller):
        return Decision((), Done())
    if member is None:
        return _unknown(present, request.controller)
    following = present.without(member.id)
    refused = _refuse_quorum(context, member, following)
    if refused is None and not request.gives_up_authority:
        refused = _refuse_authority(context, member, following)
    if refused is None and not request.gives_up_history:
        refused = _refuse_history(context, member, following)
    if refused is not None:
        return refused
    if member.id == _seen(context).seen_by:
        return Decision((), Done(), hands_over=True)
    return Decision((), Done(), members=following)


@command(HandOver, permission=Permission.ADMINISTRATOR, about_controllers=True, remembered=False)
def decide_hand_over(state: State, request: HandOver, context: Context) -> Decision | Rejection:
    """Let another voter lead."""
    if request.leader != _seen(context).seen_by:
        return Decision((), Done())
    voters = _present(state).voters()
    if request.to and request.to not in voters:
        return _refuse("unknown-controller", f"no voter has the id {request.to}")
    if len(voters) < 2:
        return _refuse("wrong-state", "no other controller votes")
    return Decision((), Done(), hands_over=True, successor=request.to)


def _refuse_quorum(context: Context, member: Member, following: Membership) -> Rejection | None:
    """Refuse a removal after which nothing could be committed any more."""
    voters = following.voters()
    if not voters:
        return _refuse(
            "wrong-state",
            f"controller {_called(member)} is the only voter",
            "add another one first, and wait until it votes",
        )
    heard = sum(info.node_id in voters and _is_heard(info) for info in _seen(context).controllers)
    if member.voter and heard <= len(voters) // 2:
        return _refuse(
            "wrong-state",
            f"without controller {_called(member)} only {heard} of {len(voters)} voters would"
            " answer, and nothing could be decided",
            "remove those that are dead first, or bring them back",
        )
    return None


def _refuse_authority(context: Context, member: Member, following: Membership) -> Rejection | None:
    """Refuse to remove the last one that can sign certificates. Source: LOG-CONTRACT 6.1."""
    voters = following.voters()
    infos = _seen(context).controllers
    if any(info.has_authority and info.node_id in voters and _is_heard(info) for info in infos):
        return None
    gone = _info(context, member)
    if not gone.has_authority and gone.heard_ms >= 0:
        # What is not there is not lost with it.
        return None
    return _refuse(
        "last-authority",
        f"controller {_called(member)} may be the last to have the key of the cluster's authority:"
        " no other voter that was heard has it, and without it no host joins and no certificate is"
        " renewed",
        "wait until another one has got it (`spur controller list`), bring back one that has it,"
        " or say --give-up-authority",
    )


def _refuse_history(context: Context, member: Member, following: Membership) -> Rejection | None:
    """Refuse to remove the last holder of a part of the ledger. Source: LOG-CONTRACT 5.6."""
    seen = [info for info in _seen(context).controllers if info.history_from]
    # Who is behind somebody's first entry may still be given a snapshot, and begin anew behind it.
    behind = max((info.history_from for info in seen), default=0)
    kept = [
        info.history_from
        for info in seen
        if following.member(info.node_id) is not None
        and info.match >= behind
        and is_level(info.match, info.lag, info.heard_ms)
    ]
    oldest = min(kept, default=0)
    held = _info(context, member).history_from
    if oldest and (oldest <= held or oldest == 1):
        return None
    others = f"from entry {oldest} on" if oldest else "in none that was heard"
    return _refuse(
        "last-holder",
        f"controller {_called(member)} may be the last to hold the log's oldest entries: the"
        f" history of the others is whole {others}",
        "wait until another one has fetched them (`spur controller list`), or say"
        " --give-up-history",
    )


# -- what they have in common


def _present(state: State) -> Membership:
    row = state.membership.get(1)
    if row is None:
        raise InvariantBroken("the log has no membership, which its first entry is")
    return Membership.decode(row.body)


def _seen(context: Context) -> ControllerList:
    if context.controllers is None:
        raise InvariantBroken("a command about controllers was judged without what is known of any")
    return context.controllers


def _info(context: Context, member: Member) -> ControllerInfo:
    for info in _seen(context).controllers:
        if info.node_id == member.id:
            return info
    raise InvariantBroken(f"nothing at all is known of controller {member.id}")


def _is_heard(info: ControllerInfo) -> bool:
    return 0 <= info.heard_ms <= HEARD_MS_MAX


def _find(present: Membership, said: str) -> Member | None:
    return present.member(int(said)) if _is_id(said) else present.named(said)


def _is_id(said: str) -> bool:
    return said.isascii() and said.isdigit() and len(said) <= _ID_LENGTH_MAX


def _called(member: Member) -> str:
    return f"{member.name} ({member.id})" if member.name else str(member.id)


def _unknown(present: Membership, said: str) -> Rejection:
    names = ", ".join(_called(member) for member in present.members)
    return _refuse("unknown-controller", f"no controller is {said!r}; there are {names}")


def _refuse(code: str, text: str, hint: str = "") -> Rejection:
    return Rejection(code, f"{text}; nothing was changed", hint)
