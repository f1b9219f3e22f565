"""Commands about accounts, users, associations and QOS: edits, all of them or none.

An edit may bring others with it: with a user go their associations, the first association of a
user makes its account their default one. Each is an event of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from spur.commands.accountdraft import Draft, Refused, shown
from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, Role, may_coordinate, role_of
from spur.projections.accounts import entity, entity_keys
from spur.projections.state import State
from spur.values.accounts import (
    NORMAL_QOS,
    ROOT,
    AdminLevel,
    EntityKey,
    Setting,
    Settings,
    Subject,
    Verb,
    is_entity_name,
    merged,
    names_setting,
    number_setting,
    text_setting,
    wrong_setting,
)
from spur.values.errors import Rejection
from spur.values.ids import JobId, is_name
from spur.values.states import Phase
from spur.wire.accounts import EditEntities, EntityEdit, EntityPage, EntityView, QueryEntities
from spur.wire.declare import Done

__all__ = ["EDITS_MAX", "decide_edit_entities", "decide_query_entities"]

EDITS_MAX = 2_000
"""Of one request."""

PAGE_ROWS_MAX = 1_000
"""Of one answer."""


@command(EditEntities, permission=Permission.USER, needs_room=True)
def decide_edit_entities(
    state: State, request: EditEntities, context: Context
) -> Decision | Rejection:
    """Do all edits in order; an operator may do any, a coordinator those in their accounts."""
    draft = Draft(state)
    try:
        if len(request.edits) > EDITS_MAX:
            raise Refused(
                "limit-exceeded",
                f"edits-max is {EDITS_MAX}, and this needs {len(request.edits)}",
            )
        for edit in request.edits:
            _check(edit)
            _permit(draft, edit, context)
            _DO[edit.verb](draft, edit)
    except Refused as refused:
        return refused.rejection
    return Decision(tuple(draft.events), Done())


def _check(edit: EntityEdit) -> None:
    """Raise Refused for an edit that has no meaning in any cluster."""
    wanted = 3 if edit.subject is Subject.ASSOCIATION else 1
    if len(edit.key) != wanted:
        raise Refused("invalid-value", f"{edit.subject} has a key of {wanted} names")
    if edit.subject is Subject.ASSOCIATION:
        account, user, partition = edit.key
        if partition and (not user or not is_name(partition)):
            raise Refused("invalid-value", f"no association may be of partition {partition!r}")
        names = [account, *([user] if user else [])]
    else:
        names = list(edit.key)
    for name in names:
        if not is_entity_name(name):
            raise Refused("invalid-value", f"{name!r} can name nothing in accounting")
    for setting in edit.settings:
        wrong = wrong_setting(edit.subject, setting)
        if wrong:
            raise Refused("invalid-value", wrong)
    pairs = [(setting.name, setting.resource) for setting in edit.settings]
    if len(set(pairs)) < len(pairs):
        raise Refused("invalid-value", "a setting is given twice")
    if edit.verb is Verb.REMOVE and edit.settings:
        raise Refused("invalid-value", "what is removed takes no settings")


# -- who may
def _permit(draft: Draft, edit: EntityEdit, context: Context) -> None:
    """Raise Refused when the actor may not do this."""
    role = role_of(draft.state, context.actor)
    if role >= Role.OPERATOR:
        if role >= Role.ADMINISTRATOR or not _touches_administrator(draft, edit):
            return
    elif any(
        may_coordinate(draft.state, context.actor, account) for account in _accounts(draft, edit)
    ):
        return
    raise Refused(
        "not-permitted",
        f"uid {context.actor.uid} may not {edit.verb} {edit.subject} {shown(edit.key)}",
    )


def _touches_administrator(draft: Draft, edit: EntityEdit) -> bool:
    if edit.subject is not Subject.USER:
        return False
    levels = (
        text_setting(draft.get(Subject.USER, edit.key) or (), "AdminLevel"),
        text_setting(edit.settings, "AdminLevel"),
    )
    return AdminLevel.ADMINISTRATOR in levels


def _accounts(draft: Draft, edit: EntityEdit) -> list[str]:
    """Return accounts of which one must be the coordinator's; none where it takes an operator."""
    if edit.subject is Subject.ASSOCIATION:
        account, user, _ = edit.key
        if user or edit.verb is not Verb.ADD:
            return [] if text_setting(edit.settings, "Parent") else [account]
        return [text_setting(edit.settings, "Parent")]
    plain = {"DefaultAccount", "Uid", "Description", "Organization"}
    if edit.verb is Verb.ADD and plain.issuperset(setting.name for setting in edit.settings):
        if edit.subject in (Subject.USER, Subject.ACCOUNT):
            return [name for (name,) in draft.keys(Subject.ACCOUNT)]
    return []


# -- adding
def _add(draft: Draft, edit: EntityEdit) -> None:
    if draft.get(edit.subject, edit.key) is not None:
        raise Refused("already-exists", f"there is {edit.subject} {shown(edit.key)} already")
    if edit.subject is Subject.ASSOCIATION:
        _add_association(draft, edit)
        return
    if text_setting(edit.settings, "DefaultAccount"):
        raise Refused("invalid-value", "a new user has no association to be the default one")
    _need_names(draft, edit.settings)
    _check_uid(draft, edit)
    draft.add(edit.subject, edit.key, edit.settings)


_TOP: EntityKey = (ROOT, "", "")


def _add_association(draft: Draft, edit: EntityEdit) -> None:
    account, user, _ = edit.key
    draft.need(Subject.ACCOUNT, (account,))
    parent = text_setting(edit.settings, "Parent")
    _need_names(draft, edit.settings)
    _plant(draft)
    if edit.key in _KEPT[Subject.ASSOCIATION]:
        if parent:
            raise Refused("invalid-value", f"association {shown(edit.key)} has no parent to choose")
        draft.change(Subject.ASSOCIATION, edit.key, edit.settings)
        return
    if not user:
        draft.need(Subject.ASSOCIATION, (parent or ROOT, "", ""))
        settings = merged(edit.settings, (Setting("Parent", "", parent or ROOT),))
        draft.add(Subject.ASSOCIATION, edit.key, settings)
        return
    if parent:
        raise Refused("invalid-value", "a user's association has no parent but its account")
    draft.need(Subject.ASSOCIATION, (account, "", ""))
    _associate(draft, edit.key, edit.settings)


def _plant(draft: Draft) -> None:
    """Add what every tree has: the root, and root's own association."""
    if draft.get(Subject.ASSOCIATION, _TOP) is None:
        draft.add(Subject.ASSOCIATION, _TOP)
        _associate(draft, (ROOT, ROOT, ""), ())


def _associate(draft: Draft, key: EntityKey, settings: Settings) -> None:
    """Add a user's association; their first one makes its account their default."""
    account, user, _ = key
    present = draft.need(Subject.USER, (user,))
    draft.add(Subject.ASSOCIATION, key, settings)
    if not text_setting(present, "DefaultAccount"):
        draft.change(Subject.USER, (user,), (Setting("DefaultAccount", "", account),))


def _need_names(draft: Draft, settings: Settings) -> None:
    """Raise Refused when settings name a QOS or a user that there is not."""
    names = [*names_setting(settings, "QOS"), *names_setting(settings, "Preempt")]
    default = text_setting(settings, "DefaultQOS")
    for name in [*names, *([default] if default else [])]:
        draft.need(Subject.QOS, (name.lstrip("+-"),))
    for user in names_setting(settings, "Coordinators"):
        draft.need(Subject.USER, (user,))


def _check_uid(draft: Draft, edit: EntityEdit) -> None:
    """Raise Refused when another user has this uid: a job must be of one."""
    uid = number_setting(edit.settings, "Uid")
    if uid is None:
        return
    for other in draft.of_uid(uid):
        if other != edit.key:
            raise Refused("already-exists", f"uid {uid} is user {shown(other)} already")


# -- changing
def _change(draft: Draft, edit: EntityEdit) -> None:
    draft.need(edit.subject, edit.key)
    _need_names(draft, edit.settings)
    _check_uid(draft, edit)
    for setting in edit.settings:
        if setting.name == "Parent":
            _check_move(draft, edit.key, setting)
        if setting.name == "DefaultAccount":
            _check_default(draft, edit.key[0], setting)
    draft.change(edit.subject, edit.key, edit.settings)


def _check_move(draft: Draft, key: EntityKey, setting: Setting) -> None:
    """Raise Refused unless an account may hang on this parent."""
    account, user, _ = key
    if user or account == ROOT or not isinstance(setting.value, str):
        raise Refused("invalid-value", f"association {shown(key)} has no parent to choose")
    here = setting.value
    while here:
        if here == account:
            raise Refused(
                "invalid-value", f"account {account!r} would hang on {setting.value!r} below it"
            )
        here = text_setting(draft.need(Subject.ASSOCIATION, (here, "", "")), "Parent")


def _check_default(draft: Draft, user: str, setting: Setting) -> None:
    if setting.value not in {key[0] for key in draft.of_user(user)}:
        raise Refused(
            "unknown-entity", f"user {user!r} has no association with account {setting.value!r}"
        )


# -- removing
def _remove(draft: Draft, edit: EntityEdit) -> None:
    draft.need(edit.subject, edit.key)
    if edit.key[0] in (ROOT, NORMAL_QOS) and edit.key in _KEPT[edit.subject]:
        raise Refused("in-use", f"{edit.subject} {shown(edit.key)} is part of every cluster")
    _REMOVE[edit.subject](draft, edit.key)


_KEPT: dict[Subject, tuple[EntityKey, ...]] = {
    Subject.ACCOUNT: ((ROOT,),),
    Subject.USER: ((ROOT,),),
    Subject.QOS: ((NORMAL_QOS,),),
    Subject.ASSOCIATION: (_TOP, (ROOT, ROOT, "")),
}


def _remove_association(draft: Draft, key: EntityKey) -> None:
    account, user, _ = key
    if not user:
        if draft.under(account):
            raise Refused("in-use", f"account {account!r} has associations")
        draft.remove(Subject.ASSOCIATION, key)
        return
    _check_idle(draft.state, account, user)
    others = {other[0] for other in draft.of_user(user) if other != key}
    default = text_setting(draft.need(Subject.USER, (user,)), "DefaultAccount")
    if others and default not in others:
        raise Refused("default-account", f"account {account!r} is the default of user {user!r}")
    draft.remove(Subject.ASSOCIATION, key)
    if not others:
        draft.change(Subject.USER, (user,), (Setting("DefaultAccount", "", None),))


def _check_idle(state: State, account: str, user: str) -> None:
    """Raise Refused while a user has jobs of an account that have not ended."""
    row = state.users.get(user)
    uid = None if row is None else number_setting(row.settings, "Uid")
    for job_id in () if uid is None else state.jobs_of_user.after(uid, JobId(0)):
        run = state.runs.get(job_id)
        if state.jobs[job_id].spec.account == account and run and run.phase is not Phase.ENDED:
            raise Refused("in-use", f"job {job_id} of {user!r} in account {account!r} is active")


def _remove_user(draft: Draft, key: EntityKey) -> None:
    (user,) = key
    keys = draft.of_user(user)
    default = text_setting(draft.need(Subject.USER, key), "DefaultAccount")
    for each in sorted(keys, key=lambda each: (each[0] == default, each)):
        _remove_association(draft, each)
    _strip(draft, Subject.ACCOUNT, "Coordinators", user)
    draft.remove(Subject.USER, key)


def _remove_account(draft: Draft, key: EntityKey) -> None:
    (account,) = key
    for each in draft.under(account):
        if not each[1]:
            raise Refused("in-use", f"account {each[0]!r} is below {account!r}")
        _remove_association(draft, each)
    if draft.get(Subject.ASSOCIATION, (account, "", "")) is not None:
        draft.remove(Subject.ASSOCIATION, (account, "", ""))
    draft.remove(Subject.ACCOUNT, key)


def _remove_qos(draft: Draft, key: EntityKey) -> None:
    (name,) = key
    _strip(draft, Subject.ASSOCIATION, "QOS", name)
    _strip(draft, Subject.ASSOCIATION, "DefaultQOS", name)
    _strip(draft, Subject.QOS, "Preempt", name)
    draft.remove(Subject.QOS, key)


def _strip(draft: Draft, subject: Subject, setting: str, name: str) -> None:
    """Take a name out of a setting, wherever it is."""
    for key in draft.keys(subject):
        present = draft.need(subject, key)
        names = names_setting(present, setting)
        left = tuple(each for each in names if each.lstrip("+-") != name)
        if left != names or text_setting(present, setting) == name:
            draft.change(subject, key, (Setting(setting, "", left or None),))


_DO: dict[Verb, Callable[[Draft, EntityEdit], None]] = {
    Verb.ADD: _add,
    Verb.CHANGE: _change,
    Verb.REMOVE: _remove,
}

_REMOVE: dict[Subject, Callable[[Draft, EntityKey], None]] = {
    Subject.ACCOUNT: _remove_account,
    Subject.USER: _remove_user,
    Subject.ASSOCIATION: _remove_association,
    Subject.QOS: _remove_qos,
}


@command(QueryEntities, permission=Permission.USER, reads=True)
def decide_query_entities(
    state: State, request: QueryEntities, context: Context
) -> Decision | Rejection:
    """Show a slice of one kind."""
    if not 1 <= request.limit <= PAGE_ROWS_MAX:
        return Rejection("invalid-value", f"limit {request.limit} is not from 1 to {PAGE_ROWS_MAX}")
    keys = entity_keys(state, request.subject)
    first = bisect_right(keys, request.after) if request.after else 0
    chosen = keys[first : first + request.limit]
    views = []
    for key in chosen:
        row = entity(state, request.subject, key)
        if row is not None:
            views.append(EntityView(key, row.number, row.settings))
    return Decision((), EntityPage(tuple(views), first + request.limit < len(keys)))
