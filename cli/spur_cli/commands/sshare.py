"""`sshare`: the shares of accounts and users, and how much of them is used."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from spur.slurm.accountbook import AccountBook
from spur.slurm.columns.shares import (
    DEFAULT_FORMAT,
    LONG_FORMAT,
    SHARE_FIELDS,
    ShareLine,
    above_of,
    share_of,
    sums_of,
)
from spur.slurm.sheets import Sheet, UnknownName, helped, parse_sheet
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.accounts import ROOT, AssociationKey
from spur.values.errors import Rejection
from spur.wire.cluster import ConfigInfo, ShowConfig
from spur_cli.registry import Command
from spur_cli.slurm.accounts import Clerk, names_in
from spur_cli.slurm.people import owner_name
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]

Values = Mapping[str, Any]  # as `Layer.values`

_BASE = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""Resources that are always accounted, in Slurm's order."""


def run(arguments: list[str], command: Command) -> int:
    """Show the shares."""
    return guarded("sshare", lambda session: _sshare(session, arguments))


def _sshare(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    values = line.values
    if values.get("help_format"):
        sys.stdout.write(helped((field.name for field in SHARE_FIELDS), width=17))
        return 0
    if words:
        raise SlurmError(error_line("sshare", f"Unrecognized option: {words[0]}"))
    cluster = ""
    if "clusters" in values:
        from spur_cli.slurm.clusters import cluster_meant

        cluster = cluster_meant(session, values["clusters"])
    sheet = _sheet(values)
    book = Clerk(session, {}).book
    if cluster:
        sys.stdout.write(f"CLUSTER: {cluster}\n")
    if not values.get("noheader"):
        sys.stdout.write(sheet.header())
    resources = _resources(session) if _names_resources(sheet) else ""
    sys.stdout.write("".join(map(sheet.line, _lines(session, values, book, resources))))
    return 0


def _sheet(values: Values) -> Sheet[ShareLine]:
    form = values.get("format") or (LONG_FORMAT if values.get("long") else DEFAULT_FORMAT)
    if values.get("partition") and "format" not in values:
        form = form.replace("User,", "User,Partition,", 1)
    is_parted = bool(values.get("parsable") or values.get("parsable2"))
    try:
        return parse_sheet(
            form,
            SHARE_FIELDS,
            delimiter="|" if is_parted else "",
            ends=is_parted and not values.get("parsable2"),
        )
    except UnknownName as error:
        raise SlurmError(error_line("sshare", f'Invalid field requested: "{error}"')) from None


def _names_resources(sheet: Sheet[ShareLine]) -> bool:
    return any(cell.field.name in ("GrpTRESRaw", "TRESRunMins") for cell in sheet.cells)


def _resources(session: Session) -> str:
    """Return no minutes of each resource that the cluster accounts."""
    info = session.ask(ShowConfig(), ConfigInfo)
    if isinstance(info, Rejection):
        raise SlurmError(f"slurm_load_ctl_conf error: {sentence_of(info)}")
    written = {row.name.lower(): row.value for row in info.parameters}
    more = [name for name in written.get("accountingstoragetres", "").lower().split(",") if name]
    names = dict.fromkeys((*_BASE, *more))
    return ",".join(f"{name}=0" for name in names)


def _lines(
    session: Session, values: Values, book: AccountBook, resources: str
) -> Iterator[ShareLine]:
    """Yield the associations that are asked for, down the tree."""
    accounts = names_in(values.get("accounts", ""))
    users = _users(session, values)
    sums = sums_of(book)
    shown: dict[str, int] = {}
    for key in book.associations():
        account, user, _ = key
        if accounts and account not in accounts:
            continue
        if user and users is not None and user not in users:
            continue
        if values.get("users_only") and not user:
            continue
        above = above_of(book, key) if (account, user) != (ROOT, "") else ""
        indent = shown.get(above, -1) + 1
        if not user:
            shown[account] = indent
        yield ShareLine(book, key, indent, _part(book, key, sums, above), resources)


def _users(session: Session, values: Values) -> frozenset[str] | None:
    """Return the users that are shown; None for all."""
    if "users" in values:
        return frozenset(names_in(values["users"]))
    if values.get("all"):
        return None
    return frozenset((owner_name(session.own_uid),))


def _part(book: AccountBook, key: AssociationKey, sums: Mapping[str, int], above: str) -> float:
    if not above or not sums.get(above):
        return 0.0
    return share_of(book, key) / sums[above]
