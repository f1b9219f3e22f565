"""What the options of a submission need from this host: who asks, where, and files of nodes."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from spur.slurm.mailtypes import mail_content
from spur.slurm.rlimits import LIMIT_NAMES
from spur.slurm.submission import Place, Submission
from spur.slurm.wording import SlurmError, error_line, failure_of
from spur.values.hostlist import parse_hostlist
from spur.values.jobspec import JobText, encode_text
from spur.wire.declare import Attachment
from spur.wire.jobs import HetComponent, SubmitHetJob
from spur_cli import calling

__all__ = ["here", "het_request", "soft_limits", "texts_of", "with_node_files"]

SYNTAX_STATUS = 255
"""How a command exits for a value that is none."""

NODE_FILE_BYTES_MAX = 1 << 20
"""Of a file that lists nodes."""


def here() -> Place:
    """Return where this process runs."""
    return Place(os.fsencode(os.uname().nodename.partition(".")[0]), os.getsid(calling.pid))


def soft_limits() -> dict[str, int]:
    """Return the soft limits of this process by name; -1 is none."""
    found = {}
    for name in LIMIT_NAMES:
        soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        found[name] = -1 if soft == resource.RLIM_INFINITY else soft
    return found


def het_request(
    submissions: Sequence[Submission], shared: tuple[Attachment, ...], program: str
) -> SubmitHetJob:
    """Return what is asked for several components; what they share comes with the first.

    Raises: SlurmError for an array, which no component can be.
    """
    if any(each.array is not None for each in submissions):
        sentence = f"{failure_of(program)}: Invalid job array specification"
        raise SlurmError(error_line(program, sentence))
    attachments = list(shared)
    components: list[HetComponent] = []
    for each in submissions:
        first = len(attachments) if components else 0
        text = each.text
        if not components:
            text = replace(text, components=tuple(other.text.options for other in submissions))
        attachments.extend(texts_of(text))
        places = tuple(range(first, len(attachments)))
        components.append(HetComponent(each.spec, each.hold, each.priority, places))
    return SubmitHetJob(tuple(components), tuple(attachments))


def texts_of(text: JobText) -> tuple[Attachment, ...]:
    """Return a job's text as it is handed in, and apart about what mails are asked for."""
    mail = mail_content(text.options)
    found = (Attachment("text", encode_text(text)),)
    return (*found, Attachment("mail", mail)) if mail else found


def with_node_files(values: Mapping[str, Any], program: str) -> dict[str, Any]:
    """Return the options with the nodes that their files list, checked for what takes root.

    Raises: SlurmError for a file that can't be read, and for what only root may ask.
    """
    _refuse_roots(values, program)
    found = dict(values)
    for field in ("nodes_required", "nodes_excluded"):
        path = found.get(field, "")
        if "/" in path:
            found[field] = _nodes_in(path, program)
    path = found.pop("nodefile", "")
    if path:
        found["nodes_required"] = _nodes_in(path, program, "Invalid --nodefile node file")
    return found


def _refuse_roots(values: Mapping[str, Any], program: str) -> None:
    is_root = os.geteuid() == 0
    for name in ("uid", "gid"):
        if name in values and not is_root:
            sentence = f"--{name} only permitted by root user"
            raise SlurmError(error_line(program, sentence), status=SYNTAX_STATUS)
    if "reboot" in values and not is_root:
        raise SlurmError(
            error_line(program, "rebooting of nodes is only allowed for admins"),
            error_line(program, "Batch job submission failed: Access/permission denied"),
        )
    for name in ("uid", "gid", "reboot"):
        if name in values:
            sentence = f"--{name} is not honoured yet; nothing was done"
            raise SlurmError(error_line(program, sentence))


def _nodes_in(path: str, program: str, then: str = "") -> str:
    """Return the host list in a file: names and lists, parted by commas and line breaks."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(NODE_FILE_BYTES_MAX)
        nodes = ",".join(word for line in text.splitlines() for word in line.split())
        parse_hostlist(nodes)
    except OSError as error:
        sentence = f"slurm_allocate_resources error opening file {path}, {error.strerror}"
        lines = [error_line(program, sentence)]
        if then:
            lines.append(error_line(program, then))
        raise SlurmError(*lines, status=SYNTAX_STATUS if then else 1) from error
    except ValueError as error:  # also what is no UTF-8
        sentence = f"file {path} has no list of nodes: {error}; nothing was done"
        raise SlurmError(error_line(program, sentence), status=SYNTAX_STATUS) from error
    return nodes
