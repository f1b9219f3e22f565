"""A step that srun started: its streams, what its tasks execute, and what they come to."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from spur.client.address import parse_tcp_address
from spur.slurm.exports import encode_environment, exported
from spur.slurm.gpubind import gpu_binding
from spur.slurm.rlimits import submitted_limits
from spur.slurm.stepenv import allocation_environment, step_environment
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import NodeName
from spur.values.steps import EXTERN_STEP, tasks_on
from spur.wire.declare import Done
from spur.wire.jobs import JobView
from spur.wire.steps import CancelStep, StepView
from spur.wire.streams import STREAM_VERSION, Open, Program, Splice, stream_frames
from spur_cli.slurm.dialling import dial_agent
from spur_cli.slurm.guesting import visit
from spur_cli.slurm.nodestream import NodeStream
from spur_cli.slurm.people import user_name
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals
from spur_cli.slurm.staying import Staying
from spur_cli.slurm.stepfiles import StepFiles, local_files
from spur_cli.slurm.stepio import StepLoop
from spur_cli.slurm.steptasks import Tasks
from spur_cli.slurm.submitting import soft_limits

__all__ = ["StepRun"]


class StepRun:
    """One step, from its streams' opening to its exit status."""

    def __init__(
        self,
        *,
        session: Session,
        job: JobView,
        step: StepView,
        key: bytes,
        values: dict[str, Any],
        tasks: Tasks,
        signals: Signals,
        is_ours: bool,
        staying: Staying | None,
    ) -> None:
        self._session = session
        self._job = job
        self._step = step
        self._key = key
        self._values = values
        self._tasks = tasks
        self._signals = signals
        self._is_ours = is_ours
        self._staying = staying

    def stay(self) -> int:
        """Run the tasks, pass on what they read and write, and return the exit status.

        Raises: SlurmError when no node can be reached; the step is then cancelled.
        """
        files = local_files(
            self._values, job=self._job, step=self._step, user=user_name(self._step.uid)
        )
        self._run_beside("prolog")
        try:
            sent = self._send_program() if "bcast" in self._values else ()
        except SlurmError:
            self._session.ask(CancelStep(self._job.job_id, self._step.step_id), Done)
            raise
        terminal = self._tasks.terminal
        loop = StepLoop(
            session=self._session,
            step=self._step,
            streams=self._open(files, sent),
            files=files,
            signals=self._signals,
            values=self._values,
            staying=self._staying,
            terminal=terminal,
        )
        try:
            if terminal is not None:
                terminal.enter()
            return loop.run()
        finally:
            if terminal is not None:
                terminal.leave()
            loop.close()
            self._run_beside("epilog")

    def _run_beside(self, which: str) -> None:
        """Run what goes before or after a step, here. Source: srun(1) --prolog, --epilog."""
        path = self._values.get(which, "")
        if not path:
            return
        if not os.access(path, os.R_OK | os.X_OK):
            why = os.strerror(errno.EACCES if os.path.exists(path) else errno.ENOENT)
            sys.stderr.write(f"srun: Access denied for {path}: {why}\n")
            return
        own = {**allocation_environment(self._job), **step_environment(self._step, self._values)}
        sys.stdout.flush()
        import subprocess  # for the few that ask for it

        with suppress(OSError):
            subprocess.run(
                [path, *self._tasks.words],
                executable=path,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                check=False,
            )

    def _send_program(self) -> tuple[bytes, ...]:
        """Send what is executed to each node; return where it is there.

        Raises: SlurmError when a node does not have it. Source: srun(1) --bcast.
        """
        from spur_cli.slurm.sending import open_source, send_file

        nodes = [share.node for share in self._step.shares]
        paths = {node: self._sent_path(node) for node in nodes}
        name = self._tasks.words[0]
        source = open_source("srun", shutil.which(name) or name)
        place = visit(self._session, self._job.job_id, EXTERN_STEP)
        if isinstance(place, Rejection):
            raise SlurmError(error_line("srun", sentence_of(place)))
        is_compressed = self._values.get("compress", "none") != "none"
        found = send_file(
            self._session,
            place.only(nodes),
            source,
            lambda node: source.put(
                paths[NodeName(node)],
                forces=True,
                keeps_times=False,
                is_compressed=is_compressed,
            ),
        )
        os.close(source.fd)
        bad = [f"REQUEST_FILE_BCAST({sent.node}): {sent.why}" for sent in found if sent.number]
        if bad:
            raise SlurmError(*(error_line("srun", sentence) for sentence in bad))
        return tuple(paths[node] for node in nodes)

    def _sent_path(self, node: str) -> bytes:
        """Return where a program that was sent lies on a node."""
        text: str = self._values["bcast"]
        if not text or text.endswith("/"):
            step = self._step
            text = f"{text}slurm_bcast_{step.job_id}.{step.step_id}_{node}"
        return os.path.join(os.fsencode(os.getcwd()), os.fsencode(text))

    def _open(self, files: StepFiles, sent: tuple[bytes, ...]) -> list[NodeStream]:
        program = self._program(files)
        several = self._tasks.several(sum(self._step.tasks))
        dial = partial(dial_agent, self._session)
        streams = []
        for place, share in enumerate(self._step.shares):
            tasks = tasks_on(
                self._step.tasks, place, dealing=self._step.dealing, plane=self._step.plane
            )
            opening = Open(
                share.node, self._job.job_id, self._step.run, self._step.step_id, self._key
            )
            splice = Splice(STREAM_VERSION, self._step.addresses[place], opening)
            stream = NodeStream(share.node, tasks, dial, stream_frames(splice))
            own = tuple(several[task] for task in tasks) if several else ()
            words = (sent[place], *program.argv[1:]) if sent else program.argv
            stream.send(replace(program, argv=words, several=own))
            streams.append(stream)
        return streams

    def _program(self, files: StepFiles) -> Program:
        """Return what every task executes."""
        values = self._values
        directory = os.fsencode(values.get("directory", ""))
        umask = os.umask(0o077)
        os.umask(umask)
        return Program(
            argv=tuple(os.fsencode(word) for word in self._tasks.words),
            environment=self._environment(umask),
            working_directory=os.path.join(os.fsencode(os.getcwd()), directory),
            umask=umask,
            limits=(),
            stdin_path=files.stdin_pattern,
            stdout_path=files.stdout_pattern,
            stderr_path=files.stderr_pattern,
            appends=files.appends,
            kill_on_bad_exit=bool(values.get("kill_on_bad_exit")),
            pty=None if self._tasks.terminal is None else self._tasks.terminal.size,
            gpu_binding=gpu_binding(values, self._session.environment),
            task_prolog=os.fsencode(values.get("task_prolog", "")),
            task_epilog=os.fsencode(values.get("task_epilog", "")),
            is_unbuffered=bool(values.get("unbuffered")),
        )

    def _environment(self, umask: int) -> bytes:
        """Return the variables that all tasks have in common."""
        export = self._values.get("export")
        variables = dict(os.environb)
        own = {
            **allocation_environment(self._job),
            **step_environment(self._step, self._values),
            "SLURM_UMASK": f"{umask:04o}",
            **_launch_environment(self._step.addresses),
        }
        if self._tasks.terminal is not None:
            rows, columns = self._tasks.terminal.size
            own["SLURM_PTY_PORT"] = "0"
            own["SLURM_PTY_WIN_COL"], own["SLURM_PTY_WIN_ROW"] = str(columns), str(rows)
        if self._is_ours:
            own["SLURM_SUBMIT_DIR"] = os.getcwd()
            own["SLURM_SUBMIT_HOST"] = os.uname().nodename
        variables.update((os.fsencode(name), os.fsencode(value)) for name, value in own.items())
        kept = exported(variables, None if export is None else os.fsencode(export))
        kept |= submitted_limits(soft_limits(), self._values.get("propagate"))
        return encode_environment(kept)


def _launch_environment(addresses: tuple[str, ...]) -> dict[str, str]:
    """Return where srun runs, as its nodes see it. It listens nowhere: its ports are 0.

    Source: srun(1), OUTPUT ENVIRONMENT VARIABLES.
    """
    own = "127.0.0.1"
    with suppress(OSError, ValueError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: the kernel only says from where it would be.
        probe.connect(parse_tcp_address(addresses[0]))
        own = probe.getsockname()[0]
    return {
        "SLURM_LAUNCH_NODE_IPADDR": own,
        "SLURM_SRUN_COMM_HOST": own,
        "SLURM_SRUN_COMM_PORT": "0",
        "SLURM_STEP_LAUNCHER_PORT": "0",
    }
