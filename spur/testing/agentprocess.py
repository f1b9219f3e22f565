"""Real agents as processes, for tests. Only processes started here are ever signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spur.server.agentsettings import SETTINGS_FILE

__all__ = ["AgentProcess"]

PATIENCE_S = 20.0


@dataclass
class AgentProcess:
    """One agent's directory, and its process while it runs."""

    directory: Path
    prefix: Sequence[str] = ()
    """Words before the command: how to run it on its host."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def configure(self, text: str) -> None:
        """Write its settings."""
        self.directory.mkdir(mode=0o711, exist_ok=True)
        (self.directory / SETTINGS_FILE).write_text(text)

    @property
    def spool(self) -> Path:
        """Where its attempts lie."""
        return self.directory / "spool"

    @property
    def pid(self) -> int:
        """Its process id. Raises: ValueError when it is not running."""
        if self.process is None:
            raise ValueError(f"{self.directory.name} is not running")
        return self.process.pid

    def start(self) -> None:
        """Start it; its words are added to `log` in its directory."""
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self.prefix,
                    sys.executable,
                    "-P",
                    "-m",
                    "spur.agent.main",
                    "run",
                    "--dir",
                    str(self.directory),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it as a crash would, and nothing else."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> int:
        """End it politely; return its exit status."""
        if self.process is None:
            return 0
        os.kill(self.pid, signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        self.process = None
        return status

    def words(self) -> str:
        """Return what it has said so far."""
        path = self.directory / "log"
        return path.read_text() if path.exists() else ""
