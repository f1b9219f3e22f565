"""The lines in which sacctmgr tells the settings of what it adds.

Source: transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from spur.slurm.accountvalues import format_resources, format_seconds
from spur.values.accounts import (
    SETTINGS,
    SettingKind,
    Settings,
    names_setting,
    number_setting,
    text_setting,
)

__all__ = ["association_lines", "qos_lines"]

_ASSOCIATION = (
    ("Fairshare", "Fairshare     "),
    ("GrpTRESMins", "GrpTRESMins   "),
    ("GrpTRESRunMins", "GrpTRESRunMins"),
    ("GrpTRES", "GrpTRES       "),
    ("GrpJobs", "GrpJobs       "),
    ("GrpJobsAccrue", "GrpJobsAccrue "),
    ("GrpSubmitJobs", "GrpSubmitJobs "),
    ("GrpWall", "GrpWall       "),
    ("MaxTRESMinsPerJob", "MaxTRESMins   "),
    ("MaxTRESRunMins", "MaxTRESRunMins"),
    ("MaxTRESPerJob", "MaxTRES       "),
    ("MaxTRESPerNode", "MaxTRESPerNode"),
    ("MaxJobs", "MaxJobs       "),
    ("MaxJobsAccrue", "MaxJobsAccrue "),
    ("MaxSubmitJobs", "MaxSubmitJobs "),
    ("MaxWallDurationPerJob", "MaxWall       "),
    ("Parent", "Parent        "),
    ("Priority", "Priority      "),
    ("QOS", "QOS           "),
    ("DefaultQOS", "DefQOS        "),
)
"""In the order of Slurm, with the widths of its lines."""

QOS_WIDTH = 24


def association_lines(settings: Settings, *, parent: str = "") -> list[str]:
    """Return the lines of an association's settings."""
    lines = []
    for name, head in _ASSOCIATION:
        text = parent if name == "Parent" else _text(settings, name)
        if text:
            lines.append(f"  {head}= {text}")
    return lines


def qos_lines(settings: Settings) -> list[str]:
    """Return the lines of a QOS's settings but its description."""
    names = [name for name in _names(settings) if name != "Description"]
    return [f"  {name:<{QOS_WIDTH}} = {_text(settings, name)}" for name in names]


def _names(settings: Settings) -> Iterator[str]:
    present = {setting.name for setting in settings}
    return (name for name in SETTINGS if name in present)


def _text(settings: Settings, name: str) -> str:
    kind = SETTINGS[name].kind
    if kind is SettingKind.RESOURCE:
        return format_resources(settings, name)
    if kind in (SettingKind.NAMES, SettingKind.QOS_NAMES):
        return ",".join(names_setting(settings, name))
    number = number_setting(settings, name)
    if kind is SettingKind.SECONDS:
        return format_seconds(number)
    if kind is SettingKind.MILLIONTHS:
        return "" if number is None else f"{number / 1_000_000:f}"
    return text_setting(settings, name) if number is None else str(number)
