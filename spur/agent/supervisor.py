"""A supervisor: the process that holds one attempt of a run or step on one node.

It is forked from the warm process and answers to nobody's life but that of the job: it goes on
while agents and controllers come and go, and what it has to say afterwards is in its directory.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys

from spur.agent.attempt import Attempt, NotOurs
from spur.agent.control import Kill
from spur.agent.ending import LAUNCH_FAILED_SIGNAL, cancelled_sentence, exit_of, spoken_by
from spur.agent.identity import Unlaunchable, find_user
from spur.agent.launch import batch_files, batch_program, execute, text_of
from spur.agent.linux import adopt_orphans, take_host_name
from spur.agent.outputs import OpenFiles, close_files, open_files
from spur.agent.tending import Tending
from spur.values.errors import OperatorFault
from spur.wire.agents import LaunchOrder, LaunchStepOrder

__all__ = ["SCRIPT", "supervise"]

SCRIPT = "slurm_script"
"""Name of a job's script in its directory; it is the script's own $0."""


def supervise(directory: str, channel: socket.socket | None) -> int:
    """Run the attempt of a directory to its end, and return the status to exit with.

    The status is 0 when the attempt was settled or is another's, else 1: the agent then finds an
    unclaimed attempt, or a claimed one without an outcome.
    """
    os.setsid()
    adopt_orphans()
    try:
        attempt = Attempt(directory, channel)
        site = attempt.manifest.site
        if site.host_name:
            take_host_name(site.host_name)
        _run(attempt)
    except NotOurs:
        return 0
    except (OSError, OperatorFault) as error:
        sys.stderr.write(f"spurd: supervisor of {directory}: {error}\n")
        return 1
    return 0


def _run(attempt: Attempt) -> None:
    order = attempt.manifest.order
    if isinstance(order, LaunchStepOrder):
        attempt.claim()
        attempt.settle(void=True, why="steps are not run by this release")
    elif order.spec.batch and order.shares[0].node == order.node:
        _run_batch(attempt, order)
    else:
        _hold_place(attempt)


def _hold_place(attempt: Attempt) -> None:
    """Hold the place of a job where no script of it runs, until it is ended."""
    tending = Tending(attempt.directory, terms_all=True)
    tending.holds = True
    attempt.claim()
    attempt.say_claimed()
    tending.run()
    attempt.settle()


def _run_batch(attempt: Attempt, order: LaunchOrder) -> None:
    """Run a batch script."""
    site = attempt.manifest.site
    words = spoken_by(bool(site.host_name), order.node)
    try:
        user = find_user(order.uid, order.gid)
    except Unlaunchable as error:
        attempt.claim()
        attempt.settle(void=True, why=str(error))
        return
    text = text_of(order)
    script = os.fsencode(attempt.write_script(SCRIPT, order.script, order.uid, order.gid))
    tending = Tending(attempt.directory, terms_all=False)
    attempt.claim()
    try:
        files = open_files(batch_files(order, text, user), user)
    except OSError as error:
        attempt.settle(signal=LAUNCH_FAILED_SIGNAL, why=f"a file of the job: {error}")
        return
    program = batch_program(order, site, text, user, script, words)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        attempt.settle(void=True, why=f"no process for the script: {error}")
        return
    if not pid:
        execute(program, files, user, parent)
    tending.mains.add(pid)
    statuses: list[int] = []
    tending.on_exit = lambda pid, status: statuses.append(status)
    tending.on_kill = lambda kill: _say_cancelled(
        files, words, f"JOB {order.job_id}", order.node, kill
    )
    attempt.say_claimed()
    tending.run()
    close_files(files)
    exit_code, number, _ = exit_of(statuses[0])
    attempt.settle(exit_code=exit_code, signal=number, ended_boot_ns=tending.ended_boot_ns)


def _say_cancelled(files: OpenFiles, words: str, what: str, node: str, kill: Kill) -> None:
    sentence = cancelled_sentence(what, node, kill.state)
    if sentence:
        with contextlib.suppress(OSError):
            os.write(files.stderr, f"{words}{sentence}\n".encode())
