"""The fields of sacctmgr's listings, and the lines that they make.

Source: sacctmgr(1) LIST/SHOW ... FORMAT OPTIONS; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spur.slurm.accountbook import AccountBook
from spur.slurm.accountvalues import format_resources, format_seconds
from spur.values.accounts import (
    AdminLevel,
    AssociationKey,
    Setting,
    Settings,
    Subject,
    allowed_qos,
    names_setting,
    number_setting,
    text_setting,
)

__all__ = [
    "DEFAULT_FIELDS",
    "FIELDS",
    "Cell",
    "Field",
    "Line",
    "Sheet",
    "UnknownField",
    "parse_sheet",
    "with_inherited",
]


class UnknownField(ValueError):
    """A name that no field has."""


class Line(NamedTuple):
    """What one line is about; what does not apply is empty."""

    book: AccountBook
    account: str = ""
    user: str = ""
    association: AssociationKey | None = None
    qos: str = ""
    settings: Settings = ()
    """Of the association, with what it inherits; or of the QOS."""
    is_raw: bool = False
    """Whether an association shows what it has itself, and nothing inherited."""
    indent: int | None = None
    """How far an account stands in, in a tree."""


class Field(NamedTuple):
    """One field."""

    name: str
    letters: int
    """Letters of the name that are enough."""
    head: str
    width: int
    value: Callable[[Line], str]


class Cell(NamedTuple):
    """A field in a listing."""

    field: Field
    width: int
    is_left: bool


class Sheet(NamedTuple):
    """What makes a listing."""

    cells: tuple[Cell, ...]
    delimiter: str = ""
    """Empty for columns."""
    ends_with_delimiter: bool = False

    def header(self) -> str:
        """Return the headings, in columns with a line under them."""
        if self.delimiter:
            return self._joined([cell.field.head for cell in self.cells])
        heads = "".join(f"{_pad(cell, cell.field.head[: cell.width])} " for cell in self.cells)
        return f"{heads}\n" + "".join(f"{'-' * cell.width} " for cell in self.cells) + "\n"

    def line(self, line: Line) -> str:
        """Return one line."""
        values = [cell.field.value(line) for cell in self.cells]
        if self.delimiter:
            return self._joined(values)
        pairs = zip(self.cells, values, strict=True)
        return "".join(f"{_cut(cell, value)} " for cell, value in pairs) + "\n"

    def _joined(self, values: list[str]) -> str:
        end = self.delimiter if self.ends_with_delimiter else ""
        return f"{self.delimiter.join(values)}{end}\n"


def _pad(cell: Cell, text: str) -> str:
    return text.ljust(cell.width) if cell.is_left else text.rjust(cell.width)


def _cut(cell: Cell, text: str) -> str:
    if len(text) > cell.width > 0:
        text = f"{text[: cell.width - 1]}+"
    return _pad(cell, text)


# -- values
def _count(name: str, resource: str = "") -> Callable[[Line], str]:
    def value(line: Line) -> str:
        found = number_setting(line.settings, name, resource)
        return "" if found is None else str(found)

    return value


def _resources(name: str) -> Callable[[Line], str]:
    return lambda line: format_resources(line.settings, name)


def _time(name: str, empty: str = "") -> Callable[[Line], str]:
    return lambda line: format_seconds(number_setting(line.settings, name)) or empty


def _factor(name: str, default: int | None) -> Callable[[Line], str]:
    def value(line: Line) -> str:
        found = number_setting(line.settings, name)
        found = default if found is None else found
        return "" if found is None else f"{found / 1_000_000:.6f}"

    return value


def _names(name: str) -> Callable[[Line], str]:
    return lambda line: ",".join(names_setting(line.settings, name))


def _of_account(name: str) -> Callable[[Line], str]:
    def value(line: Line) -> str:
        settings = line.book.settings(Subject.ACCOUNT, (line.account,))
        return text_setting(settings, name) or line.account

    return value


def _of_user(name: str) -> Callable[[Line], str]:
    return lambda line: text_setting(line.book.settings(Subject.USER, (line.user,)), name)


_ADMIN = {AdminLevel.OPERATOR: "Operator", AdminLevel.ADMINISTRATOR: "Administrator"}


def _admin(line: Line) -> str:
    level = _of_user("AdminLevel")(line)
    return _ADMIN.get(AdminLevel(level), "None") if level else "None"


def _fairshare(line: Line) -> str:
    if line.association is None:
        return ""
    word = text_setting(line.settings, "Fairshare")
    number = number_setting(line.settings, "Fairshare")
    return word or ("1" if number is None else str(number))


def _parent(line: Line) -> str:
    if line.association is None or line.association[1]:
        return ""
    return text_setting(line.book.settings(Subject.ASSOCIATION, line.association), "Parent")


def _qos(line: Line) -> str:
    if line.association is None:
        return ""
    if line.is_raw and line.association[1]:
        return ",".join(names_setting(line.settings, "QOS"))
    return ",".join(allowed_qos(line.book.line(line.association)))


def _number(line: Line) -> str:
    if line.association is not None:
        view = line.book.find(Subject.ASSOCIATION, *line.association)
    else:
        view = line.book.find(Subject.QOS, line.qos)
    return "" if view is None else str(view.number)


def _tree_account(line: Line) -> str:
    return line.account if line.indent is None else f"{' ' * line.indent}{line.account}"


_ACCOUNT = Field("Account", 3, "Account", 10, _tree_account)
_USER = Field("User", 1, "User", 10, lambda line: line.user)
_DESCRIPTION = Field("Description", 1, "Descr", 20, _of_account("Description"))

_GROUP = (
    Field("GrpCPUMins", 8, "GrpCPUMins", 11, _count("GrpTRESMins", "cpu")),
    Field("GrpCPURunMins", 7, "GrpCPURunMins", 13, _count("GrpTRESRunMins", "cpu")),
    Field("GrpCPUs", 7, "GrpCPUs", 8, _count("GrpTRES", "cpu")),
    Field("GrpJobs", 4, "GrpJobs", 7, _count("GrpJobs")),
    Field("GrpJobsAccrue", 8, "GrpJobsAccrue", 13, _count("GrpJobsAccrue")),
    Field("GrpMemory", 4, "GrpMem", 7, _count("GrpTRES", "mem")),
    Field("GrpNodes", 4, "GrpNodes", 8, _count("GrpTRES", "node")),
    Field("GrpSubmitJobs", 4, "GrpSubmit", 9, _count("GrpSubmitJobs")),
    Field("GrpTRES", 7, "GrpTRES", 13, _resources("GrpTRES")),
    Field("GrpTRESMins", 8, "GrpTRESMins", 13, _resources("GrpTRESMins")),
    Field("GrpTRESRunMins", 8, "GrpTRESRunMins", 13, _resources("GrpTRESRunMins")),
    Field("GrpWall", 4, "GrpWall", 11, _time("GrpWall")),
)

_ASSOCIATION = (
    _USER,
    _ACCOUNT,
    Field("Cluster", 2, "Cluster", 10, lambda line: line.book.cluster if line.association else ""),
    Field("DefaultQOS", 8, "Def QOS", 9, lambda line: text_setting(line.settings, "DefaultQOS")),
    Field("Fairshare", 1, "Share", 9, _fairshare),
    Field("Share", 1, "Share", 9, _fairshare),
    *_GROUP,
    Field("ID", 1, "ID", 6, _number),
    Field("MaxCPUMinsPerJob", 7, "MaxCPUMins", 11, _count("MaxTRESMinsPerJob", "cpu")),
    Field("MaxCPUsPerJob", 7, "MaxCPUs", 8, _count("MaxTRESPerJob", "cpu")),
    Field("MaxJobs", 4, "MaxJobs", 7, _count("MaxJobs")),
    Field("MaxJobsAccrue", 8, "MaxJobsAccrue", 13, _count("MaxJobsAccrue")),
    Field("MaxNodesPerJob", 4, "MaxNodes", 8, _count("MaxTRESPerJob", "node")),
    Field("MaxSubmitJobs", 4, "MaxSubmit", 9, _count("MaxSubmitJobs")),
    Field("MaxTRESPerJob", 7, "MaxTRES", 13, _resources("MaxTRESPerJob")),
    Field("MaxTRESPerNode", 11, "MaxTRESPerNode", 14, _resources("MaxTRESPerNode")),
    Field("MaxTRESMinsPerJob", 8, "MaxTRESMins", 13, _resources("MaxTRESMinsPerJob")),
    Field("MaxTRESRunMins", 8, "MaxTRESRunMins", 13, _resources("MaxTRESRunMins")),
    Field("MaxWallDurationPerJob", 4, "MaxWall", 11, _time("MaxWallDurationPerJob")),
    Field("MinPrioThreshold", 4, "MinPrioThres", 10, _count("MinPrioThreshold")),
    Field("ParentName", 7, "ParentName", 10, _parent),
    Field("Partition", 4, "Partition", 10, lambda line: (line.association or ("", "", ""))[2]),
    Field("Priority", 3, "Priority", 10, _count("Priority")),
    Field("QosLevel", 1, "QOS", 20, _qos),
)

_COORDINATED = Field(
    "Coordinators",
    2,
    "Coord Accounts",
    20,
    lambda line: (
        ",".join(line.book.coordinated(line.user))
        if line.user
        else ",".join(line.book.coordinators(line.account))
    ),
)

_QOS = (
    Field(
        "Description",
        1,
        "Descr",
        20,
        lambda line: text_setting(line.settings, "Description") or line.qos,
    ),
    Field("Flags", 1, "Flags", 20, _names("Flags")),
    Field("GraceTime", 3, "GraceTime", 10, _time("GraceTime", "00:00:00")),
    *_GROUP,
    Field("ID", 1, "ID", 6, _number),
    Field("LimitFactor", 3, "LimitFactor", 11, _factor("LimitFactor", None)),
    Field("MaxCPUMinsPerJob", 7, "MaxCPUMins", 11, _count("MaxTRESMinsPerJob", "cpu")),
    Field("MaxCPUsPerJob", 7, "MaxCPUs", 8, _count("MaxTRESPerJob", "cpu")),
    Field("MaxJobsPA", 9, "MaxJobsPA", 9, _count("MaxJobsPerAccount")),
    Field("MaxJobsPU", 4, "MaxJobsPU", 9, _count("MaxJobsPerUser")),
    Field("MaxJobsAccruePA", 15, "MaxJobsAccruePA", 15, _count("MaxJobsAccruePerAccount")),
    Field("MaxJobsAccruePU", 8, "MaxJobsAccruePU", 15, _count("MaxJobsAccruePerUser")),
    Field("MaxNodesPerJob", 4, "MaxNodes", 8, _count("MaxTRESPerJob", "node")),
    Field("MaxSubmitJobsPA", 15, "MaxSubmitPA", 11, _count("MaxSubmitJobsPerAccount")),
    Field("MaxSubmitPA", 11, "MaxSubmitPA", 11, _count("MaxSubmitJobsPerAccount")),
    Field("MaxSubmitJobsPU", 4, "MaxSubmitPU", 11, _count("MaxSubmitJobsPerUser")),
    Field("MaxSubmitPU", 11, "MaxSubmitPU", 11, _count("MaxSubmitJobsPerUser")),
    Field("MaxTRESPA", 9, "MaxTRESPA", 13, _resources("MaxTRESPerAccount")),
    Field("MaxTRESPU", 9, "MaxTRESPU", 13, _resources("MaxTRESPerUser")),
    Field("MaxTRESPerAccount", 11, "MaxTRESPA", 13, _resources("MaxTRESPerAccount")),
    Field("MaxTRESPerJob", 7, "MaxTRES", 13, _resources("MaxTRESPerJob")),
    Field("MaxTRESPerNode", 11, "MaxTRESPerNode", 14, _resources("MaxTRESPerNode")),
    Field("MaxTRESPerUser", 11, "MaxTRESPU", 13, _resources("MaxTRESPerUser")),
    Field("MaxTRESMinsPerJob", 8, "MaxTRESMins", 13, _resources("MaxTRESMinsPerJob")),
    Field("MaxTRESRunMinsPA", 16, "MaxTRESRunMinsPA", 15, _resources("MaxTRESRunMinsPerAccount")),
    Field("MaxTRESRunMinsPU", 8, "MaxTRESRunMinsPU", 15, _resources("MaxTRESRunMinsPerUser")),
    Field("MaxWallDurationPerJob", 4, "MaxWall", 11, _time("MaxWallDurationPerJob")),
    Field("MinTRESPerJob", 7, "MinTRES", 13, _resources("MinTRESPerJob")),
    Field("Name", 1, "Name", 10, lambda line: line.qos),
    Field("PreemptExemptTime", 8, "PreemptExemptTime", 19, _time("PreemptExemptTime")),
    Field(
        "PreemptMode",
        8,
        "PreemptMode",
        11,
        lambda line: text_setting(line.settings, "PreemptMode") or "cluster",
    ),
    Field("Preempt", 3, "Preempt", 10, _names("Preempt")),
    Field(
        "Priority",
        3,
        "Priority",
        10,
        lambda line: str(number_setting(line.settings, "Priority") or 0),
    ),
    Field("UsageFactor", 6, "UsageFactor", 11, _factor("UsageFactor", 1_000_000)),
    Field("UsageThreshold", 6, "UsageThres", 10, _factor("UsageThreshold", None)),
)

FIELDS: dict[str, tuple[Field, ...]] = {
    "account": (
        _ACCOUNT,
        _DESCRIPTION,
        Field("Organization", 1, "Org", 20, _of_account("Organization")),
        _COORDINATED,
        *_ASSOCIATION,
    ),
    "user": (
        _USER,
        Field("DefaultAccount", 8, "Def Acct", 10, _of_user("DefaultAccount")),
        Field("AdminLevel", 2, "Admin", 9, _admin),
        _COORDINATED,
        *_ASSOCIATION,
    ),
    "association": _ASSOCIATION,
    "qos": _QOS,
}

_OF_ACCOUNT = (
    "cluster,parentname,user,share,priority,grpjobs,grpnodes,grpcpus,grpmemory,grpsubmitjobs,"
    "grpwall,grpcpumins,maxjobs,maxnodesperjob,maxcpusperjob,maxsubmitjobs,maxwall,"
    "maxcpuminsperjob,qoslevel,defaultqos"
)
_OF_USER = (
    "cluster,account,partition,share,priority,maxjobs,maxnodesperjob,maxcpusperjob,maxsubmitjobs,"
    "maxwall,maxcpuminsperjob,qoslevel,defaultqos"
)

DEFAULT_FIELDS = {
    "account": "account,description,organization",
    "account withassoc": f"account,description,organization,{_OF_ACCOUNT}",
    "user": "user,defaultaccount,adminlevel",
    "user withassoc": f"user,defaultaccount,adminlevel,{_OF_USER}",
    "association": (
        "cluster,account,user,partition,share,priority,grpjobs,grptres,grpsubmitjobs,grpwall,"
        "grptresmins,maxjobs,maxtresperjob,maxtrespernode,maxsubmitjobs,maxwall,maxtresminsperjob,"
        "qoslevel,defaultqos,grptresrunmins"
    ),
    "qos": (
        "name,priority,gracetime,preempt,preemptexempttime,preemptmode,flags%40,usagethreshold,"
        "usagefactor,grptres,grptresmins,grptresrunmins,grpjobs,grpsubmitjobs,grpwall,"
        "maxtresperjob,maxtrespernode,maxtresminsperjob,maxwall,maxtrespu,maxjobspu,maxsubmitpu,"
        "maxtrespa,maxjobspa,maxsubmitpa,mintresperjob"
    ),
}
"""What is shown without format=."""


def parse_sheet(entity: str, text: str, *, parsable: str = "", ends: bool = False) -> Sheet:
    """Read a format; of a field that is named twice the last counts.

    Raises: UnknownField with the name.
    """
    cells: dict[str, Cell] = {}
    for word in text.lower().split(","):
        name, percent, size = word.partition("%")
        if not name:
            continue
        field = _find(FIELDS[entity], name)
        width = field.width
        digits = size.removeprefix("-")
        is_left = False
        if percent and digits.isascii() and digits.isdigit():
            width, is_left = min(int(digits[:9]), 65_535), size.startswith("-")
        cells.pop(field.head, None)
        cells[field.head] = Cell(field, width, is_left)
    return Sheet(tuple(cells.values()), parsable, ends)


def _find(fields: Sequence[Field], name: str) -> Field:
    for field in fields:
        known = field.name.lower()
        if name == known or (len(name) >= field.letters and known.startswith(name)):
            return field
    raise UnknownField(name)


def with_inherited(book: AccountBook, key: AssociationKey) -> tuple[Setting, ...]:
    """Return the settings of a user's association as sacctmgr shows them.

    What it lacks of Max* limits, default QOS and priority comes from the accounts above; an account
    shows them likewise, and limits of a group stay where they are set.
    """
    line = book.line(key)
    own = {(setting.name, setting.resource): setting for setting in (line[0] if line else ())}
    for settings in line[1:]:
        for setting in settings:
            if setting.name.startswith("Max") or setting.name == "DefaultQOS":
                own.setdefault((setting.name, setting.resource), setting)
    return tuple(own[pair] for pair in sorted(own))
