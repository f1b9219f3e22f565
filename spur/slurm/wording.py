"""Slurm's sentences and exit statuses, since scripts match them.

A judged no has a code of ours (`spur.values.errors`); here is what Slurm says in its place, and
the number by which some of its commands exit. A code without a sentence of Slurm's is told in our
own words.

Source: transcripts of Slurm 22.05; slurm_errno.h for the numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from spur.values.errors import Rejection

__all__ = [
    "NO_CONTROLLER",
    "TOO_LONG",
    "VERSION",
    "SlurmError",
    "Wording",
    "detail_of",
    "error_line",
    "error_number",
    "failure_of",
    "sentence_of",
    "sentence_of_number",
]

VERSION = "slurm 25.11.0"
"""The words that -V begins with: the release whose manual pages the options follow."""

NO_CONTROLLER = "Unable to contact slurm controller (connect failure)"


TOO_LONG = "Pathname of a file, directory or other parameter too long"


class SlurmError(Exception):
    """What a command says as it gives up: whole lines for stderr, and the exit status."""

    def __init__(self, *lines: str, status: int = 1) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.status = status

    def __reduce__(self) -> tuple[object, ...]:
        return (SlurmError, self.lines, {"status": self.status})


def failure_of(program: str) -> str:
    """Return how a command begins to say that the controller took no job."""
    return _FAILURES.get(program, "Unable to allocate resources")


_FAILURES = {
    "salloc": "Job submit/allocate failed",
    "sbatch": "Batch job submission failed",
}


class Wording(NamedTuple):
    """Slurm's words for one of our codes."""

    sentence: str
    number: int
    """Slurm's error number; scancel exits with its last eight bits."""
    detail: str = ""
    """What it says on a line of its own before; empty for nothing."""


_NO_NODES = "Requested node configuration is not available"
_POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
_BAD_TIME = "Requested time limit is invalid (missing or exceeds some limit)"

_WORDINGS = {
    "unknown-job": Wording("Invalid job id specified", 2017),
    "unknown-node": Wording("Invalid node name specified", 2018),
    "unknown-partition": Wording("Invalid partition name specified", 2000),
    "partition-in-use": Wording("Partition is in use", 2093),
    "partition-closed": Wording("Required partition not available (inactive or drain)", 2044),
    "invalid-array": Wording("Invalid job array specification", 2069),
    "not-permitted": Wording("Access/permission denied", 2002),
    "not-owner": Wording("Access/permission denied", 2002),
    "het-component": Wording(
        "Operation not permitted on individual component of heterogeneous job", 2108
    ),
    "not-het-leader": Wording("Job not heterogeneous job leader", 2109),
    "job-held": Wording("Job is in held state, pending scheduler release", 2056),
    "priority-not-kept": Wording(
        "Changes to job priority are not persistent, change nice instead", 2105
    ),
    "job-ended": Wording("Job/step already completing or completed", 2021),
    "does-not-fit": Wording("Requested nodes are busy", 2016),
    "step-busy": Wording("Requested nodes are busy", 2016),
    "step-too-large": Wording("More processors requested than permitted", 2005),
    "step-unavailable": Wording("Requested node configuration is not available", 2014),
    "job-pending": Wording("Job is pending execution", 2042),
    "not-suspended": Wording("Job is not suspended", 2094),
    "invalid-feature": Wording("Invalid feature specification", 2025),
    "invalid-preference": Wording("Invalid preferred feature specification", 2025),
    "invalid-qos": Wording("Invalid qos specification", 2066),
    "invalid-gres": Wording("Invalid generic resource (gres) specification", 2072),
    "unsupported": Wording("Requested operation not supported on this system", 2035),
    "cron-disabled": Wording("scrontab is disabled on this cluster", 2036),
    "qos-grp-submit-limit": Wording(_POLICY, 2050, "QOSGrpSubmitJobsLimit"),
    "qos-max-submit-per-account": Wording(_POLICY, 2050, "QOSMaxSubmitJobPerAccountLimit"),
    "qos-max-submit-per-user": Wording(_POLICY, 2050, "QOSMaxSubmitJobPerUserLimit"),
    "assoc-grp-submit-limit": Wording(_POLICY, 2050, "AssocGrpSubmitJobsLimit"),
    "assoc-max-submit-limit": Wording(_POLICY, 2050, "AssocMaxSubmitJobLimit"),
    "requeue-disabled": Wording("Requested operation is presently disabled", 2036),
    "invalid-dependency": Wording("Circular job dependency", 2092),
    "invalid-deadline": Wording(_BAD_TIME, 2051),
    "over-cpu-limit": Wording("More processors requested than permitted", 2005),
    "over-node-limit": Wording("Node count specification invalid", 2006),
    "over-time-limit": Wording(_BAD_TIME, 2051),
    "over-memory-limit": Wording("Memory required by task is not available", 2044),
    "nodes-unavailable": Wording(_NO_NODES, 2014),
    "cpus-unavailable": Wording(_NO_NODES, 2014, "CPU count per node can not be satisfied"),
    "memory-unavailable": Wording(_NO_NODES, 2014, "Memory specification can not be satisfied"),
    "disk-unavailable": Wording(
        _NO_NODES, 2014, "Temporary disk specification can not be satisfied"
    ),
    "shape-unavailable": Wording(
        _NO_NODES, 2014, "Socket, core and/or thread specification can not be satisfied"
    ),
    "unknown-reservation": Wording("Requested reservation is invalid", 2053),
    "invalid-license": Wording("Invalid license specification", 2048),
    "invalid-account": Wording("Invalid account or account/partition combination specified", 2045),
    "invalid-time-min": Wording(
        "Invalid time-min specification (exceeds job's time or other limits)", 2091
    ),
    "unreachable": Wording(NO_CONTROLLER, 1800),
    "outcome-unknown": Wording("Socket timed out on send/recv operation", 5004),
}


def sentence_of(rejection: Rejection) -> str:
    """Return what Slurm says for this no, or our own text when it has no words for it."""
    wording = _WORDINGS.get(rejection.code)
    return rejection.text if wording is None else wording.sentence


def detail_of(rejection: Rejection) -> str:
    """Return what Slurm says on a line before the sentence; empty for nothing."""
    wording = _WORDINGS.get(rejection.code)
    return "" if wording is None else wording.detail


def error_number(code: str) -> int:
    """Return Slurm's number for a code of ours; 1 when it has none."""
    wording = _WORDINGS.get(code)
    return 1 if wording is None else wording.number


_OTHER_NUMBERS = {
    0: "No error",
    2010: "Invalid user id",
    2004: "Requested partition configuration not available now",
    1000: "Unspecified error",
    1001: "Unexpected message received",
}


def sentence_of_number(number: int) -> str:
    """Return what Slurm says for one of its error numbers; empty for one that it never says here.

    Source: scontrol(1) errnumstr.
    """
    found = next((each.sentence for each in _WORDINGS.values() if each.number == number), "")
    return _OTHER_NUMBERS.get(number, found)


def error_line(program: str, text: str) -> str:
    """Return the line in which a command says what went wrong."""
    return f"{program}: error: {text}"
