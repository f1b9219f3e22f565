"""Accounts, users, associations and QOS: what is said of them, as one table of settings.

An entity is a key and its settings. A setting has a name of sacctmgr's, a resource where the limit
is one of a resource ("cpu", "gres/gpu:a100"), and a value whose type its row of `SETTINGS` says, so
that a limit is recorded as the number that is compared, never as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

__all__ = [
    "NORMAL_QOS",
    "ROOT",
    "SETTINGS",
    "AdminLevel",
    "AssociationKey",
    "EntityKey",
    "Setting",
    "SettingKind",
    "SettingType",
    "SettingValue",
    "Settings",
    "Subject",
    "Verb",
    "allowed_qos",
    "default_qos",
    "inherited",
    "is_entity_name",
    "line_of",
    "merged",
    "names_setting",
    "number_setting",
    "text_setting",
    "wrong_setting",
]

ROOT = "root"
"""The account above all others, and the user who has it."""

NORMAL_QOS = "normal"
"""The QOS that is there from birth."""


class Subject(StrEnum):
    """What kind of entity."""

    ACCOUNT = "account"
    USER = "user"
    ASSOCIATION = "association"
    """An account in the tree, or a user in it, for one partition or for all."""
    QOS = "qos"


class Verb(StrEnum):
    """What is done to an entity."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


class SettingKind(StrEnum):
    """Of what type a setting's value is."""

    COUNT = "count"
    """A number from 0."""
    SECONDS = "seconds"
    RESOURCE = "resource"
    """A number from 0 of the resource that is named: memory in MiB, minutes where it says so."""
    MILLIONTHS = "millionths"
    """A factor, in millionths."""
    SHARES = "shares"
    """A number from 0, or the word "parent"."""
    TEXT = "text"
    NAME = "name"
    NAMES = "names"
    """Sorted, each once."""
    QOS_NAMES = "qos-names"
    """Names; or names behind + and -, which change what the parent has."""
    LEVEL = "level"


class SettingType(NamedTuple):
    """One row of the table of settings."""

    name: str
    """As sacctmgr shows it."""
    kind: SettingKind
    subjects: tuple[Subject, ...]


class AdminLevel(StrEnum):
    """What a user may do beyond their own. Source: sacctmgr(1) AdminLevel."""

    NONE = "none"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


_ACCOUNT = (Subject.ACCOUNT,)
_USER = (Subject.USER,)
_ASSOCIATION = (Subject.ASSOCIATION,)
_QOS = (Subject.QOS,)
_BOTH = (Subject.ASSOCIATION, Subject.QOS)

_ROWS = (
    SettingType("Description", SettingKind.TEXT, (Subject.ACCOUNT, Subject.QOS)),
    SettingType("Organization", SettingKind.TEXT, _ACCOUNT),
    SettingType("Coordinators", SettingKind.NAMES, _ACCOUNT),
    SettingType("AdminLevel", SettingKind.LEVEL, _USER),
    SettingType("DefaultAccount", SettingKind.NAME, _USER),
    SettingType("Uid", SettingKind.COUNT, _USER),
    SettingType("Parent", SettingKind.NAME, _ASSOCIATION),
    SettingType("Fairshare", SettingKind.SHARES, _ASSOCIATION),
    SettingType("DefaultQOS", SettingKind.NAME, _ASSOCIATION),
    SettingType("QOS", SettingKind.QOS_NAMES, _ASSOCIATION),
    SettingType("Comment", SettingKind.TEXT, _ASSOCIATION),
    SettingType("Priority", SettingKind.COUNT, _BOTH),
    SettingType("GrpJobs", SettingKind.COUNT, _BOTH),
    SettingType("GrpJobsAccrue", SettingKind.COUNT, _BOTH),
    SettingType("GrpSubmitJobs", SettingKind.COUNT, _BOTH),
    SettingType("GrpTRES", SettingKind.RESOURCE, _BOTH),
    SettingType("GrpTRESMins", SettingKind.RESOURCE, _BOTH),
    SettingType("GrpTRESRunMins", SettingKind.RESOURCE, _BOTH),
    SettingType("GrpWall", SettingKind.SECONDS, _BOTH),
    SettingType("MaxJobs", SettingKind.COUNT, _ASSOCIATION),
    SettingType("MaxJobsAccrue", SettingKind.COUNT, _ASSOCIATION),
    SettingType("MaxSubmitJobs", SettingKind.COUNT, _ASSOCIATION),
    SettingType("MaxTRESRunMins", SettingKind.RESOURCE, _ASSOCIATION),
    SettingType("MaxTRESPerJob", SettingKind.RESOURCE, _BOTH),
    SettingType("MaxTRESPerNode", SettingKind.RESOURCE, _BOTH),
    SettingType("MaxTRESMinsPerJob", SettingKind.RESOURCE, _BOTH),
    SettingType("MaxWallDurationPerJob", SettingKind.SECONDS, _BOTH),
    SettingType("MinPrioThreshold", SettingKind.COUNT, _BOTH),
    SettingType("Flags", SettingKind.NAMES, _QOS),
    SettingType("GraceTime", SettingKind.SECONDS, _QOS),
    SettingType("LimitFactor", SettingKind.MILLIONTHS, _QOS),
    SettingType("UsageFactor", SettingKind.MILLIONTHS, _QOS),
    SettingType("UsageThreshold", SettingKind.MILLIONTHS, _QOS),
    SettingType("Preempt", SettingKind.NAMES, _QOS),
    SettingType("PreemptExemptTime", SettingKind.SECONDS, _QOS),
    SettingType("PreemptMode", SettingKind.NAME, _QOS),
    SettingType("MaxJobsPerAccount", SettingKind.COUNT, _QOS),
    SettingType("MaxJobsPerUser", SettingKind.COUNT, _QOS),
    SettingType("MaxJobsAccruePerAccount", SettingKind.COUNT, _QOS),
    SettingType("MaxJobsAccruePerUser", SettingKind.COUNT, _QOS),
    SettingType("MaxSubmitJobsPerAccount", SettingKind.COUNT, _QOS),
    SettingType("MaxSubmitJobsPerUser", SettingKind.COUNT, _QOS),
    SettingType("MaxTRESPerAccount", SettingKind.RESOURCE, _QOS),
    SettingType("MaxTRESPerUser", SettingKind.RESOURCE, _QOS),
    SettingType("MaxTRESRunMinsPerAccount", SettingKind.RESOURCE, _QOS),
    SettingType("MaxTRESRunMinsPerUser", SettingKind.RESOURCE, _QOS),
    SettingType("MinTRESPerJob", SettingKind.RESOURCE, _QOS),
)

SETTINGS: dict[str, SettingType] = {row.name: row for row in _ROWS}

SettingValue = int | str | tuple[str, ...] | None
"""What a setting is; None takes it away."""


class Setting(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One setting, or the change of one."""

    name: str
    """A key of `SETTINGS`."""
    resource: str
    """Such as "mem" or "gres/gpu:a100" for a RESOURCE; empty for others."""
    value: SettingValue


Settings = tuple[Setting, ...]
"""In order of name and resource, each pair once."""

EntityKey = tuple[str, ...]
"""One name; of an association account, user and partition, where an empty user stands for the
account itself and an empty partition for all."""

AssociationKey = tuple[str, str, str]

NAME_LETTERS_MAX = 128
TEXT_LETTERS_MAX = 1_024
NAMES_MAX = 1_024
NUMBER_MAX = (1 << 63) - 1

_NAME = re.compile(r"[^\s,=|'\"()+\-][^\s,=|'\"()]*\Z")
_RESOURCE = re.compile(r"[a-z][a-z0-9_]*(/[A-Za-z0-9_.:-]+)?\Z")


def is_entity_name(text: str) -> bool:
    """Return whether the text may name an account, a user or a QOS."""
    return len(text) <= NAME_LETTERS_MAX and text.isprintable() and _NAME.match(text) is not None


def wrong_setting(subject: Subject, setting: Setting) -> str:
    """Return what is wrong with a setting of such an entity; empty when nothing is."""
    row = SETTINGS.get(setting.name)
    if row is None or subject not in row.subjects:
        return f"{subject} has no setting {setting.name!r}"
    is_resource = row.kind is SettingKind.RESOURCE
    if is_resource != bool(setting.resource) or (
        is_resource and (len(setting.resource) > 128 or _RESOURCE.match(setting.resource) is None)
    ):
        return f"{setting.name} is of no resource {setting.resource!r}"
    value = setting.value
    if value is None or _fits(row.kind, value):
        return ""
    return f"{value!r} is no {row.kind} for {setting.name}"


def _fits(kind: SettingKind, value: int | str | tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        numbers = (SettingKind.TEXT, SettingKind.NAME, SettingKind.NAMES, SettingKind.QOS_NAMES)
        return kind not in (*numbers, SettingKind.LEVEL) and 0 <= value <= NUMBER_MAX
    if isinstance(value, str):
        if kind is SettingKind.TEXT:
            return len(value) <= TEXT_LETTERS_MAX and "\0" not in value
        if kind is SettingKind.LEVEL:
            return value in tuple(AdminLevel)
        return (
            is_entity_name(value)
            if kind is SettingKind.NAME
            else (kind is SettingKind.SHARES and value == "parent")
        )
    if list(value) != sorted(set(value)) or not 0 < len(value) <= NAMES_MAX:
        return False
    if kind is SettingKind.QOS_NAMES:
        signs = {name[:1] if name[:1] in "+-" else "" for name in value}
        return ("" not in signs or len(signs) == 1) and all(
            is_entity_name(name.lstrip("+-")) for name in value
        )
    return kind is SettingKind.NAMES and all(map(is_entity_name, value))


def merged(present: Settings, changes: Iterable[Setting]) -> Settings:
    """Return the settings after these changes."""
    found = {(setting.name, setting.resource): setting for setting in present}
    for setting in changes:
        if setting.value is None:
            found.pop((setting.name, setting.resource), None)
        else:
            found[setting.name, setting.resource] = setting
    return tuple(found[key] for key in sorted(found))


# -- reading
def _value(settings: Settings, name: str, resource: str = "") -> SettingValue:
    for setting in settings:
        if setting.name == name and setting.resource == resource:
            return setting.value
    return None


def number_setting(settings: Settings, name: str, resource: str = "") -> int | None:
    """Return a number; None when it is not set, or is a word."""
    value = _value(settings, name, resource)
    return value if isinstance(value, int) else None


def text_setting(settings: Settings, name: str) -> str:
    """Return a text, name or word; empty when it is not set, or is a number."""
    value = _value(settings, name)
    return value if isinstance(value, str) else ""


def names_setting(settings: Settings, name: str) -> tuple[str, ...]:
    """Return names; empty when none are set."""
    value = _value(settings, name)
    return value if isinstance(value, tuple) else ()


SettingsOf = Callable[[AssociationKey], Settings | None]
"""Where the settings of associations are; None for one that there is not."""


def line_of(of: SettingsOf, key: AssociationKey) -> list[Settings]:
    """Return the settings of an association and of all above it, the nearest first.

    Above a partition's association of a user is their one for all partitions' account, then the
    accounts up to the root.
    """
    found: list[Settings] = []
    here: AssociationKey | None = key
    while here is not None:
        settings = of(here)
        if settings is None:
            break
        found.append(settings)
        account, user, _ = here
        above = account if user else text_setting(settings, "Parent")
        here = (above, "", "") if above else None
    return found


def inherited(line: Iterable[Settings], name: str, resource: str = "") -> SettingValue:
    """Return a setting of the nearest that has it; None when nobody has."""
    for settings in line:
        value = _value(settings, name, resource)
        if value is not None:
            return value
    return None


def allowed_qos(line: Iterable[Settings]) -> tuple[str, ...]:
    """Return the QOS that an association may use: the nearest list, with the changes below it."""
    changes: list[tuple[str, ...]] = []
    allowed: set[str] = {NORMAL_QOS}
    for settings in line:
        names = names_setting(settings, "QOS")
        if names and names[0][0] not in "+-":
            allowed = set(names)
            break
        changes.append(names)
    for names in reversed(changes):
        allowed |= {name[1:] for name in names if name[0] == "+"}
        allowed -= {name[1:] for name in names if name[0] == "-"}
    return tuple(sorted(allowed))


def default_qos(line: list[Settings]) -> str:
    """Return the QOS of a job that names none. Source: assoc_mgr_get_default_qos_info."""
    named = inherited(line, "DefaultQOS")
    if isinstance(named, str):
        return named
    allowed = allowed_qos(line)
    return allowed[0] if len(allowed) == 1 else NORMAL_QOS
