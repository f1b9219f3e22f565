"""Running the batch script of a job, on the first of its nodes."""

from __future__ import annotations

import contextlib
import os

from spur.agent.attempt import Attempt
from spur.agent.control import Kill
from spur.agent.ending import (
    LAUNCH_FAILED_SIGNAL,
    cancelled_sentence,
    exit_of,
    spoken_by,
)
from spur.agent.filesin import FileGuests
from spur.agent.identity import Unlaunchable, find_user
from spur.agent.launch import batch_files, batch_setup, text_of
from spur.agent.outputs import OpenFiles, close_files, open_files
from spur.agent.program import execute, prepare
from spur.agent.tending import Tending
from spur.agent.warning import EarlyWarning
from spur.wire.agents import LaunchOrder

__all__ = ["SCRIPT", "run_batch"]

SCRIPT = "slurm_script"
"""Name of a job's script in its directory; it is the script's own $0."""


def run_batch(attempt: Attempt, order: LaunchOrder) -> None:
    """Run a script from its claim to its outcome. Raises: NotOurs, OSError."""
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
    setup, said = prepare(batch_setup(order, site, text, user, script, words), user)
    for sentence in said:
        _say(files, sentence)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        attempt.settle(void=True, why=f"no process for the script: {error}")
        return
    if not pid:
        execute(setup, files, user, parent)
    tending.mains.add(pid)
    statuses: list[int] = []
    tending.on_exit = lambda pid, status: statuses.append(status)

    def say_cancelled(kill: Kill) -> None:
        sentence = cancelled_sentence(f"JOB {order.job_id}", order.node, kill.state)
        _say(files, f"{words}{sentence}" if sentence else "")

    tending.on_kill = say_cancelled
    tending.on_guest = FileGuests(tending, order).take
    tending.on_notice = lambda text: _say(files, f"{words}{text}")
    warning = EarlyWarning(tending, dict(text.options), to_script=True, send=tending.signal_mains)
    warning.expect(order.limit_ns)
    attempt.say_claimed()
    tending.run()
    close_files(files)
    exit_code, killer, _ = exit_of(statuses[0])
    attempt.settle(exit_code=exit_code, signal=killer, ended_boot_ns=tending.ended_boot_ns)


def _say(files: OpenFiles, sentence: str) -> None:
    if sentence:
        with contextlib.suppress(OSError):
            os.write(files.stderr, f"{sentence}\n".encode("utf-8", "surrogateescape"))
