"""Accounting entities: the tree of accounts, users and their associations, and QOS.

A cluster has QOS `normal`, account root and user root from birth, and no association: until the
first is added, jobs have the account and QOS that they name, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from spur.events.accounts import EntityAdded, EntityChanged, EntityRemoved
from spur.projections.apply import At, applies
from spur.projections.counters import counter, raise_counter
from spur.projections.invariants import invariant
from spur.projections.tables import Row, Table
from spur.values.accounts import (
    NORMAL_QOS,
    ROOT,
    AdminLevel,
    AssociationKey,
    EntityKey,
    Setting,
    Settings,
    Subject,
    line_of,
    merged,
    names_setting,
    number_setting,
    text_setting,
)
from spur.values.ids import PartitionName

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "BORN_ACCOUNTS",
    "BORN_QOS",
    "BORN_USERS",
    "EntityRow",
    "account_above",
    "admin_level",
    "association_for",
    "coordinates",
    "entity",
    "entity_keys",
    "line_above",
    "uid_of",
    "user_in",
    "user_of",
]


class EntityRow(Row, frozen=True):
    """An account, a user, an association or a QOS."""

    number: int
    """Of its kind, from 1 in the order of adding; never used twice."""
    settings: tuple[Setting, ...]
    """As `merged` orders them."""


BORN_QOS = {NORMAL_QOS: EntityRow(1, (Setting("Description", "", "Normal QOS default"),))}
BORN_ACCOUNTS = {
    ROOT: EntityRow(
        1,
        (
            Setting("Description", "", "default root account"),
            Setting("Organization", "", ROOT),
        ),
    )
}
BORN_USERS = {
    ROOT: EntityRow(
        1, (Setting("AdminLevel", "", AdminLevel.ADMINISTRATOR.value), Setting("Uid", "", 0))
    )
}

_BORN = {Subject.QOS: 1, Subject.ACCOUNT: 1, Subject.USER: 1, Subject.ASSOCIATION: 0}
"""How many of each kind are there from birth."""


# -- indexes
def uid_of(_: str, row: EntityRow) -> int | None:
    """Return the uid by which jobs come from a user; None when no host has told it."""
    return number_setting(row.settings, "Uid")


def user_in(key: AssociationKey, _: EntityRow) -> str | None:
    """Return whose association it is; None for that of an account."""
    return key[1] or None


def account_above(key: AssociationKey, row: EntityRow) -> str | None:
    """Return the account right above: a user's own, or an account's parent; None above root."""
    return key[0] if key[1] else text_setting(row.settings, "Parent") or None


# -- reading
def entity_keys(state: State, subject: Subject) -> list[EntityKey]:
    """Return the keys of all of one kind, in order."""
    keys = _table(state, subject).sorted_keys()
    return keys if subject is Subject.ASSOCIATION else [(key,) for key in keys]


def entity(state: State, subject: Subject, key: EntityKey) -> EntityRow | None:
    """Return an entity; None when there is no such one."""
    return _table(state, subject).get(_key(subject, key))


def user_of(state: State, uid: int) -> str | None:
    """Return the user by whom jobs of a uid are accounted; None when nobody is known by it."""
    names = state.users_of_uid.keys(uid)
    return names[0] if names else None


def admin_level(state: State, uid: int) -> AdminLevel:
    """Return what accounting says that a user may do."""
    user = user_of(state, uid)
    level = "" if user is None else text_setting(state.users[user].settings, "AdminLevel")
    return AdminLevel(level) if level else AdminLevel.NONE


def association_for(
    state: State, uid: int, account: str, partition: PartitionName
) -> AssociationKey | None:
    """Return the association that a job counts for: that of the partition, else the user's for all.

    An empty account stands for the user's default one. None when there is no such association.
    """
    user = user_of(state, uid)
    if user is None:
        return None
    account = account or text_setting(state.users[user].settings, "DefaultAccount")
    for key in ((account, user, str(partition)), (account, user, "")):
        if key in state.associations:
            return key
    return None


def line_above(state: State, key: AssociationKey) -> list[Settings]:
    """Return the settings of an association and of all above it, the nearest first."""
    return line_of(lambda each: _settings(state, each), key)


def _settings(state: State, key: AssociationKey) -> Settings | None:
    row = state.associations.get(key)
    return None if row is None else row.settings


def coordinates(state: State, user: str, account: str) -> bool:
    """Return whether a user is coordinator of an account, or of one above it."""
    here = account
    while here:
        row = state.accounts.get(here)
        if row is not None and user in names_setting(row.settings, "Coordinators"):
            return True
        settings = _settings(state, (here, "", ""))
        here = "" if settings is None else text_setting(settings, "Parent")
    return False


# -- applying
def _table(state: State, subject: Subject) -> Table[Any, EntityRow]:
    tables: dict[Subject, Table[Any, EntityRow]] = {
        Subject.ACCOUNT: state.accounts,
        Subject.USER: state.users,
        Subject.ASSOCIATION: state.associations,
        Subject.QOS: state.qos,
    }
    return tables[subject]


def _key(subject: Subject, key: EntityKey) -> Any:
    return key if subject is Subject.ASSOCIATION else key[0]


@applies(EntityAdded)
def apply_entity_added(state: State, at: At, event: EntityAdded) -> None:
    """Add it, with the next number of its kind."""
    table, key = _table(state, event.subject), _key(event.subject, event.key)
    if key in table:
        raise ValueError(f"there is {event.subject} {event.key} already")
    name = f"{event.subject}-number"
    number = max(counter(state, name), _BORN[event.subject]) + 1
    raise_counter(state, name, number)
    table.put(key, EntityRow(number, merged((), event.settings)))


@applies(EntityChanged)
def apply_entity_changed(state: State, at: At, event: EntityChanged) -> None:
    """Change its settings."""
    table, key = _table(state, event.subject), _key(event.subject, event.key)
    row = table[key]
    table.put(key, replace(row, settings=merged(row.settings, event.settings)))


@applies(EntityRemoved)
def apply_entity_removed(state: State, at: At, event: EntityRemoved) -> None:
    """Forget it."""
    _table(state, event.subject).delete(_key(event.subject, event.key))


# -- invariants
@invariant("accounts-form-a-tree")
def loose_associations(state: State) -> Iterator[str]:
    """Each association has its account and user, and hangs on the root by accounts."""
    for account, user, partition in state.associations.sorted_keys():
        what = f"association ({account!r}, {user!r}, {partition!r})"
        if account not in state.accounts or (user and user not in state.users):
            yield f"{what} is of no account or user that there is"
        if partition and not user:
            yield f"{what} is of an account in one partition"
        if user and text_setting(state.associations[account, user, partition].settings, "Parent"):
            yield f"{what} is of a user and has a parent beside its account"
        met: set[str] = set()
        here = account
        while here and here not in met:
            met.add(here)
            row = state.associations.get((here, "", ""))
            if row is None:
                yield f"{what} hangs on account {here!r}, which is not in the tree"
                break
            above = text_setting(row.settings, "Parent")
            if not above and here != ROOT:
                yield f"account {here!r} has no parent"
            if here == ROOT and above:
                yield f"root has parent {above!r}"
            here = above
        else:
            if here:
                yield f"{what} hangs in a circle through account {here!r}"


@invariant("one-default-account")
def bad_defaults(state: State) -> Iterator[str]:
    """Who has associations has one default account, and is associated with it."""
    for user in state.users.sorted_keys():
        accounts = {key[0] for key in state.associations_of_user.keys(user)}
        default = text_setting(state.users[user].settings, "DefaultAccount")
        if accounts and default not in accounts:
            yield f"user {user!r} has default account {default!r}, and associations with {accounts}"
        if not accounts and default:
            yield f"user {user!r} has default account {default!r}, and no association"


@invariant("one-user-of-a-uid")
def shared_uids(state: State) -> Iterator[str]:
    """A job is of one user."""
    for uid in state.users_of_uid.values():
        names = state.users_of_uid.keys(uid)
        if len(names) > 1:
            yield f"uid {uid} is that of users {names}"


@invariant("entities-name-what-there-is")
def unknown_names(state: State) -> Iterator[str]:
    """Settings name QOS and coordinators that there are."""
    for key in state.associations.sorted_keys():
        settings = state.associations[key].settings
        names = [name.lstrip("+-") for name in names_setting(settings, "QOS")]
        names += [name for name in (text_setting(settings, "DefaultQOS"),) if name]
        for name in names:
            if name not in state.qos:
                yield f"association {key} names QOS {name!r}, which there is not"
    for name in state.qos.sorted_keys():
        for other in names_setting(state.qos[name].settings, "Preempt"):
            if other not in state.qos:
                yield f"QOS {name!r} preempts {other!r}, which there is not"
    for name in state.accounts.sorted_keys():
        for user in names_setting(state.accounts[name].settings, "Coordinators"):
            if user not in state.users:
                yield f"account {name!r} has coordinator {user!r}, who is no user"
