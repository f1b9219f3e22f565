"""What `scontrol show` tells of the whole cluster: configuration, network, daemons, accounts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from spur.slurm.layers import Layer
from spur.slurm.showconfig import show_config as config_lines
from spur.slurm.timespec import format_moment
from spur.slurm.wording import SlurmError, sentence_of
from spur.values.config import TopologyUnit
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.states import JobState
from spur.wire.cluster import ConfigInfo, ShowConfig
from spur.wire.jobs import JobFilter
from spur_cli.slurm.people import LocalCalendar
from spur_cli.slurm.queue import fetch_queue
from spur_cli.slurm.session import Session
from spur_cli.slurm.shows import fetch_nodes, ping

__all__ = [
    "config_text",
    "show_associations",
    "show_completing",
    "show_config",
    "show_daemons",
    "show_federation",
    "show_slurmd",
    "show_topology",
]

_NS = 1_000_000_000


def _config(session: Session, failing: str) -> ConfigInfo:
    info = session.ask(ShowConfig(), ConfigInfo)
    if isinstance(info, Rejection):
        hint = (f"hint: {info.text}",) if info.code == "unreachable" else ()
        raise SlurmError(f"{failing}: {sentence_of(info)}", *hint)
    return info


def config_text(session: Session) -> str:
    """Return the configuration, one parameter a line. Raises: SlurmError."""
    info = _config(session, "slurm_load_ctl_conf error")
    calendar = LocalCalendar()
    now = format_moment(calendar.now(), calendar)
    if info.settings is None:
        return f"Configuration data as of {now}\n"
    nodes = fetch_nodes(session)
    gres = {
        pool.name
        for node in ([] if isinstance(nodes, Rejection) else nodes)
        for pool in node.block.gres
    }
    facts = {
        "GresTypes": ",".join(sorted(gres)),
        "BOOT_TIME": format_moment(info.configured_ns // _NS, calendar),
        "MaxNodeCount": str(info.node_count),
        "NEXT_JOB_ID": str(info.next_job_id),
        "SLURM_CONF": session.environment.get("SLURM_CONF", ""),
    }
    return config_lines(info.settings, info.parameters, facts, now=now)


def show_config(session: Session, line: Layer, names: list[str]) -> int:
    """Show all parameters, those that no file says with their defaults, and who answers."""
    sys.stdout.write(f"{config_text(session)}\n")
    return ping(session)


# -- the network


def show_topology(session: Session, line: Layer, names: list[str]) -> int:
    """Show the switches, or those above a node, or one of them."""
    info = _config(session, "slurm_load_topo error")
    units = {unit.name: unit for unit in info.topology}
    rows = sorted(units.values(), key=lambda unit: _level(units, unit))
    if not rows:
        raise SlurmError("No topology information available")
    wanted = names[0] if names else ""
    shown = [
        unit
        for unit in rows
        if not wanted
        or unit.name == wanted
        or (wanted not in units and wanted in _below(units, unit))
    ]
    if not shown:
        raise SlurmError(
            f"scontrol: error: Topology information contains no switch or node named {wanted}"
        )
    for unit in shown:
        below = "" if not unit.switches else f" Switches={format_hostlist(unit.switches)}"
        sys.stdout.write(
            f"SwitchName={unit.name} Level={_level(units, unit)} LinkSpeed=1 "
            f"Nodes={format_hostlist(sorted(_below(units, unit)))}{below}\n"
        )
    return 0


def _children(units: dict[str, TopologyUnit], unit: TopologyUnit) -> Iterable[TopologyUnit]:
    return (units[name] for name in unit.switches if name in units)


def _level(units: dict[str, TopologyUnit], unit: TopologyUnit) -> int:
    return max((_level(units, child) + 1 for child in _children(units, unit)), default=0)


def _below(units: dict[str, TopologyUnit], unit: TopologyUnit) -> set[str]:
    found = set(parse_hostlist(unit.nodes))
    for child in _children(units, unit):
        found |= _below(units, child)
    return found


# -- jobs that end


def show_completing(session: Session, line: Layer, words: list[str]) -> int:
    """Show the jobs that some node has still to report dead."""
    if words:
        raise SlurmError("too many arguments for keyword:completing")
    queue = fetch_queue(session, JobFilter(states=(JobState.PREEMPTED,), completing=True))
    if isinstance(queue, Rejection):
        raise SlurmError(f"slurm_load_jobs error: {sentence_of(queue)}")
    rows = [row for row in queue.jobs if row.completing]
    nodes = fetch_nodes(session) if rows else []
    down = {
        node.name
        for node in (() if isinstance(nodes, Rejection) else nodes)
        if node.state.startswith("DOWN") or "NOT_RESPONDING" in node.state
    }
    calendar = LocalCalendar()
    for row in rows:
        held = [share.node for share in row.shares]
        end = format_moment(row.end_ns // _NS, calendar)
        parts = [f"JobId={row.job_id} ", f"EndTime={end} ", f"CompletingTime={end} "]
        for word, names in (
            ("COMPLETING", [node for node in held if node not in down]),
            ("DOWN", [node for node in held if node in down]),
        ):
            if names:
                parts.append(f"Nodes({word})={format_hostlist(names)} ")
        sys.stdout.write("".join(parts) + "\n")
    return 0


# -- daemons


def show_daemons(session: Session, line: Layer, names: list[str]) -> int:
    """Name the daemons that this host shall have."""
    info = _config(session, "slurm_load_ctl_conf error")
    here = os.uname().nodename.partition(".")[0]
    hosts = () if info.settings is None else info.settings.controllers
    found = ["slurmctld"] if any(here == host.name for host in hosts) else []
    nodes = fetch_nodes(session)
    if not isinstance(nodes, Rejection) and any(node.name == here for node in nodes):
        found.append("slurmd")
    sys.stdout.write(" ".join([*found, ""]) + "\n")
    return 0


def show_slurmd(session: Session, line: Layer, names: list[str]) -> int:
    """Show what is known of the node that this host is."""
    here = os.uname().nodename.partition(".")[0]
    nodes = fetch_nodes(session, here)
    if isinstance(nodes, Rejection) or not nodes:
        refused = "Connection refused"
        raise SlurmError(
            f"scontrol: error: slurm_slurmd_info: {refused}", f"slurm_load_slurmd_status: {refused}"
        )
    node = nodes[0]
    block = node.block
    rows = (
        ("Active Steps", "NONE" if not node.cpus_allocated else "see show step"),
        ("Actual CPUs", str(node.cpus)),
        ("Actual Boards", str(block.boards)),
        ("Actual sockets", str(block.sockets)),
        ("Actual cores", str(block.cores_per_socket)),
        ("Actual threads per core", str(block.threads_per_core)),
        ("Actual real memory", f"{node.memory_mib} MB"),
        ("Actual temp disk space", f"{block.disk_mib} MB"),
        ("Hostname", node.name),
        ("Version", _version(session)),
    )
    sys.stdout.write("".join(f"{name:<24} = {value}\n" for name, value in rows) + "\n")
    return 0


def _version(session: Session) -> str:
    from spur.slurm.wording import VERSION

    return VERSION.partition(" ")[2]


def show_federation(session: Session, line: Layer, names: list[str]) -> int:
    """Say that there is none."""
    sys.stdout.write("No federation information available\n")
    return 0


def show_associations(session: Session, line: Layer, words: list[str]) -> int:
    """Refuse it: what associations use is not counted so far; sacctmgr shows them."""
    raise SlurmError(
        "show assoc_mgr is not honoured yet: no usage is counted;"
        " sacctmgr shows associations and QOS"
    )
