"""Keywords of scontrol that are about the controllers, and those that only look something up."""

from __future__ import annotations

import os
import sys
import time

from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError, sentence_of, sentence_of_number
from spur.values.errors import Rejection
from spur.values.members import HEARD_MS_MAX
from spur.wire.cluster import ClusterInfo, SetParameter, ShowCluster
from spur.wire.controllers import ControllerInfo, ControllerList, HandOver, ShowControllers
from spur.wire.declare import Done
from spur_cli.slurm.session import Session
from spur_cli.slurm.sitewide import config_text

__all__ = [
    "choose_cluster",
    "create_reservation",
    "dampen",
    "explain_number",
    "fetch_token",
    "set_debug",
    "set_debug_flags",
    "set_schedule_log",
    "shutdown",
    "take_over",
    "write_config",
]

_NOT_HERE = "Requested operation not supported on this system"
_DISABLED = "Requested operation is presently disabled"

_LEVELS = (
    "quiet",
    "fatal",
    "error",
    "info",
    "verbose",
    "debug",
    "debug2",
    "debug3",
    "debug4",
    "debug5",
)
"""Of the log, by number. Source: slurm.conf(5) SlurmctldDebug."""

_FLAGS = frozenset(
    [
        "accrue",
        "agent",
        "auditrpcs",
        "backfill",
        "backfillmap",
        "burstbuffer",
        "cgroup",
        "cpubind",
        "cpufreq",
        "data",
        "dbdagent",
        "dependency",
        "elasticsearch",
        "energy",
        "extsensors",
        "federation",
        "frontend",
        "gres",
        "hetero",
        "gang",
        "interconnect",
        "jobcontainer",
        "license",
        "mpi",
        "network",
        "networkraw",
        "nodefeatures",
        "no_conf_hash",
        "power",
        "powersave",
        "priority",
        "profile",
        "protocol",
        "reservation",
        "route",
        "script",
        "selecttype",
        "steps",
        "switch",
        "timecray",
        "traceform",
        "tracejobs",
        "triggers",
        "workqueue",
        "wckey",
        "dbdsql",
    ]
)
"""Source: slurm.conf(5) DebugFlags."""


def _set(session: Session, name: str, value: str, said: str) -> int:
    answer = session.ask(SetParameter(name, value), Done)
    if isinstance(answer, Rejection):
        sentence = "Permission denied" if answer.code == "not-permitted" else sentence_of(answer)
        raise SlurmError(f"{said} error: {sentence}")
    return 0


def _one_word(words: list[str], keyword: str) -> str:
    if len(words) > 1:
        raise SlurmError(f"too many arguments for keyword:{keyword}")
    if not words:
        raise SlurmError(f"too few arguments for keyword:{keyword}")
    return words[0]


def set_debug(session: Session, line: Layer, words: list[str]) -> int:
    """Change how much the controllers write into their logs."""
    word = _one_word(words, "setdebug").lower()
    if word.isdigit() and int(word) < len(_LEVELS):
        word = _LEVELS[int(word)]
    if word not in _LEVELS:
        raise SlurmError(f"invalid debug level: {words[0]}")
    return _set(session, "SlurmctldDebug", word, "slurm_set_debug_level")


def set_debug_flags(session: Session, line: Layer, words: list[str]) -> int:
    """Take or drop flags of the log; they are kept, and nothing follows from them."""
    if not words:
        raise SlurmError("too few arguments for keyword:setdebugflags")
    for word in words:
        flag = word.lstrip("+-").lower()
        if word[:1] not in "+-" or flag not in _FLAGS:
            raise SlurmError(
                f"invalid debug flag: {word}", "Usage: setdebugflags [+|-]NAME", status=1
            )
    return _set(session, "DebugFlags", ",".join(words), "slurm_set_debug_flags")


def set_schedule_log(session: Session, line: Layer, words: list[str]) -> int:
    """Refuse a log of the scheduler's own, as Slurm does where none is configured."""
    word = _one_word(words, "schedloglevel").lower()
    if word not in ("0", "1", "disable", "enable"):
        raise SlurmError(f"invalid schedlog level: {words[0]}")
    sentence = _DISABLED if session.is_root else "Permission denied"
    raise SlurmError(f"slurm_set_schedlog_level error: {sentence}")


def dampen(session: Session, line: Layer, words: list[str]) -> int:
    """Keep a factor of fair share; nothing follows from it so far."""
    word = _one_word(words, "fsdampeningfactor")
    if not (word.isascii() and word.isdigit() and 0 < int(word) < 65_536):
        raise SlurmError(f"invalid dampening factor: {word}")
    return _set(session, "FairShareDampeningFactor", word, "slurm_set_fs_dampeningfactor")


def shutdown(session: Session, line: Layer, words: list[str]) -> int:
    """Refuse it: controllers and agents end by the service manager that started them."""
    sentence = _NOT_HERE if session.is_root else "Invalid user id"
    raise SlurmError(f"slurm_shutdown error: {sentence}")


def choose_cluster(session: Session, line: Layer, words: list[str]) -> int:
    """Take the cluster's own name; there is no other."""
    info = session.ask(ShowCluster(), ClusterInfo)
    name = "" if isinstance(info, Rejection) or info.settings is None else info.settings.name
    for word in words[:1]:
        if word != name:
            raise SlurmError(
                f"scontrol: error: '{word}' can't be reached now, or it is an invalid entry for "
                "--cluster.  Use 'sacctmgr list clusters' to see available clusters."
            )
    return 0


def fetch_token(session: Session, line: Layer, words: list[str]) -> int:
    """Refuse it: rights come from the connection, not from a token."""
    for word in words:
        key, _, _ = word.partition("=")
        if key.lower() not in ("lifespan", "username"):
            raise SlurmError(f"scontrol: error: Invalid option: `{word}`")
    raise SlurmError(f"scontrol: error: Error fetching token: {_NOT_HERE}")


def explain_number(session: Session, line: Layer, words: list[str]) -> int:
    """Say what an error number of Slurm or of the system means."""
    if len(words) != 1:
        raise SlurmError("one arguments required for keyword:errnumstr")
    if not words[0].isdigit():
        raise SlurmError("numeric arguments required for keyword:errnumstr")
    number = int(words[0])
    found = sentence_of_number(number) or os.strerror(number)
    sys.stdout.write(f"{found}\n")
    return 0


def take_over(session: Session, line: Layer, words: list[str]) -> int:
    """Let another controller lead: the first that can, or the one of a number.

    Source: scontrol(1) takeover.
    """
    if len(words) > 1:
        raise SlurmError("takeover: too many arguments")
    found = session.ask(ShowControllers(), ControllerList)
    if not isinstance(found, ControllerList):
        raise SlurmError(f"slurm_takeover error: {sentence_of(found)}")
    members = list(found.controllers)
    if len(members) < 2:
        raise SlurmError("takeover: no backup controller defined")
    wanted = _named(session, members, words[0]) if words else None
    leader = next((member for member in members if member.leads), None)
    if leader is None:
        raise SlurmError("slurm_takeover error: no controller leads; ask again")
    if wanted is not None and wanted.node_id == leader.node_id:
        return 0
    answer = session.ask(HandOver(leader.node_id, 0 if wanted is None else wanted.node_id), Done)
    if isinstance(answer, Rejection):
        raise SlurmError(f"slurm_takeover error: {sentence_of(answer)}")
    return 0


def _named(session: Session, members: list[ControllerInfo], text: str) -> ControllerInfo:
    """Return the controller of a number, in the order of the configuration."""
    info = session.ask(ShowCluster(), ClusterInfo)
    hosts = info.settings.controllers if isinstance(info, ClusterInfo) and info.settings else ()
    by_name = {member.name: member for member in members}
    ordered = [by_name[host.name] for host in hosts if host.name in by_name]
    ordered += [member for member in members if member not in ordered]
    index = int(text) if text.isdigit() else -1
    if not 0 <= index < len(ordered):
        raise SlurmError(f"takeover: invalid backup controller index ({text})")
    if not 0 <= ordered[index].heard_ms <= HEARD_MS_MAX:
        raise SlurmError("slurm_takeover error: Unable to contact slurm controller")
    return ordered[index]


def write_config(session: Session, path: str) -> int:
    """Write the configuration in force into a file, whose name ends with the time."""
    text = config_text(session)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
    conf = session.environment.get("SLURM_CONF") or "/etc/slurm/slurm.conf"
    name = f"{path or conf}.{stamp}"
    try:
        with open(name, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        raise SlurmError(f"scontrol: error: Can't open `{name}`: {error.strerror}") from error
    sys.stdout.write(f"Slurm config saved to {name}\n")
    return 0


_RESERVATION_KEYS = frozenset(
    [
        "reservationname",
        "reservation",
        "accounts",
        "allowedpartitions",
        "burstbuffer",
        "corecnt",
        "cpucnt",
        "duration",
        "endtime",
        "flags",
        "features",
        "groups",
        "licenses",
        "maxstartdelay",
        "nodecnt",
        "nodecount",
        "nodes",
        "partitionname",
        "partition",
        "qos",
        "skip",
        "starttime",
        "tres",
        "trespernode",
        "users",
        "user",
        "account",
        "watts",
    ]
)


def create_reservation(session: Session, pairs: list[tuple[str, str]]) -> int:
    """Judge what is asked as Slurm does; reservations themselves are not there yet.

    Source: scontrol(1), RESERVATIONS - SPECIFICATIONS.
    """
    ending = "No reservation created."
    values = {key.rstrip("+-").lower(): value for key, value in pairs if key}
    for key, _value in pairs:
        if key.rstrip("+-").lower() not in _RESERVATION_KEYS:
            raise SlurmError(f"scontrol: error: Unknown parameter {key}.  {ending}")
    if "starttime" not in values:
        raise SlurmError(f"scontrol: error: A start time must be given.  {ending}")
    if not values.keys() & {"endtime", "duration"}:
        raise SlurmError(f"scontrol: error: An end time or duration must be given.  {ending}")
    if not values.keys() & {
        "corecnt", "nodes", "nodecnt", "burstbuffer", "licenses", "watts", "tres"
    }:  # fmt: skip
        raise SlurmError(
            "scontrol: error: CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be"
            f" specified.  {ending}"
        )
    users = values.keys() & {"users", "user", "groups", "accounts", "account"}
    if not users:
        raise SlurmError(
            f"scontrol: error: Either Users/Groups and/or Accounts must be specified.  {ending}"
        )
    if values.keys() & {"users", "user"} and "groups" in values:
        raise SlurmError(
            "scontrol: error: Users and Groups are mutually exclusive.  You can have one or the"
            f" other, but not both.  {ending}"
        )
    raise SlurmError(f"Error creating the reservation: {_NOT_HERE}")
