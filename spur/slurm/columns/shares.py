"""The fields of sshare: whose share of the cluster is how large, and how much of it is used.

While usage does not steer the order of jobs, each association has used nothing, as on a cluster
that is new. Source: sshare(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from spur.slurm.accountbook import AccountBook
from spur.slurm.sheets import SheetField
from spur.values.accounts import (
    ROOT,
    AssociationKey,
    Subject,
    number_setting,
    text_setting,
)

__all__ = [
    "DEFAULT_FORMAT",
    "LONG_FORMAT",
    "SHARE_FIELDS",
    "ShareLine",
    "above_of",
    "share_of",
    "sums_of",
]

DEFAULT_FORMAT = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
LONG_FORMAT = (
    "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,"
    "GrpTRESMins,TRESRunMins"
)

_PARENT = "parent"


class ShareLine(NamedTuple):
    """An association as a line."""

    book: AccountBook
    key: AssociationKey
    indent: int
    of_siblings: float
    """Its shares, as a part of all shares under the same account."""
    resources: str
    """No minutes of each resource that is accounted."""

    @property
    def is_root(self) -> bool:
        """Whether it is the association above all others."""
        return self.key == (ROOT, "", "")


def share_of(book: AccountBook, key: AssociationKey) -> int:
    """Return the shares of an association; 1 where nobody said."""
    found = number_setting(book.settings(Subject.ASSOCIATION, key), "Fairshare")
    return 1 if found is None else found


def _is_parents(book: AccountBook, key: AssociationKey) -> bool:
    return text_setting(book.settings(Subject.ASSOCIATION, key), "Fairshare") == _PARENT


def sums_of(book: AccountBook) -> Mapping[str, int]:
    """Return the shares of all that stand right under each account, added up."""
    found: dict[str, int] = {}
    for key in book.associations():
        if key != (ROOT, "", "") and not _is_parents(book, key):
            above = above_of(book, key)
            found[above] = found.get(above, 0) + share_of(book, key)
    return found


def above_of(book: AccountBook, key: AssociationKey) -> str:
    """Return the account right above an association."""
    if key[1]:
        return key[0]
    return text_setting(book.settings(Subject.ASSOCIATION, key), "Parent") or ROOT


def _shares(line: ShareLine) -> str:
    if line.is_root:
        return ""
    return _PARENT if _is_parents(line.book, line.key) else str(share_of(line.book, line.key))


def _number(line: ShareLine) -> str:
    view = line.book.find(Subject.ASSOCIATION, *line.key)
    return "" if view is None else str(view.number)


SHARE_FIELDS: tuple[SheetField[ShareLine], ...] = (
    SheetField("Account", -20, lambda line: f"{' ' * line.indent}{line.key[0]}"),
    SheetField("Cluster", 10, lambda line: line.book.cluster),
    SheetField("EffectvUsage", 13, lambda line: "1.000000" if line.is_root else "0.000000"),
    SheetField("FairShare", 10, lambda line: "1.000000" if line.key[1] else ""),
    SheetField("GrpTRESMins", 30, lambda line: ""),
    SheetField("GrpTRESRaw", 30, lambda line: line.resources),
    SheetField("ID", 6, _number),
    SheetField("LevelFS", 10, lambda line: "" if line.is_root else "inf"),
    SheetField("NormShares", 11, lambda line: f"{line.of_siblings:.6f}"),
    SheetField("NormUsage", 11, lambda line: "" if line.is_root else "0.000000"),
    SheetField("Partition", 12, lambda line: line.key[2]),
    SheetField("RawShares", 10, _shares),
    SheetField("RawUsage", 11, lambda line: "0"),
    SheetField("TRESRunMins", 30, lambda line: line.resources),
    SheetField("User", 10, lambda line: line.key[1]),
)
