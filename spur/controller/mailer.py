"""Mails about jobs: the leader hands each to MailProg, once, and does not wait for it.

Nothing here is remembered by others: what a leader did not hand over before it died is not sent,
and nothing is sent twice. Source: slurm.conf(5) MailProg, MailDomain; LOG-CONTRACT 3.4.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
from collections.abc import Callable, Sequence
from contextlib import suppress

from spur.projections.attachments import mail_of, unpack_attachments
from spur.projections.cluster import parameter_of, settings_of
from spur.projections.mails import SendMail, mail_about
from spur.projections.runrows import is_paused, ran_ns
from spur.projections.state import State
from spur.slurm.mailtypes import read_mail_content
from spur.values.ids import JobId
from spur.values.states import Phase

__all__ = ["MAILS_MAX", "Mailer", "mail_arguments"]

LOG = logging.getLogger("spurctld")

MAIL_PROGRAM = "/bin/mail"
"""Source: slurm.conf(5) MailProg."""

MAILS_MAX = 10_000
"""Mails that wait; more are dropped, and said so."""

AT_ONCE = 4

MAIL_S = 60.0
"""How long the program may take for one."""

LIMITS_TICKS_S = 10.0
"""Between two looks at how far jobs are towards their time limits."""

_SENDMAILS = ("sendmail", "msmtp", "ssmtp", "nullmailer-inject")

_SHARES = (90, 80, 50)

ReadBlobs = Callable[[Sequence[bytes], Callable[[Sequence[bytes | None]], None]], None]


class Mailer:
    """The mails of one leader."""

    def __init__(self, state: Callable[[], State], read_blobs: ReadBlobs) -> None:
        """Prepare; attachments are read by `read_blobs`."""
        self._state = state
        self._read_blobs = read_blobs
        self._queue: asyncio.Queue[tuple[str, str, JobId]] = asyncio.Queue(MAILS_MAX)
        self._workers: list[asyncio.Task[None]] = []
        self._shares: dict[JobId, tuple[int, int]] | None = None
        """Of running jobs: the run, and the share of its limit that was written about last."""
        self._passed_s = 0.0

    def put(self, effect: SendMail) -> None:
        """Send a mail if somebody asked for it."""
        (reference,) = unpack_attachments(effect.attachments)

        def chosen(blobs: Sequence[bytes | None]) -> None:
            if blobs[0] is None:
                return
            events, user = read_mail_content(blobs[0])
            if effect.is_task != ("ARRAY_TASKS" in events) and effect.is_task:
                return
            for kind, subject in zip(effect.kinds, effect.subjects, strict=True):
                if kind in events:
                    self._send(subject, user or _user_name(effect.uid), effect.job_id)
                    return

        self._read_blobs([reference.digest], chosen)

    def following(self) -> None:
        """Somebody else leads, and looks at the limits of jobs."""
        self._shares = None

    def on_tick(self, passed_s: float, *, leads: bool) -> None:
        """Write about jobs that have used so much of their time limit."""
        self._passed_s += passed_s
        if not leads or self._passed_s < LIMITS_TICKS_S:
            return
        self._passed_s = 0.0
        state = self._state()
        known, self._shares = self._shares, {}
        for job_id in state.allocations.jobs():
            packed = mail_of(state, job_id)
            run = state.runs[job_id]
            started = run.started
            if not packed or started is None or not started.limit_ns or is_paused(run):
                continue
            if run.phase is not Phase.RUNNING:
                continue
            ran = ran_ns(started, state.time_ns)
            percent = 100 * ran // max(ran + started.limit_ns - state.time_ns, 1)
            share = next((share for share in _SHARES if percent >= share), 0)
            before = (known or {}).get(job_id, (run.number, share if known is None else 0))
            if before[0] == run.number and share > before[1] and percent < 100:
                for effect in mail_about(
                    state, job_id, (f"TIME_LIMIT_{share}",), packed, ran_s=ran // 1_000_000_000
                ):
                    self.put(effect)
            self._shares[job_id] = (run.number, share)

    async def stop(self) -> None:
        """Send no more."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    def _send(self, subject: str, user: str, job_id: JobId) -> None:
        if len(self._workers) < AT_ONCE:
            self._workers.append(asyncio.get_running_loop().create_task(self._work()))
        try:
            self._queue.put_nowait((subject, user, job_id))
        except asyncio.QueueFull:
            LOG.warning("%d mails wait; the one about job %d is dropped", MAILS_MAX, job_id)

    async def _work(self) -> None:
        while True:
            subject, user, job_id = await self._queue.get()
            state = self._state()
            program = parameter_of(state, "MailProg") or MAIL_PROGRAM
            domain = parameter_of(state, "MailDomain")
            address = f"{user}@{domain}" if domain and "@" not in user else user
            arguments, said = mail_arguments(program, subject, address)
            variables = {
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "SLURM_CLUSTER_NAME": settings_of(state).name,
                "SLURM_JOB_ID": str(job_id),
                "SLURM_JOBID": str(job_id),
            }
            try:
                await _run(arguments, said, variables)
            except (OSError, TimeoutError) as error:
                LOG.warning("the mail about job %d was not sent: %s: %s", job_id, program, error)


def mail_arguments(program: str, subject: str, address: str) -> tuple[list[str], bytes]:
    """Return how a program is called that sends a mail, and what it reads.

    One that is called as sendmail is gets the whole message; any other gets the subject as mail(1)
    does.
    """
    subject = " ".join(subject.split())
    address = "".join(address.split()).lstrip("-")
    if os.path.basename(program) not in _SENDMAILS:
        return [program, "-s", subject, address], b""
    message = f"To: {address}\nSubject: {subject}\n\n"
    return [program, "-i", "--", address], message.encode("utf-8", "surrogateescape")


async def _run(arguments: list[str], said: bytes, variables: dict[str, str]) -> None:
    """Run the program to its end. Raises: OSError, TimeoutError."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=variables,
        cwd="/",
    )
    try:
        await asyncio.wait_for(process.communicate(said), MAIL_S)
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise OSError(f"it ended with status {process.returncode}")


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
