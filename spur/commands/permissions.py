"""Permissions: who may ask what, as one table (LOG-CONTRACT 6.1).

A command declares the least role that it takes. Whose job it is, is the command's own question
(`may_act_for`); everything else is answered here.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from spur.events.envelope import Actor
from spur.projections.accounts import admin_level, coordinates, user_of
from spur.values.accounts import AdminLevel
from spur.values.config import GrantedRole
from spur.values.errors import Rejection
from spur.values.ids import HostId
from spur.values.words import with_article

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "Permission",
    "Role",
    "may_act_for",
    "may_coordinate",
    "own_alone",
    "refuse",
    "role_of",
    "sees_all_jobs",
]


class Role(IntEnum):
    """What an actor is; each may do what those before it may."""

    NOBODY = 0
    USER = 1
    COORDINATOR = 2
    OPERATOR = 3
    ADMINISTRATOR = 4


class Permission(IntEnum):
    """What a command takes."""

    USER = 1
    """Any user; whether the subject is theirs is judged by the command."""
    COORDINATOR = 2
    OPERATOR = 3
    ADMINISTRATOR = 4
    AGENT = 5
    """An agent speaking of its own nodes; which nodes is judged by the command."""
    CLUSTER = 6
    """The cluster itself: its clock and its scheduler."""
    HOST = 7
    """Any host of the cluster, whoever asks there."""


_HOST_VOUCHES_FOR = {
    "controller": Role.ADMINISTRATOR,
    "admin": Role.ADMINISTRATOR,
    "login": Role.COORDINATOR,
    "compute": Role.USER,
    "cluster": Role.ADMINISTRATOR,
}
"""The most that a host of each role may say of a user, unless the configuration lists more."""

_LISTED_HOSTS = ("admin", "login", "compute")
"""Hosts that vouch for nobody unless they were added and not removed; controllers are members."""

_GRANTED = {
    GrantedRole.OPERATOR: Role.OPERATOR,
    GrantedRole.ADMINISTRATOR: Role.ADMINISTRATOR,
}

_LEVELS = {
    AdminLevel.NONE: Role.USER,
    AdminLevel.OPERATOR: Role.OPERATOR,
    AdminLevel.ADMINISTRATOR: Role.ADMINISTRATOR,
}
"""What accounting grants, on hosts that may vouch for it."""


def role_of(state: State, actor: Actor) -> Role:
    """Return what the actor is, as far as its host may vouch for it."""
    most = _HOST_VOUCHES_FOR.get(actor.host_role, Role.NOBODY)
    host = state.hosts.get(HostId(actor.host_id))
    if actor.host_role in _LISTED_HOSTS and not _is_listed(state, actor):
        return Role.NOBODY
    if most is Role.ADMINISTRATOR and actor.uid == 0:
        return Role.ADMINISTRATOR
    if most <= Role.USER:
        return most
    if host is not None and (listed := state.roles.get((actor.uid, host.name))):
        return _GRANTED[listed.role]
    if most is not Role.ADMINISTRATOR:
        return Role.USER
    if listed := state.roles.get((actor.uid, "")):
        return _GRANTED[listed.role]
    return _LEVELS[admin_level(state, actor.uid)]


def refuse(state: State, permission: Permission, actor: Actor) -> Rejection | None:
    """Return why the actor may not use a command that takes this permission, or None."""
    if actor.host_role in _LISTED_HOSTS and not _is_listed(state, actor):
        return Rejection(
            "not-permitted",
            f"{actor.host_role} host {actor.host_id} is not, or not any more, in this cluster;"
            " nothing was changed",
            "an administrator lets it join with a new token",
        )
    if permission is Permission.CLUSTER:
        allowed = actor.host_role == "cluster"
    elif permission is Permission.HOST:
        allowed = actor.host_role in _HOST_VOUCHES_FOR
    elif permission is Permission.AGENT:
        allowed = actor.host_role in ("cluster", "compute", "controller")
    else:
        allowed = role_of(state, actor) >= permission.value
        if allowed and actor.host_role == "compute" and not _has_live_job(state, actor):
            return Rejection(
                "not-permitted",
                f"uid {actor.uid} has no running job on this compute host, which may speak only "
                "for those who have; nothing was changed",
            )
    if allowed:
        return None
    return Rejection(
        "not-permitted",
        f"uid {actor.uid} on {with_article(actor.host_role)} host may not ask this; it takes "
        f"{permission.name.lower()}; nothing was changed",
    )


def _is_listed(state: State, actor: Actor) -> bool:
    """Whether the actor's host was added, as what it says it is, and not removed."""
    host = state.hosts.get(HostId(actor.host_id))
    return host is not None and host.role == actor.host_role


def _has_live_job(state: State, actor: Actor) -> bool:
    """Whether the actor holds something on a node that its host serves."""
    return any(
        state.jobs[job_id].uid == actor.uid
        for node in state.nodes_of_host.keys(actor.host_id)
        for job_id in state.allocations.jobs_on(node)
    )


def may_act_for(state: State, actor: Actor, owner_uid: int) -> bool:
    """Return whether the actor may change what belongs to this user."""
    return actor.uid == owner_uid or role_of(state, actor) >= Role.OPERATOR


def may_coordinate(state: State, actor: Actor, account: str) -> bool:
    """Return whether the actor is coordinator of an account, and their host may vouch for it."""
    if _HOST_VOUCHES_FOR.get(actor.host_role, Role.NOBODY) < Role.COORDINATOR:
        return False
    user = user_of(state, actor.uid) if role_of(state, actor) >= Role.USER else None
    return user is not None and coordinates(state, user, account)


_PRIVATE_JOBS = "jobs"
"""Word of PrivateData."""

_NO_UID = -1


def sees_all_jobs(state: State, actor: Actor) -> bool:
    """Whether the actor may see other users' jobs. Source: slurm.conf(5) PrivateData."""
    config = state.config.get(1)
    parameters = () if config is None else config.parameters
    for parameter in parameters:
        if parameter.name == "PrivateData" and _PRIVATE_JOBS in parameter.value.lower().split(","):
            return role_of(state, actor) >= Role.OPERATOR
    return True


def own_alone(uids: tuple[int, ...], actor: Actor) -> tuple[int, ...]:
    """Return whose jobs of these an actor sees who sees only their own; none of them is all."""
    # A filter without users means all, so one that names only others must name nobody.
    return (actor.uid,) if not uids or actor.uid in uids else (_NO_UID,)
