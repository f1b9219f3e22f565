"""`sbcast`: a file to every node of a job."""

from __future__ import annotations

import os
import re
import sys

from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.steps import EXTERN_STEP
from spur_cli.registry import Command
from spur_cli.slurm.guesting import Visit, visit
from spur_cli.slurm.sending import FAILED_STATUS, open_source, send_file
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]

_JOB = re.compile(r"(\d+)(?:\+\d+)?(?:\.(\d+))?")

COMPRESSIONS = ("", "lz4", "zlib", "none")
"""Names that ask for a smaller message, and the one that asks for none; ours is zlib."""


def run(arguments: list[str], command: Command) -> int:
    """Send a file, and return 0 or the number of what went wrong on a node."""
    return guarded("sbcast", lambda session: _sbcast(session, arguments))


def _sbcast(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    values = session.environment_options().values | line.values
    if len(words) != 2:
        raise SlurmError(
            f"Need two file names, have {len(words)} names",
            'Try "sbcast --help" for more information',
        )
    asked = values.get("job_id", session.environment.get("SLURM_JOB_ID", ""))
    if not asked:
        sentence = (
            "Need a job id to run this command.  Run from within a Slurm job or use the "
            "--jobid option."
        )
        raise SlurmError(error_line("sbcast", sentence))
    source = open_source("sbcast", words[0])
    if not source.found.st_size:
        session.complain(f"Warning: file `{words[0]}` is empty.")
    is_compressed = _is_compressed(session, values.get("compress", "none"))
    if not re.fullmatch(r"\d+[kKmM]?", values.get("size", "1")):
        sys.stderr.write("size specification is invalid, ignored\n")
    place = _place(session, asked)
    target = os.path.join(os.fsencode(os.getcwd()), os.fsencode(words[1]))
    first = source.put(
        target,
        forces=bool(values.get("force")),
        keeps_times=bool(values.get("preserve")),
        is_compressed=is_compressed,
    )
    timeout = str(values.get("timeout", ""))
    timeout_s = float(timeout) if timeout.isdigit() and int(timeout) else None
    status = 0
    for sent in send_file(session, place, source, lambda node: first, timeout_s=timeout_s):
        if sent.number:
            session.complain(f"REQUEST_FILE_BCAST({sent.node}): {sent.why}")
            status = sent.number
    return status


def _is_compressed(session: Session, compression: str) -> bool:
    if compression in COMPRESSIONS:
        return compression != "none"
    session.complain(f"Compression type '{compression}' unknown, disabling compression support.")
    return False


def _place(session: Session, asked: str) -> Visit:
    """Return the nodes of a job, or of one of its steps. Raises: SlurmError."""
    found = _JOB.fullmatch(asked)
    job_id, step = (JobId(int(found[1])), found[2]) if found else (JobId(0), None)
    name = f"{job_id}.{step}" if step else str(job_id)
    whole = visit(session, job_id, EXTERN_STEP)
    part = visit(session, job_id, int(step)) if step else whole
    if isinstance(whole, Rejection) or isinstance(part, Rejection):
        refused = next(each for each in (part, whole) if isinstance(each, Rejection))
        sentence = f"Slurm job {name} lookup error: {sentence_of(refused)}"
        raise SlurmError(error_line("sbcast", sentence), status=FAILED_STATUS)
    return whole.only(part.nodes)
