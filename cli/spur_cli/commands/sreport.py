"""`sreport`: what accounts and users had of the cluster, from its records."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from spur.slurm.columns.reports import HOUR_S, REPORTS, TIMES, Report, UsageLine, fields_for
from spur.slurm.sheets import UnknownName, parse_sheet
from spur.slurm.timespec import MomentError, format_moment, parse_moment
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import NodeName
from spur.wire.history import JobRecord, RecordFilter, RunRecord
from spur.wire.nodes import ListNodes, NodeList
from spur_cli.registry import Command
from spur_cli.slurm.clusters import own_cluster
from spur_cli.slurm.people import LocalCalendar, owner_name
from spur_cli.slurm.records import fetch_records
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]

Values = Mapping[str, Any]  # as `Layer.values`

_NS = 1_000_000_000
_DAY_S = 86_400
RULE = "-" * 80

_SECTIONS = {
    "cluster": 'cluster reports are, "AccountUtilizationByUser", "UserUtilizationByAccount", '
    '"UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"',
    "job": 'job reports are, "SizesByAccount, SizesByAccountAndWcKey, and SizesByWckey"',
    "reservation": 'reservation reports are, "Utilization"',
    "user": 'user reports are, "TopUsage"',
}

_UNITS = {
    "Percent": "Percentage of Total",
    "SecPer": "CPU Seconds/Percentage of Total",
    "MinPer": "CPU Minutes/Percentage of Total",
    "HourPer": "CPU Hours/Percentage of Total",
}


class _Asked(NamedTuple):
    """The words behind a report's name."""

    start_s: int
    end_s: int
    accounts: tuple[str, ...]
    users: tuple[str, ...]
    top: int
    form: str


def run(arguments: list[str], command: Command) -> int:
    """Write a report."""
    return guarded("sreport", lambda session: _sreport(session, arguments))


def _sreport(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    values = {**session.environment_options().values, **line.values}
    if not words:
        sys.stdout.write("sreport: \n")
        return 0
    section = next((name for name in _SECTIONS if name.startswith(words[0].lower())), "")
    if not section:
        raise SlurmError(f"invalid keyword: {words[0]}")
    wanted = words[1].lower() if len(words) > 1 else ""
    report = next(
        (
            row
            for row in REPORTS
            if row.section == section and wanted and row.name.lower().startswith(wanted)
        ),
        None,
    )
    if report is None:
        names = _SECTIONS[section].lower()
        if wanted and f'"{wanted}' in names.replace(", ", '", "'):
            raise SlurmError(error_line("sreport", f"{words[1]} is not honoured yet"))
        told = f"Not valid report {words[1] if len(words) > 1 else ''}"
        raise SlurmError(told, f"Valid {_SECTIONS[section]}")
    return _write(session, values, report, _asked(words[2:]))


def _asked(words: list[str]) -> _Asked:
    """Read the words behind a report's name. Source: sreport(1) OPTIONS of each report."""
    calendar = LocalCalendar()
    found: dict[str, str] = {}
    for word in words:
        key, _, value = word.partition("=")
        found[key.lower()] = value
    midnight = parse_moment("today", calendar, is_past=True)
    try:
        start_s = parse_moment(found["start"], calendar, is_past=True) if "start" in found else 0
        end_s = parse_moment(found["end"], calendar, is_past=True) if "end" in found else 0
    except MomentError as error:
        raise SlurmError(error_line("sreport", f"Invalid time specification: {error}")) from None
    end_s = (end_s or midnight) // HOUR_S * HOUR_S
    start_s = (start_s or midnight - _DAY_S) // HOUR_S * HOUR_S
    return _Asked(
        start_s,
        max(end_s, start_s),
        _names(found.get("accounts", found.get("account", ""))),
        _names(found.get("users", found.get("user", ""))),
        int(top) if (top := found.get("topcount", "10")).isdigit() else 10,
        found.get("format", ""),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _write(session: Session, values: Values, report: Report, asked: _Asked) -> int:
    time = _time(values.get("time", "Minutes"))
    is_parted = bool(values.get("parsable") or values.get("parsable2"))
    try:
        sheet = parse_sheet(
            asked.form or report.columns,
            fields_for(time),
            delimiter="|" if is_parted else "",
            ends=is_parted and not values.get("parsable2"),
        )
    except UnknownName as error:
        raise SlurmError(error_line("sreport", f'Invalid field requested: "{error}"')) from None
    if not values.get("noheader"):
        calendar = LocalCalendar()
        first, last = (format_moment(each, calendar) for each in (asked.start_s, asked.end_s - 1))
        unit = _UNITS.get(time, f"CPU {time}")
        sys.stdout.write(
            f"{RULE}\n{report.title.format(asked.top)} {first} - {last}"
            f" ({asked.end_s - asked.start_s} secs)\nUsage reported in {unit}\n{RULE}\n"
        )
        sys.stdout.write(sheet.header())
    for line in _lines(session, report, asked, time):
        sys.stdout.write(sheet.line(line))
    return 0


def _time(text: str) -> str:
    found = next((name for name in TIMES if name.lower().startswith(text.lower())), "")
    if not found or not text:
        raise SlurmError(f"unknown time format {text}")
    return found


def _lines(session: Session, report: Report, asked: _Asked, time: str) -> Iterator[UsageLine]:
    """Yield what users had, with what their accounts had before them where that is asked."""
    end_s = min(asked.end_s, LocalCalendar().now() // HOUR_S * HOUR_S)
    wanted = RecordFilter(
        start_ns=asked.start_s * _NS, end_ns=max(end_s, 1) * _NS, accounts=asked.accounts,
        all_runs=True,
    )  # fmt: skip
    found = fetch_records(session, wanted) if end_s > asked.start_s else []
    if isinstance(found, Rejection):
        raise SlurmError(error_line("sreport", sentence_of(found)))
    sums: dict[tuple[str, int], int] = {}
    for job in found:
        for each in job.runs:
            had = _had(each, asked.start_s, end_s)
            if had and _is_asked(job, asked):
                key = (job.spec.account, job.uid)
                sums[key] = sums.get(key, 0) + had
    if not sums:
        return
    cluster = own_cluster(session)
    whole_s = _cpus(session) * (asked.end_s - asked.start_s)
    rows = [
        UsageLine(cluster, account, owner_name(uid), _proper_name(uid), had, whole_s, time)
        for (account, uid), had in sums.items()
    ]
    if not report.by_account:
        rows.sort(key=lambda row: -row.used_s)
        yield from rows[: asked.top] if report.name == "TopUsage" else rows
        return
    for account in sorted({row.account for row in rows}):
        members = sorted((row for row in rows if row.account == account), key=lambda row: row.login)
        used_s = sum(row.used_s for row in members)
        yield UsageLine(cluster, account, "", "", used_s, whole_s, time)
        yield from members


def _had(each: RunRecord, start_s: int, end_s: int) -> int:
    """Return CPUs times seconds of a run within some hours."""
    if not each.start_ns:
        return 0
    until_s = each.end_ns // _NS if each.end_ns else end_s
    length_s = min(until_s, end_s) - max(each.start_ns // _NS, start_s)
    return max(length_s, 0) * sum(share.cpus for share in each.shares)


def _is_asked(job: JobRecord, asked: _Asked) -> bool:
    return not asked.users or owner_name(job.uid) in asked.users


def _proper_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_gecos.partition(",")[0]
    except KeyError:
        return ""


def _cpus(session: Session) -> int:
    """Return the CPUs of the whole cluster."""
    total = 0
    after: NodeName | None = NodeName("")
    while after is not None:
        page = session.ask(ListNodes("", after, 1000), NodeList)
        if isinstance(page, Rejection):
            raise SlurmError(error_line("sreport", sentence_of(page)))
        total += sum(node.cpus for node in page.nodes)
        after = page.next
    return total
