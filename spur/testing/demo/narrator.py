"""The voice of the demonstration: what is going on, which command is run, what it prints."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console, RenderableType
from rich.panel import Panel

from spur.testing.machine import ENVIRONMENT
from spur.values.errors import SpurError

__all__ = ["Narrator", "Shell"]

COMMAND_S = 60.0
"""How long one command of the demonstration may take."""


class Narrator:
    """Writes to the terminal."""

    def __init__(self) -> None:
        self._console = Console()

    def step(self, title: str, text: str) -> None:
        """Begin another step, with what to look at."""
        self._console.print()
        flowing = " ".join(text.split())
        self._console.print(Panel(flowing, title=f"[bold]{title}[/bold]", title_align="left"))

    def note(self, text: str) -> None:
        """Say what was seen."""
        self._console.print(f"  {text}", highlight=False)

    def say(self, text: str) -> None:
        """Write a plain line."""
        self._console.print(text, highlight=False)

    def show(self, what: RenderableType) -> None:
        """Write a table."""
        self._console.print(what)

    def command(self, words: str) -> None:
        """Write a command as if it were typed."""
        self._console.print(
            f"  $ {words}", style="bold", highlight=False, markup=False, soft_wrap=True
        )

    def output(self, text: str) -> None:
        """Write what a command printed."""
        for line in text.splitlines():
            self._console.print(f"    {line}", highlight=False, soft_wrap=True, markup=False)

    def stopped(self, why: str) -> None:
        """Say that a step went wrong."""
        self._console.print(f"[bold red]the demonstration stopped:[/bold red] {why}")


class Shell:
    """Runs commands as a person in a terminal would, in one directory."""

    def __init__(self, narrator: Narrator, directory: Path, environment: Mapping[str, str]) -> None:
        self._narrator = narrator
        self.directory = directory
        self._environment = {**ENVIRONMENT, **environment}

    def run(self, command: str, *, status: int = 0) -> str:
        """Show a command and what it prints; return that.

        Raises: SpurError when its exit status is another one.
        """
        self._narrator.command(command)
        done = self._done(command)
        self._narrator.output(done.stdout + done.stderr)
        if done.returncode != status:
            raise SpurError(f"`{command}` ended with status {done.returncode}")
        return done.stdout

    def ask(self, command: str) -> str:
        """Run a command unseen; return what it prints, without the last line end."""
        done = self._done(command)
        if done.returncode:
            raise SpurError(f"`{command}` ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.rstrip("\n")

    def _done(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.directory,
            env=self._environment,
            timeout=COMMAND_S,
        )
