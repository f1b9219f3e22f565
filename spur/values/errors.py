"""Errors as values: the codes, whose fault each is, and whether trying again helps.

    Rejection              a judged no; a value, never raised across a room
    SpurError              a fault: something that should not have happened
      OperatorFault        the machine, the disk or the configuration is wrong; a person must act
      PeerFault            the other side broke the protocol
      InvariantBroken      we are wrong; the daemon stops with the story

Identity is the code, never the text.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = [
    "ERROR_CODES",
    "ErrorCode",
    "Fault",
    "InvariantBroken",
    "OperatorFault",
    "PeerFault",
    "Rejection",
    "Retry",
    "SpurError",
]


class Fault(StrEnum):
    """Who has to act on an error."""

    CALLER = "caller"
    PEER = "peer"
    OPERATOR = "operator"
    OURS = "ours"


class Retry(StrEnum):
    """When the same request may succeed."""

    NEVER = "never"
    NOW = "now"
    LEADER = "after-leader-change"


class ErrorCode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of the table of errors."""

    code: str
    fault: Fault
    retry: Retry
    exit_status: int
    summary: str


def _row(code: str, fault: Fault, retry: Retry, exit_status: int, summary: str) -> ErrorCode:
    return ErrorCode(code=code, fault=fault, retry=retry, exit_status=exit_status, summary=summary)


_ROWS = (
    # -- judging a request
    _row("invalid-value", Fault.CALLER, Retry.NEVER, 1, "a field of the request has a bad value"),
    _row("unknown-job", Fault.CALLER, Retry.NEVER, 1, "no job has this id"),
    _row("unknown-node", Fault.CALLER, Retry.NEVER, 1, "no node has this name"),
    _row("invalid-node-state", Fault.CALLER, Retry.NEVER, 1, "no node is in a state to do this in"),
    _row("unknown-partition", Fault.CALLER, Retry.NEVER, 1, "no partition has this name"),
    _row("wrong-state", Fault.CALLER, Retry.NEVER, 1, "the subject's state does not allow this"),
    _row("not-permitted", Fault.CALLER, Retry.NEVER, 1, "the actor's role does not allow this"),
    _row("not-owner", Fault.CALLER, Retry.NEVER, 1, "the job belongs to somebody else"),
    _row("het-component", Fault.CALLER, Retry.NEVER, 1, "it takes the whole het job"),
    _row("not-het-leader", Fault.CALLER, Retry.NEVER, 1, "the job is no first component"),
    _row("job-held", Fault.CALLER, Retry.NEVER, 1, "the job is held, so it has no priority"),
    _row("priority-not-kept", Fault.CALLER, Retry.NEVER, 1, "a user's priority would not last"),
    _row("job-ended", Fault.CALLER, Retry.NEVER, 1, "the job has ended, or ends already"),
    _row(
        "invalid-feature",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "a constraint can't be read, or names a feature that no node has",
    ),
    _row(
        "invalid-preference",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "a preference can't be read, or names a feature that no node has",
    ),
    _row("invalid-deadline", Fault.CALLER, Retry.NEVER, 1, "the deadline is over already"),
    _row(
        "invalid-dependency",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "a job would wait for itself, or what it waits for cannot be read",
    ),
    _row("invalid-gres", Fault.CALLER, Retry.NEVER, 1, "generic resources that can't be read"),
    _row("unsupported", Fault.CALLER, Retry.NEVER, 1, "nothing here does this"),
    _row("cron-disabled", Fault.CALLER, Retry.NEVER, 1, "the site has no crontabs"),
    _row("requeue-disabled", Fault.CALLER, Retry.NEVER, 1, "the job never runs a second time"),
    _row("job-pending", Fault.CALLER, Retry.NEVER, 1, "the job has not started"),
    _row("not-suspended", Fault.CALLER, Retry.NEVER, 1, "the job is not suspended"),
    _row("invalid-array", Fault.CALLER, Retry.NEVER, 1, "these are no tasks for an array here"),
    _row("partition-in-use", Fault.CALLER, Retry.NEVER, 1, "a job is in the partition"),
    _row("partition-closed", Fault.CALLER, Retry.NEVER, 1, "the partition takes no jobs"),
    _row("over-cpu-limit", Fault.CALLER, Retry.NEVER, 1, "the partition has not so many CPUs"),
    _row(
        "over-node-limit",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the partition gives no job so many nodes, or so few",
    ),
    _row(
        "over-time-limit", Fault.CALLER, Retry.NEVER, 1, "the partition lets no job run for so long"
    ),
    _row(
        "over-memory-limit",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the partition gives no job so much memory of a node",
    ),
    _row(
        "cpus-unavailable",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "no node of the partitions has so many CPUs",
    ),
    _row(
        "memory-unavailable",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "no node of the partitions has so much memory",
    ),
    _row(
        "disk-unavailable",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "no node of the partitions has so much disk",
    ),
    _row(
        "shape-unavailable",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "no node has such sockets, cores and threads",
    ),
    _row(
        "nodes-unavailable",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the partitions' nodes could never run it",
    ),
    _row("unknown-reservation", Fault.CALLER, Retry.NEVER, 1, "no reservation has this name"),
    _row(
        "invalid-license",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the cluster has no such licences, or fewer",
    ),
    _row("invalid-account", Fault.CALLER, Retry.NEVER, 1, "the account may not be used here"),
    _row(
        "invalid-time-min",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the least time limit is over the time limit",
    ),
    _row("does-not-fit", Fault.CALLER, Retry.NOW, 1, "the resources asked for are not free"),
    _row("step-busy", Fault.CALLER, Retry.NOW, 1, "other steps use what the step needs"),
    _row("step-too-large", Fault.CALLER, Retry.NEVER, 1, "the allocation is too small for it"),
    _row("step-unavailable", Fault.CALLER, Retry.NEVER, 1, "the allocation has no such nodes"),
    _row("limit-exceeded", Fault.CALLER, Retry.NEVER, 1, "a named limit would be exceeded"),
    _row("request-reused", Fault.CALLER, Retry.NEVER, 1, "this request id named another request"),
    _row("outcome-unknown", Fault.OURS, Retry.NEVER, 1, "too old to tell; nothing was executed"),
    _row("bad-configuration", Fault.CALLER, Retry.NEVER, 1, "the files have errors; none is used"),
    _row("unknown-entity", Fault.CALLER, Retry.NEVER, 1, "accounting has nothing of this name"),
    _row("already-exists", Fault.CALLER, Retry.NEVER, 1, "accounting has this already"),
    _row("in-use", Fault.CALLER, Retry.NEVER, 1, "others need what would be removed"),
    _row("default-account", Fault.CALLER, Retry.NEVER, 1, "it is the default account of its user"),
    _row("invalid-qos", Fault.CALLER, Retry.NEVER, 1, "the job may not use this QOS"),
    _row(
        "qos-grp-submit-limit", Fault.CALLER, Retry.NEVER, 1, "the QOS has as many jobs as it may"
    ),
    _row(
        "qos-max-submit-per-account",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the account has as many jobs of the QOS as it may",
    ),
    _row(
        "qos-max-submit-per-user",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the user has as many jobs of the QOS as they may",
    ),
    _row(
        "assoc-grp-submit-limit",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the account has as many jobs as it may",
    ),
    _row(
        "assoc-max-submit-limit",
        Fault.CALLER,
        Retry.NEVER,
        1,
        "the user has as many jobs of the account as they may",
    ),
    _row("unknown-host", Fault.CALLER, Retry.NEVER, 1, "no host has this name"),
    _row("unknown-token", Fault.CALLER, Retry.NEVER, 1, "no join token is this one"),
    _row("token-ended", Fault.CALLER, Retry.NEVER, 1, "the join token was used, or has ended"),
    _row("unknown-controller", Fault.CALLER, Retry.NEVER, 1, "no controller has this name or id"),
    _row("not-level", Fault.CALLER, Retry.NOW, 1, "the learner lacks entries that are committed"),
    _row("last-holder", Fault.CALLER, Retry.NEVER, 1, "no other controller has this history"),
    _row("last-authority", Fault.CALLER, Retry.NEVER, 1, "no other voter has the authority's key"),
    # -- the log
    _row("not-leader", Fault.PEER, Retry.LEADER, 1, "this replica does not lead"),
    _row("ask-again", Fault.OURS, Retry.LEADER, 1, "leadership was lost; ask with the same id"),
    _row("busy", Fault.OURS, Retry.NOW, 1, "too much waits to be committed"),
    _row("disk-low", Fault.OPERATOR, Retry.NOW, 1, "too little room on the disk"),
    _row("clock-step", Fault.OPERATOR, Retry.NOW, 1, "the clock stepped too far to be believed"),
    # -- the wire
    _row("protocol", Fault.PEER, Retry.NEVER, 1, "the other side broke the protocol"),
    _row("foreign-peer", Fault.PEER, Retry.NEVER, 1, "the other side is not who it should be"),
    _row("unreachable", Fault.OPERATOR, Retry.NOW, 1, "no controller takes the request"),
    _row("timed-out", Fault.PEER, Retry.NOW, 1, "the other side was silent for too long"),
    # -- the read model
    _row("history-behind", Fault.OURS, Retry.NOW, 1, "the read model has not come so far yet"),
    # -- ours
    _row("fault", Fault.OURS, Retry.NEVER, 1, "the request ran into a fault of ours"),
)

ERROR_CODES: dict[str, ErrorCode] = {row.code: row for row in _ROWS}


class Rejection(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A judged no: the request was understood, and nothing was changed."""

    code: str
    """A key of `ERROR_CODES`."""
    text: str
    """What was wrong with the value given, then what would be right; lower case, no stop."""
    hint: str = ""
    """What to do next; empty when the text says it."""


class SpurError(Exception):
    """A fault, as opposed to a judged no."""


class OperatorFault(SpurError):
    """The machine, its disk or its configuration is wrong; a person must act."""


class PeerFault(SpurError):
    """The other side of a connection broke the protocol."""


class InvariantBroken(SpurError):
    """We are wrong; the daemon stops and says where."""
