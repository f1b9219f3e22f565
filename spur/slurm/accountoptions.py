"""The options of sacctmgr's entities: what `key=value` sets, as one table.

    fairshare=10  maxtrespu=cpu=16  qos+=high  flags=DenyOnLimit

A word may be cut to as many letters as its row says. Source: sacctmgr(1); Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spur.slurm.accountbook import AccountBook
from spur.slurm.accountvalues import (
    QOS_FLAGS,
    BadValue,
    parse_count,
    parse_factor,
    parse_minutes,
    parse_resources,
    parse_seconds,
)
from spur.values.accounts import (
    SETTINGS,
    AdminLevel,
    Setting,
    SettingKind,
    Settings,
    Subject,
    names_setting,
)

__all__ = ["OPTIONS", "Option", "Word", "option_settings", "parse_word", "setting_option"]


class Word(NamedTuple):
    """One `key=value`, or a word alone."""

    text: str
    key: str
    """In small letters; empty for a word alone."""
    operator: str
    """"=", "+=" or "-="."""
    value: str


class Option(NamedTuple):
    """One key of an entity."""

    name: str
    letters: int
    """Letters that are enough."""
    setting: str
    """A key of `SETTINGS`."""
    resource: str = ""
    """Of which resource, where the value is a number alone: GrpCPUs=4."""
    minutes: bool = True
    """Whether a lone number of a length of time is minutes."""


_GROUP = (
    Option("GrpCPUMins", 8, "GrpTRESMins", "cpu"),
    Option("GrpCPURunMins", 7, "GrpTRESRunMins", "cpu"),
    Option("GrpCPUs", 7, "GrpTRES", "cpu"),
    Option("GrpJobs", 4, "GrpJobs"),
    Option("GrpJobsAccrue", 8, "GrpJobsAccrue"),
    Option("GrpMemory", 4, "GrpTRES", "mem"),
    Option("GrpNodes", 4, "GrpTRES", "node"),
    Option("GrpSubmitJobs", 4, "GrpSubmitJobs"),
    Option("GrpTRES", 7, "GrpTRES"),
    Option("GrpTRESMins", 8, "GrpTRESMins"),
    Option("GrpTRESRunMins", 8, "GrpTRESRunMins"),
    Option("GrpWall", 4, "GrpWall"),
)

_ASSOCIATION = (
    Option("DefaultQOS", 8, "DefaultQOS"),
    Option("Fairshare", 1, "Fairshare"),
    Option("Shares", 1, "Fairshare"),
    *_GROUP,
    Option("MaxCPUMinsPerJob", 7, "MaxTRESMinsPerJob", "cpu"),
    Option("MaxCPUsPerJob", 7, "MaxTRESPerJob", "cpu"),
    Option("MaxJobs", 4, "MaxJobs"),
    Option("MaxJobsAccrue", 8, "MaxJobsAccrue"),
    Option("MaxNodesPerJob", 4, "MaxTRESPerJob", "node"),
    Option("MaxSubmitJobs", 4, "MaxSubmitJobs"),
    Option("MaxTRESPerJob", 7, "MaxTRESPerJob"),
    Option("MaxTRESPJ", 9, "MaxTRESPerJob"),
    Option("MaxTRESPerNode", 11, "MaxTRESPerNode"),
    Option("MaxTRESPN", 9, "MaxTRESPerNode"),
    Option("MaxTRESMinsPerJob", 8, "MaxTRESMinsPerJob"),
    Option("MaxTRESRunMins", 8, "MaxTRESRunMins"),
    Option("MaxWallDurationPerJob", 4, "MaxWallDurationPerJob"),
    Option("MinPrioThreshold", 4, "MinPrioThreshold"),
    Option("Priority", 3, "Priority"),
    Option("QosLevel", 1, "QOS"),
    Option("Comment", 3, "Comment"),
)

_QOS = (
    Option("Description", 1, "Description"),
    Option("Flags", 2, "Flags"),
    Option("GraceTime", 3, "GraceTime", minutes=False),
    *_GROUP,
    Option("LimitFactor", 3, "LimitFactor"),
    Option("MaxJobsPerAccount", 11, "MaxJobsPerAccount"),
    Option("MaxJobsPA", 9, "MaxJobsPerAccount"),
    Option("MaxJobsPerUser", 4, "MaxJobsPerUser"),
    Option("MaxJobsPU", 9, "MaxJobsPerUser"),
    Option("MaxJobsAccruePerAccount", 17, "MaxJobsAccruePerAccount"),
    Option("MaxJobsAccruePA", 15, "MaxJobsAccruePerAccount"),
    Option("MaxJobsAccruePerUser", 8, "MaxJobsAccruePerUser"),
    Option("MaxJobsAccruePU", 15, "MaxJobsAccruePerUser"),
    Option("MaxSubmitJobsPerAccount", 17, "MaxSubmitJobsPerAccount"),
    Option("MaxSubmitJobsPA", 15, "MaxSubmitJobsPerAccount"),
    Option("MaxSubmitJobsPerUser", 4, "MaxSubmitJobsPerUser"),
    Option("MaxSubmitJobsPU", 15, "MaxSubmitJobsPerUser"),
    Option("MaxCPUsPerUser", 11, "MaxTRESPerUser", "cpu"),
    Option("MaxCPUsPerJob", 7, "MaxTRESPerJob", "cpu"),
    Option("MaxCPUMinsPerJob", 7, "MaxTRESMinsPerJob", "cpu"),
    Option("MaxNodesPerUser", 12, "MaxTRESPerUser", "node"),
    Option("MaxNodesPerJob", 4, "MaxTRESPerJob", "node"),
    Option("MaxTRESPerAccount", 11, "MaxTRESPerAccount"),
    Option("MaxTRESPA", 9, "MaxTRESPerAccount"),
    Option("MaxTRESPerJob", 7, "MaxTRESPerJob"),
    Option("MaxTRESPJ", 9, "MaxTRESPerJob"),
    Option("MaxTRESPerNode", 11, "MaxTRESPerNode"),
    Option("MaxTRESPerUser", 11, "MaxTRESPerUser"),
    Option("MaxTRESPU", 9, "MaxTRESPerUser"),
    Option("MaxTRESMinsPerJob", 8, "MaxTRESMinsPerJob"),
    Option("MaxTRESRunMinsPerAccount", 18, "MaxTRESRunMinsPerAccount"),
    Option("MaxTRESRunMinsPA", 16, "MaxTRESRunMinsPerAccount"),
    Option("MaxTRESRunMinsPerUser", 8, "MaxTRESRunMinsPerUser"),
    Option("MaxTRESRunMinsPU", 16, "MaxTRESRunMinsPerUser"),
    Option("MaxWallDurationPerJob", 4, "MaxWallDurationPerJob"),
    Option("MinTRESPerJob", 7, "MinTRESPerJob"),
    Option("MinCPUsPerJob", 7, "MinTRESPerJob", "cpu"),
    Option("PreemptExemptTime", 8, "PreemptExemptTime", minutes=False),
    Option("PreemptMode", 8, "PreemptMode"),
    Option("Preempt", 3, "Preempt"),
    Option("Priority", 3, "Priority"),
    Option("UsageFactor", 6, "UsageFactor"),
    Option("UsageThreshold", 6, "UsageThreshold"),
)

OPTIONS: dict[Subject, tuple[Option, ...]] = {
    Subject.ACCOUNT: (
        Option("Description", 1, "Description"),
        Option("Organization", 1, "Organization"),
    ),
    Subject.USER: (
        Option("AdminLevel", 2, "AdminLevel"),
        Option("DefaultAccount", 8, "DefaultAccount"),
    ),
    Subject.ASSOCIATION: _ASSOCIATION,
    Subject.QOS: _QOS,
}

PREEMPT_MODES = ("cancel", "gang", "off", "requeue", "suspend", "within", "cluster")


def parse_word(text: str) -> Word:
    """Read one word of the command line."""
    key, equals, value = text.partition("=")
    if not equals:
        return Word(text, "", "", text)
    operator = "="
    if key[-1:] in ("+", "-"):
        operator, key = f"{key[-1]}=", key[:-1]
    return Word(text, key.lower(), operator, value.strip("'\""))


def setting_option(subject: Subject, key: str) -> Option | None:
    """Return the option that a key, which may be cut short, means; None for none."""
    for option in OPTIONS[subject]:
        name = option.name.lower()
        if key == name or (len(key) >= option.letters and name.startswith(key)):
            return option
    return None


def option_settings(
    subject: Subject, option: Option, word: Word, present: Settings, book: AccountBook
) -> list[Setting]:
    """Return what an option sets on an entity that has these settings. Raises: BadValue."""
    row = SETTINGS[option.setting]
    if row.kind is SettingKind.RESOURCE:
        if option.resource:
            found = {option.resource: parse_count(word.value, option.name)}
        else:
            found = parse_resources(word.value)
        return [Setting(row.name, resource, value) for resource, value in found.items()]
    if row.kind is SettingKind.SECONDS:
        reader = parse_minutes if option.minutes else parse_seconds
        try:
            return [Setting(row.name, "", reader(word.value))]
        except BadValue:
            raise BadValue(f" Bad time format: {word.text}") from None
    if row.kind in (SettingKind.QOS_NAMES, SettingKind.NAMES):
        return [Setting(row.name, "", _names(row.name, word, present, book))]
    return [Setting(row.name, "", _PARSE[row.kind](word, option.name, book))]


def _number(word: Word, name: str, book: AccountBook) -> int | None:
    return parse_count(word.value, name)


def _factor(word: Word, name: str, book: AccountBook) -> int | None:
    return parse_factor(word.value, name)


def _shares(word: Word, name: str, book: AccountBook) -> int | str | None:
    if word.value.lower() == "parent":
        return "parent"
    return parse_count(word.value, "FairShare")


def _text(word: Word, name: str, book: AccountBook) -> str | None:
    return word.value or None


def _name(word: Word, name: str, book: AccountBook) -> str | None:
    value = word.value.lower()
    if name == "PreemptMode":
        if value not in PREEMPT_MODES:
            raise BadValue(f" Bad Preempt Mode given: {word.text}")
        return None if value == "cluster" else value
    if name == "DefaultQOS":
        if value == "-1" or not value:
            return None
        _check_qos([value], book)
    return value or None


def _level(word: Word, name: str, book: AccountBook) -> str:
    value = word.value.lower()
    for level in (AdminLevel.OPERATOR, AdminLevel.ADMINISTRATOR):
        if value and level.value.startswith(value):
            return level.value
    return AdminLevel.NONE.value


_PARSE: dict[SettingKind, Callable[[Word, str, AccountBook], int | str | None]] = {
    SettingKind.COUNT: _number,
    SettingKind.MILLIONTHS: _factor,
    SettingKind.SHARES: _shares,
    SettingKind.TEXT: _text,
    SettingKind.NAME: _name,
    SettingKind.LEVEL: _level,
}


def _check_qos(names: list[str], book: AccountBook) -> None:
    known = book.names(Subject.QOS)
    for name in names:
        if name not in known:
            raise BadValue(f"You gave a bad qos '{name}'. Valid QOS's are {','.join(known)}")


def _names(
    setting: str, word: Word, present: Settings, book: AccountBook
) -> tuple[str, ...] | None:
    """Return the list after this word: += and -= go on from what is there."""
    names = [name for name in word.value.lower().split(",") if name and name != "-1"]
    if setting == "Flags":
        names = [_flag(name, word) for name in names]
    else:
        _check_qos([name.lstrip("+-") for name in names], book)
    before = names_setting(present, setting)
    if word.operator == "=":
        return tuple(sorted(set(names))) or None
    sign = word.operator[0]
    if setting == "QOS" and not (before and before[0][0] not in "+-"):
        kept = {name for name in before if name[1:] not in names}
        return tuple(sorted(kept | {f"{sign}{name}" for name in names})) or None
    after = set(before) | set(names) if sign == "+" else set(before) - set(names)
    return tuple(sorted(after)) or None


def _flag(name: str, word: Word) -> str:
    for flag in QOS_FLAGS:
        if flag.lower() == name:
            return flag
    raise BadValue(f" Unknown option: {word.text}")
