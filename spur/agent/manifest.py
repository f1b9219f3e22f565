"""What an attempt has on a node's disk: one directory, written by the agent and a supervisor.

    <spool>/<job>.<run>.<step>.<attempt>.<node>/
        manifest    what the agent was told to launch; synced, with the directory, before all else
        lock        flock(2) held by the supervisor for as long as it lives; its pid is inside
        claim       made with O_EXCL and synced with the directory: by the supervisor before user
                    code runs, or by the agent to void the attempt; whoever makes it has won
        outcome     what became of it, synced by the supervisor before it ends
        control     Unix sockets of a live supervisor (`control.py`)
        stream

A directory with a claim and without a manifest is an attempt that was voided before its order came.
The files are read by whatever agent process comes next, after a crash or a boot as well.

This file imports little: the warm process holds it for every supervisor.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

import msgspec

from spur.values.errors import OperatorFault
from spur.values.ids import JobId, NodeName
from spur.wire.agents import LaunchOrder, LaunchStepOrder

__all__ = [
    "CLAIM",
    "LOCK",
    "MANIFEST",
    "OUTCOME",
    "AttemptName",
    "Launch",
    "Manifest",
    "Outcome",
    "Site",
    "decode_manifest",
    "decode_outcome",
    "directory_name",
    "encode_manifest",
    "encode_outcome",
    "parse_directory_name",
]

MANIFEST = "manifest"
CLAIM = "claim"
LOCK = "lock"
OUTCOME = "outcome"

_RUN_WORD = "run"
"""In place of a step's number: the node's part of the run itself, which outlives its steps."""

_NAME = re.compile(r"(\d+)\.(\d+)\.(\d+|run)\.(\d+)\.([A-Za-z0-9][A-Za-z0-9._-]*)")


class AttemptName(NamedTuple):
    """What an agent acts on once."""

    node: NodeName
    job_id: JobId
    run: int
    step: int | None
    """None is the node's part of the run: the batch script on the first node, what holds the place
    on the others and in an allocation without a script."""
    attempt: int


class Site(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What a supervisor must know of its host beside the order."""

    relay: str
    """Path of the agent's Unix socket, for commands inside the job."""
    slurm_conf: str
    """Path of slurm.conf on this host; empty for none."""
    host_name: str
    """What a UTS namespace of its own is to be called; empty leaves the machine's name."""
    working_cluster: str
    """Value of SLURM_WORKING_CLUSTER; empty for none."""


Launch: TypeAlias = LaunchOrder | LaunchStepOrder
"""The orders that a manifest may hold."""


class Manifest(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """An order to launch, as it lies on the disk."""

    boot_id: str
    """Of the machine when it was written: after a boot nothing of it lives."""
    incarnation: int
    term: int
    index: int
    """With the incarnation, the place in the log that the order rests on; the term is that of the
    leader who gave it."""
    order: Launch
    site: Site


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What became of a claimed attempt."""

    boot_id: str
    """The manifest's."""
    void: bool
    """Nothing of the user's ran, and nothing will: `why` says so, and the node reports VOID."""
    exit_code: int
    signal: int
    """0 when no signal ended it."""
    out_of_memory: bool
    ended_boot_ns: int
    """CLOCK_BOOTTIME when the last process ended."""
    why: str = ""
    """For the agent's log; empty for an ordinary end."""


_ENCODE = msgspec.msgpack.Encoder().encode
_MANIFEST = msgspec.msgpack.Decoder(Manifest)
_OUTCOME = msgspec.msgpack.Decoder(Outcome)


def directory_name(name: AttemptName) -> str:
    """Return the name of an attempt's directory in the spool."""
    step = _RUN_WORD if name.step is None else str(name.step)
    return f"{name.job_id}.{name.run}.{step}.{name.attempt}.{name.node}"


def parse_directory_name(text: str) -> AttemptName | None:
    """Return the attempt whose directory has this name; None when it is not one's name."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    step = None if match[3] == _RUN_WORD else int(match[3])
    return AttemptName(NodeName(match[5]), JobId(int(match[1])), int(match[2]), step, int(match[4]))


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the content of the file `manifest`."""
    return _ENCODE(manifest)


def decode_manifest(data: bytes) -> Manifest:
    """Return what the file `manifest` says. Raises: OperatorFault when it is damaged."""
    try:
        return _MANIFEST.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise OperatorFault(f"a manifest that cannot be read: {error}") from error


def encode_outcome(outcome: Outcome) -> bytes:
    """Return the content of the file `outcome`."""
    return _ENCODE(outcome)


def decode_outcome(data: bytes) -> Outcome:
    """Return what the file `outcome` says. Raises: OperatorFault when it is damaged."""
    try:
        return _OUTCOME.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise OperatorFault(f"an outcome that cannot be read: {error}") from error
