"""The reports of sreport: what accounts and users had of the cluster, by whole hours that are over.

An hour counts when it is over, as Slurm's roll-up has it. Source: sreport(1); transcripts of Slurm
22.05.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spur.slurm.sheets import SheetField

__all__ = ["HOUR_S", "REPORTS", "TIMES", "Report", "UsageLine", "fields_for", "used"]

HOUR_S = 3600

TIMES = ("Seconds", "Minutes", "Hours", "Percent", "SecPer", "MinPer", "HourPer")
"""What -t takes, in full; each may be cut short."""

_DIVISORS = {"Sec": 1, "Min": 60, "Hou": HOUR_S}


class UsageLine(NamedTuple):
    """What an account, or a user of one, had."""

    cluster: str
    account: str
    login: str
    proper_name: str
    used_s: int
    """CPUs times seconds."""
    whole_s: int
    """What all of the cluster could have given."""
    time: str
    """One of `TIMES`."""


class Report(NamedTuple):
    """One report."""

    section: str
    name: str
    title: str
    columns: str
    by_account: bool
    """Whether a line adds up an account; else there are users alone."""


REPORTS = (
    Report(
        "cluster",
        "AccountUtilizationByUser",
        "Cluster/Account/User Utilization",
        "Cluster,Account,Login,Proper,Used,Energy",
        True,
    ),
    Report(
        "cluster",
        "UserUtilizationByAccount",
        "Cluster/User/Account Utilization",
        "Cluster,Login,Proper,Account,Used,Energy",
        False,
    ),
    Report("user", "TopUsage", "Top {} Users", "Cluster,Login,Proper,Account,Used,Energy", False),
)


def used(line: UsageLine, amount_s: int) -> str:
    """Return an amount as -t asks."""
    percent = f"{100 * amount_s / line.whole_s if line.whole_s else 0:.2f}%"
    if line.time == "Percent":
        return percent
    divisor = _DIVISORS[line.time[:3]]
    count = str((amount_s + divisor // 2) // divisor)
    return f"{count}({percent})" if line.time.endswith("Per") else count


def _amount(name: str, value: Callable[[UsageLine], int], width: int) -> SheetField[UsageLine]:
    return SheetField(name, width, lambda line: used(line, value(line)))


def fields_for(time: str) -> tuple[SheetField[UsageLine], ...]:
    """Return the fields; amounts are wider where they are told in two ways."""
    width = 17 if time.endswith("Per") else 8
    return (
        SheetField("Cluster", 9, lambda line: line.cluster),
        SheetField("Account", 15, lambda line: line.account),
        SheetField("Login", 9, lambda line: line.login),
        SheetField("Proper", 15, lambda line: line.proper_name, "Proper Name"),
        _amount("Used", lambda line: line.used_s, width),
        _amount("Energy", lambda line: 0, width),
    )
