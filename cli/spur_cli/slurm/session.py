"""A command that is called by Slurm's name: how it reads its options, asks, and gives up."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from spur.slurm.getopt import parse_arguments
from spur.slurm.layers import Layer, environment_layer, layer_of
from spur.slurm.options import OPTIONS
from spur.slurm.wording import VERSION, SlurmError
from spur.values.errors import OperatorFault, Rejection, SpurError
from spur.wire.declare import Answer, Request
from spur_cli.output.terminal import shielded

if TYPE_CHECKING:
    from spur.client.blocking import BlockingClient
    from spur.client.faults import OutcomeUnknown
    from spur_cli.slurm.signals import Signals

__all__ = ["Session", "guarded", "overview"]

A = TypeVar("A", bound=Answer)

WAIT_S = 5.0
"""How long a command waits for a controller, a failover included."""

HELD_S = 60.0
"""How long one goes on that would leave resources to nobody if it gave up. More than the agent
between it and the controllers waits: after that nobody carries the request out any more."""

_WORDS = {
    "sacctmgr": " KEYWORD [WORDS...]",
    "salloc": " [COMMAND [ARGUMENTS...]]",
    "sattach": " JOB.STEP",
    "sbcast": " FILE TARGET",
    "sbatch": " [SCRIPT [ARGUMENTS...]]",
    "scancel": " [JOB...]",
    "scontrol": " KEYWORD [WORDS...]",
    "srun": " COMMAND [ARGUMENTS...]",
}
"""What stands after the options."""

_EXITS_AS_SAID = ("salloc", "sattach", "sbatch", "srun")
"""Commands whose exit status for a failure is their user's to choose."""

AGAIN_S = 0.2
"""Between two tries to find out, when nobody takes the question."""


def guarded(program: str, work: Callable[[Session], int]) -> int:
    """Run a command and return its exit status; what it gives up with goes to stderr.

    What srun and sattach write is the tasks' own; others show what users wrote, to whoever looks.
    """
    if program in ("srun", "sattach"):
        return _guarded(program, work)
    with shielded():
        return _guarded(program, work)


def _guarded(program: str, work: Callable[[Session], int]) -> int:
    session = Session(program, os.environ)
    try:
        return work(session)
    except SlurmError as error:
        sys.stderr.write("".join(f"{line}\n" for line in error.lines))
        return error.status if error.status != 1 else session.exit_status("SLURM_EXIT_ERROR")
    except SpurError as error:
        sys.stderr.write(f"{program}: error: {error}\n")
        return 1
    finally:
        session.close()


def overview(program: str, keywords: Iterable[str] = ()) -> str:
    """Return what --help shows: every option and what becomes of it, and the keywords there are."""
    lines = [f"Usage: {program} [OPTIONS...]{_WORDS.get(program, '')}\n\n"]
    for option in OPTIONS[program]:
        value = ("", "=VALUE", "[=VALUE]", "[=VALUE]")[option.takes]
        names = f"    --{option.long}{value}"
        if not option.long:
            names = f"-{option.short}{value.replace('=', ' ')}"
        elif option.short:
            names = f"-{option.short}, --{option.long}{value}"
        note = f"  ({option.effect}: {option.why})" if option.why else ""
        lines.append(f"  {names}{note}\n")
    lines.append(
        "\nOptions mean what they mean in Slurm. One that is accepted, not honoured has no effect"
        "\nso far; one that is refused ends the command.\n"
    )
    if keywords:
        lines.append(f"\nKeywords: {', '.join(keywords)}.\n")
    return "".join(lines)


class Session:
    """One run of one command."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        self.program = program
        self.environment = environment
        self._client: BlockingClient | None = None
        self._warned: set[str] = set()

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._client is not None:
            self._client.close()

    @property
    def own_uid(self) -> int:
        """Who runs the command."""
        return os.geteuid()

    @property
    def is_root(self) -> bool:
        """Whether root runs the command."""
        return os.geteuid() == 0

    def exit_status(self, name: str) -> int:
        """Return how the command fails: with 1, or what this variable of its user says.

        Source: salloc(1), srun(1), sattach(1), sbatch(1): SLURM_EXIT_ERROR, SLURM_EXIT_IMMEDIATE.
        """
        said = self.environment.get(name, "") if self.program in _EXITS_AS_SAID else ""
        return int(said) & 0xFF if said.isascii() and said.isdigit() else 1

    # -- the command line
    def options(
        self, arguments: Sequence[str], *, status: int = 1, stops_at_word: bool = False
    ) -> tuple[Layer, list[str]]:
        """Return the options of the command line, and the other words. Raises: SlurmError."""
        given, words = parse_arguments(
            arguments,
            OPTIONS[self.program],
            program=self.program,
            status=status,
            stops_at_word=stops_at_word,
        )
        return layer_of(given, self.program), words

    def environment_options(self) -> Layer:
        """Return the options that variables give. Raises: SlurmError."""
        return environment_layer(self.environment, OPTIONS[self.program], self.program)

    def shows_help(self, layer: Layer, keywords: Iterable[str] = ()) -> bool:
        """Write what --help, --usage or --version ask for; whether one of them was given."""
        if layer.values.get("version"):
            sys.stdout.write(f"{VERSION}\n")
        elif layer.values.get("help") or layer.values.get("usage"):
            sys.stdout.write(overview(self.program, keywords))
        else:
            return False
        return True

    # -- output
    def complain(self, text: str) -> None:
        """Write an error that does not end the command; bytes that are no text as they can be."""
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        sys.stderr.write(f"{self.program}: error: {text}\n")

    # -- the cluster
    def ask(
        self, request: Request, expected: type[A], *, held_with: Signals | None = None
    ) -> A | Rejection:
        """Return the answer; one that cannot be had is a Rejection like any other no.

        With `held_with` a request that was sent is asked for again under its id until what became
        of it is known, for `HELD_S`: what it obtains is held by this command and by nobody else.
        A signal ends that at once.
        """
        from spur.client.faults import OutcomeUnknown, Unreachable

        client = self._connected()
        try:
            return client.ask(request, expected, warn=self._warn)
        except Unreachable as error:
            return Rejection(error.code, str(error))
        except OutcomeUnknown as error:
            if held_with is None:
                return Rejection(error.code, str(error))
            return self._ask_on(request, expected, error, held_with)
        except ValueError as error:
            raise OperatorFault(str(error)) from error

    def _ask_on(
        self, request: Request, expected: type[A], unknown: OutcomeUnknown, signals: Signals
    ) -> A | Rejection:
        """Ask for what became of a request until that is known, or a signal or the time ends it."""
        from spur.client.faults import OutcomeUnknown, Unreachable
        from spur_cli.slurm.signals import Interrupted

        client, until_s = self._connected(), time.monotonic() + HELD_S
        request_id, since = unknown.request_id, unknown.since
        last: OutcomeUnknown | Unreachable = unknown
        try:
            with signals.interrupting():
                while time.monotonic() <= until_s:
                    try:
                        return client.ask(
                            request, expected, request_id=request_id, since=since, warn=self._warn
                        )
                    except Unreachable as error:
                        # Before this try somebody may have taken it.
                        last = error
                        time.sleep(AGAIN_S)
                    except OutcomeUnknown as error:
                        last, since = error, error.since
        except Interrupted:
            # Half of a reply may lie in the connection.
            self.close()
            self._client = None
            return Rejection("outcome-unknown", f"interrupted by a signal: {unknown}")
        return Rejection(last.code, str(last))

    def _connected(self) -> BlockingClient:
        from spur.client.blocking import BlockingClient
        from spur.client.locate import locate

        if self._client is None:
            try:
                self._client = BlockingClient(locate(self.environment), deadline_s=WAIT_S)
            except ValueError as error:
                raise OperatorFault(str(error)) from error
        return self._client

    def _warn(self, text: str) -> None:
        """Write a warning once, however many answers of this command carry it."""
        if text in self._warned:
            return
        self._warned.add(text)
        sys.stderr.write(f"{self.program}: warning: {text}\n")
