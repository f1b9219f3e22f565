"""`sinfo`: partitions and nodes at a glance, as Slurm shows them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from spur.slurm.columns import nodes as columns
from spur.slurm.columns.nodegroup import NodeGroup
from spur.slurm.formats import Layout, parse_format, parse_long_format
from spur.slurm.layers import Layer
from spur.slurm.nodelines import DEFAULT_SORT, NODE_SORT, group_nodes, sort_groups
from spur.slurm.nodestates import STATE_WORDS, is_in_state
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.hostlist import parse_hostlist
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import ListPartitions, PartitionInfo, PartitionList
from spur_cli.registry import Command
from spur_cli.slurm.people import LocalCalendar, user_name
from spur_cli.slurm.session import Session, guarded
from spur_cli.slurm.shows import fetch_nodes

__all__ = ["run", "show"]

NUL = "\0"
"""What Slurm shows of a letter that is missing."""

_ALL = {"format": "%all", "long_format": "all"}
"""What stands for all columns, by option."""

Values = Mapping[str, Any]  # as `Layer.values`


def run(arguments: list[str], command: Command) -> int:
    """Show partitions and nodes."""
    return guarded("sinfo", lambda session: show(session, arguments))


def show(session: Session, arguments: list[str]) -> int:
    """Show what the arguments ask for; return the exit status. Raises: SlurmError."""
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    if words:
        raise SlurmError(error_line("sinfo", f"Unrecognized option: {words[0]}"))
    values = {**session.environment_options().values, **line.values}
    if "clusters" in values:
        from spur_cli.slurm.clusters import cluster_meant

        cluster = cluster_meant(session, values["clusters"])
        if not values.get("noheader"):
            sys.stdout.write(f"CLUSTER: {cluster}\n")
    _check_states(values)
    if {"json", "yaml"} & set(values):
        return _document(session, values)
    layout = _layout(session, line, values)
    partitions, nodes = _fetch(session, values)
    groups = group_nodes(
        layout,
        partitions,
        nodes,
        by_node=bool(values.get("by_node")),
        calendar=LocalCalendar(),
        user=user_name,
    )
    if values.get("list_reasons"):
        groups = [group for group in groups if group.nodes]
    text = values.get("sort") or (NODE_SORT if values.get("by_node") else DEFAULT_SORT)
    try:
        groups = sort_groups(groups, text, partitions)
    except ValueError as error:
        raise SlurmError(error_line("sinfo", f"Invalid sort specification: {error}")) from error
    if not values.get("noheader"):
        if values.get("long"):
            sys.stdout.write(time.strftime("%a %b %d %H:%M:%S %Y\n"))
        sys.stdout.write(layout.header() + "\n")
    sys.stdout.write("".join(f"{text}\n" for text in layout.lines(groups)))
    return 0


def _document(session: Session, values: Values) -> int:
    """Write the lines of sinfo as a document: nodes of a partition that are in one state."""
    from spur.slurm.dataparser.nodes import summary_document
    from spur.slurm.dataparser.parts import seconds
    from spur_cli.slurm.clusters import own_cluster
    from spur_cli.slurm.documents import document_form, write_document

    form = document_form("sinfo", values)
    cluster = own_cluster(session)
    partitions, nodes = _fetch(session, values)
    rows = []
    for partition in partitions:
        by_state: dict[tuple[object, ...], list[NodeInfo]] = {}
        for node in nodes:
            if partition.name in node.partitions:
                key = (node.state, node.block.gres, node.features, node.cpus, node.memory_mib)
                by_state.setdefault(key, []).append(node)
        rows += [summary_document(partition, members, cluster) for members in by_state.values()]
    body = {"sinfo": rows, "last_update": seconds(time.time_ns())}
    return write_document(session, form, body, ["show", "sinfo"], cluster)


def _fetch(session: Session, values: Values) -> tuple[list[PartitionInfo], list[NodeInfo]]:
    """Return the partitions and nodes that are asked for. Raises: SlurmError."""
    listed = session.ask(ListPartitions(), PartitionList)
    nodes = listed if isinstance(listed, Rejection) else fetch_nodes(session)
    if isinstance(nodes, Rejection):
        hint = (f"hint: {nodes.text}",) if nodes.code == "unreachable" else ()
        raise SlurmError(f"slurm_load_partitions: {sentence_of(nodes)}", *hint)
    partitions = [] if isinstance(listed, Rejection) else list(listed.partitions)
    wanted = _words(values, "partitions")
    if not (values.get("all") or wanted or session.is_root):
        partitions = [partition for partition in partitions if not partition.block.hidden]
    if wanted:
        partitions = [partition for partition in partitions if partition.name in wanted]
    return partitions, [node for node in nodes if _is_asked(node, values)]


def _words(values: Values, field: str) -> tuple[str, ...]:
    return tuple(word for word in values.get(field, "").split(",") if word)


def _check_states(values: Values) -> None:
    for word in _words(values, "states"):
        try:
            is_in_state("IDLE", word)
        except ValueError as error:
            raise SlurmError(
                error_line("sinfo", f'Bad state string: "{error}"'),
                error_line("sinfo", f"valid states: {','.join(STATE_WORDS)}"),
            ) from error


def _is_asked(node: NodeInfo, values: Values) -> bool:
    if values.get("list_reasons") and not node.reason:
        return False
    is_silent = "NOT_RESPONDING" in node.state
    if (values.get("dead") and not is_silent) or (values.get("responding") and is_silent):
        return False
    if "nodes" in values and node.name not in _named(values["nodes"]):
        return False
    states = _words(values, "states")
    return not states or any(is_in_state(node.state, word) for word in states)


def _named(text: str) -> tuple[str, ...]:
    try:
        return parse_hostlist(text)
    except ValueError as error:
        raise SlurmError(error_line("sinfo", f"Invalid node list: {error}")) from error


def _layout(session: Session, line: Layer, values: Values) -> Layout[NodeGroup]:
    """Return the layout: of the command line, else of the environment, else the usual one."""
    fields = line.values if {"format", "long_format"} & set(line.values) else values
    if any(fields.get(name, "").partition(":")[0].lower() == word for name, word in _ALL.items()):
        return parse_format(columns.ALL_FORMAT, columns.BY_LETTER)
    layout: Layout[NodeGroup]
    if "format" in fields:
        layout = parse_format(fields["format"], columns.BY_LETTER)
        for name in layout.unknown:
            sys.stderr.write(f"Invalid node format specification: {name or NUL}\n")
        return layout
    if "long_format" in fields:
        layout = parse_long_format(fields["long_format"], columns.BY_NAME)
        for name in layout.unknown:
            session.complain(f"Invalid job format specification: {name}")
        return layout
    return parse_format(_usual(values), columns.BY_LETTER)


def _usual(values: Values) -> str:
    is_long = values.get("long")
    if values.get("summarize"):
        return columns.SUMMARY_FORMAT
    if values.get("by_node"):
        return columns.NODE_LONG_FORMAT if is_long else columns.NODE_FORMAT
    if values.get("list_reasons"):
        return columns.REASON_LONG_FORMAT if is_long else columns.REASON_FORMAT
    return columns.LONG_FORMAT if is_long else columns.DEFAULT_FORMAT
