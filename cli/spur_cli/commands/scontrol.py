"""`scontrol`: show what is there in every detail, and change it; one keyword, or many in turn."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from spur.slurm.layers import Layer
from spur.slurm.wording import VERSION, SlurmError
from spur_cli.registry import Command
from spur_cli.slurm import (
    daemoncontrol,
    jobcontrol,
    nodecontrol,
    partitioncontrol,
    processlists,
    runcontrol,
    shows,
    sitewide,
)
from spur_cli.slurm.session import Session

__all__ = ["carry_out", "run"]

Verb = Callable[[Session, Layer, list[str]], int]

WORDS_MAX = 128
"""Words of one line."""


def run(arguments: list[str], command: Command) -> int:
    """Carry out one keyword."""
    from spur_cli.slurm.session import guarded

    return guarded("scontrol", lambda session: carry_out(session, arguments))


def carry_out(session: Session, arguments: list[str]) -> int:
    """Carry out one keyword in a session, or those that are typed. Raises: SlurmError."""
    given, words = session.options(_with_flags_as_words(arguments))
    line = Layer({**session.environment_options().values, **given.values}, given.given)
    if session.shows_help(line, [row.name for row in _VERBS]):
        return 0
    if not words:
        return _Dialogue(session, line).hold()
    return _carry_out(session, line, words)


def _with_flags_as_words(arguments: list[str]) -> list[str]:
    """Return the arguments so that -FLAG behind setdebugflags is no option."""
    for place, word in enumerate(arguments):
        if len(word) >= len("setdebugf") and "setdebugflags".startswith(word.lower()):
            return [*arguments[: place + 1], "--", *arguments[place + 1 :]]
    return arguments


def _carry_out(session: Session, line: Layer, words: list[str]) -> int:
    try:
        if len(words) > WORDS_MAX:
            raise SlurmError(f"scontrol: can not process over {WORDS_MAX} words")
        row = _find(words[0], _VERBS)
        if row is None:
            raise SlurmError(f"invalid keyword: {words[0]}")
        return row.verb(session, line, words[1:])
    except SlurmError as error:
        if line.values.get("quiet"):
            return error.status
        raise


class _Row(NamedTuple):
    """A keyword, or something that can be shown."""

    name: str
    least: int
    """Of how many letters at least it may be cut short."""
    verb: Verb


def _find(text: str, rows: Iterable[_Row]) -> _Row | None:
    """Return what a keyword means: one that is cut short is the first that it may be."""
    word = text.lower()
    return next((row for row in rows if row.name.startswith(word) and len(word) >= row.least), None)


# -- one after the other


class _Dialogue:
    """Keywords that are typed line by line. Source: scontrol(1) INTERACTIVE COMMANDS."""

    def __init__(self, session: Session, line: Layer) -> None:
        self._session = session
        self._line = line
        self._last = ""
        self._status = 0

    def hold(self) -> int:
        """Carry out what is typed until it ends; return the status of what failed last."""
        while (text := self._read()) is not None:
            if text.strip() == "!!":
                text = self._last
            self._last = text
            if self._ends(text):
                break
            sys.stdout.flush()
        return self._status

    def _read(self) -> str | None:
        """Return the next line; None at the end. What is not typed at a terminal is shown."""
        if sys.stdin.isatty():
            import readline  # noqa: F401  # lines can be edited, and fetched again

            try:
                return input("scontrol: ")
            except EOFError:
                return None
        text = sys.stdin.readline()
        sys.stdout.write(f"scontrol: {text}" if text.endswith("\n") else f"scontrol: {text}\n")
        return text or None

    def _ends(self, text: str) -> bool:
        """Carry out one line; return whether it was the last."""
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        if not words:
            return False
        word = words[0].lower()
        if "exit".startswith(word) or (len(word) > 3 and "quit".startswith(word)):
            if len(words) == 1:
                return True
            self._complain(SlurmError(f"too many arguments for keyword:{word}"))
            return False
        switch = next((row for row in _SWITCHES if row.name.startswith(word)), None)
        if switch is not None and len(word) >= switch.least:
            self._line.values.update(switch.values)
            return False
        try:
            status = _carry_out(self._session, self._line, words)
        except SlurmError as error:
            self._complain(error)
        else:
            self._status = status or self._status
        return False

    def _complain(self, error: SlurmError) -> None:
        sys.stdout.flush()
        sys.stderr.write("".join(f"{line}\n" for line in error.lines))
        sys.stderr.flush()
        self._status = error.status or self._status


class _Switch(NamedTuple):
    """A word that changes how what follows is shown."""

    name: str
    least: int
    values: dict[str, bool]


_SWITCHES = (
    _Switch("all", 2, {"all": True}),
    _Switch("details", 1, {"details": True}),
    _Switch("hide", 2, {"all": False}),
    _Switch("oneliner", 1, {"oneliner": True}),
    _Switch("quiet", 4, {"quiet": True}),
    _Switch("verbose", 4, {"verbose": True}),
)


# -- keywords that name something


def _show(session: Session, line: Layer, words: list[str]) -> int:
    if not words:
        raise SlurmError("too few arguments for keyword:show")
    text, equals, name = words[0].partition("=")
    row = _find(text, _ENTITIES)
    if row is None:
        raise SlurmError(f"invalid entity:{text} for keyword:show ")
    names = [name, *words[1:]] if equals else words[1:]
    if row.name == "assoc_mgr":
        return row.verb(session, line, words[1:])
    if len(names) > 1:
        raise SlurmError("too many arguments for keyword:show")
    return row.verb(session, line, names)


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    return [(key, value) for key, _, value in (word.partition("=") for word in words)]


def _create(session: Session, line: Layer, words: list[str]) -> int:
    """Make a partition; nodes and reservations come from elsewhere."""
    if not words:
        raise SlurmError("too few arguments for create keyword")
    # The entity may stand alone, as in "create reservation starttime=now".
    pairs = _pairs(words)
    entity = _find(pairs[0][0], _CREATED)
    keys = [entity.name] if entity is not None else []
    keys += [row.name for row in (_find(key, _CREATED) for key, _ in pairs) if row is not None]
    if "reservationname" in keys or "reservation" in keys:
        return daemoncontrol.create_reservation(session, pairs)
    if "nodename" in keys:
        raise SlurmError(
            "Error creating the node(s): Requested operation not supported on this system"
        )
    if "partitionname" in keys:
        return partitioncontrol.create_partition(session, pairs)
    raise SlurmError(f"Invalid creation entity: {words[0]}")


def _delete(session: Session, line: Layer, words: list[str]) -> int:
    """Take a partition away."""
    if not words:
        raise SlurmError("too few arguments for delete keyword")
    entity, equals, name = words[0].partition("=")
    if len(words) > 2 or (equals and len(words) > 1):
        raise SlurmError("too many arguments for delete keyword")
    name = name if equals else words[1] if len(words) > 1 else ""
    if not name:
        raise SlurmError(
            "Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'",
        )
    row = _find(entity, _CREATED)
    typed = words[0] if equals else f"{words[0]} {name}"
    if row is None:
        raise SlurmError(f"Invalid deletion entity: {words[0]}")
    if row.name == "partitionname":
        return partitioncontrol.delete_partition(session, typed, name)
    if row.name == "nodename":
        raise SlurmError(f"delete_node {name}: Requested operation not supported on this system")
    raise SlurmError(f"delete_reservation {name}: Requested reservation is invalid")


def _ping(session: Session, line: Layer, words: list[str]) -> int:
    if words:
        raise SlurmError("too many arguments for keyword:ping")
    return shows.ping(session)


def _write(session: Session, line: Layer, words: list[str]) -> int:
    if not words:
        raise SlurmError("too few arguments for keyword:write")
    if "batch_script".startswith(words[0].lower()):
        if len(words) == 1:
            raise SlurmError("too few arguments for keyword:write")
        if len(words) > 3:
            raise SlurmError("too many arguments for keyword:write")
        return shows.write_batch_script(session, words[1], words[2] if len(words) == 3 else "")
    if "config".startswith(words[0].lower()):
        if len(words) > 2:
            raise SlurmError("too many arguments for keyword:write")
        return daemoncontrol.write_config(session, words[1] if len(words) == 2 else "")
    raise SlurmError(f"invalid write argument:{words[0]}")


def _version(session: Session, line: Layer, words: list[str]) -> int:
    sys.stdout.write(f"{VERSION}\n")
    return 0


def _help(session: Session, line: Layer, words: list[str]) -> int:
    from spur_cli.slurm.session import overview

    sys.stdout.write(overview("scontrol", [row.name for row in _VERBS]))
    return 0


def _nothing(session: Session, line: Layer, words: list[str]) -> int:
    """Switch what only matters between other keywords."""
    return 0


_VERBS: tuple[_Row, ...] = (
    _Row("abort", 5, daemoncontrol.shutdown),
    _Row("all", 2, _nothing),
    _Row("completing", 2, sitewide.show_completing),
    _Row("cluster", 2, daemoncontrol.choose_cluster),
    _Row("create", 2, _create),
    _Row("details", 1, _nothing),
    _Row("errnumstr", 2, daemoncontrol.explain_number),
    _Row("exit", 1, _nothing),
    _Row("fsdampeningfactor", 3, daemoncontrol.dampen),
    _Row("help", 2, _help),
    _Row("hide", 2, _nothing),
    _Row("hold", 4, jobcontrol.hold),
    _Row("uhold", 5, jobcontrol.user_hold),
    _Row("holdu", 5, jobcontrol.user_hold),
    _Row("listjobs", 5, processlists.list_jobs),
    _Row("listpids", 1, processlists.list_processes),
    _Row("liststeps", 5, processlists.list_steps),
    _Row("notify", 1, runcontrol.notify),
    _Row("oneliner", 1, _nothing),
    _Row("pidinfo", 3, processlists.explain_process),
    _Row("ping", 3, _ping),
    _Row("power", 2, nodecontrol.power),
    _Row("quiet", 4, _nothing),
    _Row("quit", 4, _nothing),
    _Row("reboot", 3, nodecontrol.reboot),
    _Row("cancel_reboot", 3, nodecontrol.cancel_reboot),
    _Row("reconfigure", 3, nodecontrol.reconfigure),
    _Row("release", 3, jobcontrol.release),
    _Row("requeue", 3, jobcontrol.requeue),
    _Row("requeuehold", 8, jobcontrol.requeue_hold),
    _Row("suspend", 2, runcontrol.suspend),
    _Row("resume", 3, runcontrol.resume),
    _Row("top", 3, runcontrol.top),
    _Row("wait_job", 2, runcontrol.wait_job),
    _Row("setdebug", 2, daemoncontrol.set_debug),
    _Row("setdebugflags", 9, daemoncontrol.set_debug_flags),
    _Row("schedloglevel", 3, daemoncontrol.set_schedule_log),
    _Row("show", 3, _show),
    _Row("shutdown", 8, daemoncontrol.shutdown),
    _Row("takeover", 8, daemoncontrol.take_over),
    _Row("token", 3, daemoncontrol.fetch_token),
    _Row("update", 1, jobcontrol.update),
    _Row("delete", 1, _delete),
    _Row("verbose", 4, _nothing),
    _Row("version", 4, _version),
    _Row("write", 1, _write),
)
"""In the order in which they are looked for."""

_ENTITIES: tuple[_Row, ...] = (
    _Row("aliases", 1, shows.show_nothing),
    _Row("assoc_mgr", 2, sitewide.show_associations),
    _Row("bbstat", 2, shows.show_nothing),
    _Row("burstbuffer", 2, shows.show_nothing),
    _Row("config", 1, sitewide.show_config),
    _Row("daemons", 1, sitewide.show_daemons),
    _Row("dwstat", 2, shows.show_nothing),
    _Row("federations", 2, sitewide.show_federation),
    _Row("frontend", 1, shows.show_front_ends),
    _Row("hostnames", 5, shows.show_hostnames),
    _Row("hostlist", 5, shows.show_hostlist),
    _Row("hostlistsorted", 9, shows.show_hostlist_sorted),
    _Row("jobs", 1, shows.show_jobs),
    _Row("jobid", 1, shows.show_jobs),
    _Row("licenses", 2, shows.show_licenses),
    _Row("nodes", 1, shows.show_nodes),
    _Row("partitions", 1, shows.show_partitions),
    _Row("reservations", 1, shows.show_reservations),
    _Row("slurmd", 2, sitewide.show_slurmd),
    _Row("steps", 1, shows.show_steps),
    _Row("topology", 1, sitewide.show_topology),
)
"""What `show` knows, in the order in which it is looked for."""

_CREATED: tuple[_Row, ...] = (
    _Row("partitionname", 1, _nothing),
    _Row("reservationname", 1, _nothing),
    _Row("nodename", 1, _nothing),
)
"""What is created and deleted; what is done is decided where the entity is known."""
