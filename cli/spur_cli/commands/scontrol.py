"""`scontrol`: show what is there in every detail, and change jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError
from spur_cli.registry import Command
from spur_cli.slurm import jobcontrol, nodecontrol, runcontrol, shows
from spur_cli.slurm.session import Session, guarded

__all__ = ["carry_out", "run"]

Verb = Callable[[Session, Layer, list[str]], int]


def run(arguments: list[str], command: Command) -> int:
    """Carry out one keyword."""
    return guarded("scontrol", lambda session: carry_out(session, arguments))


def carry_out(session: Session, arguments: list[str]) -> int:
    """Carry out one keyword in a session. Raises: SlurmError."""
    line, words = session.options(arguments)
    if session.shows_help(line, _VERBS):
        return 0
    if not words:
        raise SlurmError(
            "scontrol: error: the interactive mode is not there; give a keyword, such as show"
        )
    keyword, rest = words[0], words[1:]
    verb = _find(keyword, _VERBS)
    try:
        if verb is None:
            raise SlurmError(f"invalid keyword: {keyword}")
        return verb(session, line, rest)
    except SlurmError as error:
        if line.values.get("quiet"):
            return error.status
        raise


def _find(text: str, table: Mapping[str, Verb]) -> Verb | None:
    """Return what a keyword means: one that is cut short is the first that begins so."""
    word = text.lower()
    found = table.get(word)
    if found is not None:
        return found
    return next((table[name] for name in table if word and name.startswith(word)), None)


def _show(session: Session, line: Layer, words: list[str]) -> int:
    entity_text, equals, name = (words[0] if words else "").partition("=")
    names = [name, *words[1:]] if equals else words[1:]
    if not words:
        raise SlurmError("too few arguments for keyword:show")
    entity = _find(entity_text, _ENTITIES)
    if entity is None:
        raise SlurmError(f"invalid entity:{entity_text} for keyword:show ")
    if len(names) > 1:
        raise SlurmError("too many arguments for keyword:show")
    return entity(session, line, names)


def _ping(session: Session, line: Layer, words: list[str]) -> int:
    if words:
        raise SlurmError("too many arguments for keyword:ping")
    return shows.ping(session)


def _write(session: Session, line: Layer, words: list[str]) -> int:
    if not words:
        raise SlurmError("too few arguments for keyword:write")
    if not "batch_script".startswith(words[0].lower()):
        raise SlurmError(f"invalid write argument:{words[0]}")
    if len(words) == 1:
        raise SlurmError("too few arguments for keyword:write")
    if len(words) > 3:
        raise SlurmError("too many arguments for keyword:write")
    return shows.write_batch_script(session, words[1], words[2] if len(words) == 3 else "")


def _version(session: Session, line: Layer, words: Sequence[str]) -> int:
    from spur.slurm.wording import VERSION

    sys.stdout.write(f"{VERSION}\n")
    return 0


_VERBS: dict[str, Verb] = {
    "hold": jobcontrol.hold,
    "ping": _ping,
    "reconfigure": nodecontrol.reconfigure,
    "release": jobcontrol.release,
    "requeue": jobcontrol.requeue,
    "requeuehold": jobcontrol.requeue_hold,
    "resume": runcontrol.resume,
    "show": _show,
    "suspend": runcontrol.suspend,
    "uhold": jobcontrol.user_hold,
    "update": jobcontrol.update,
    "version": _version,
    "wait_job": runcontrol.wait_job,
    "write": _write,
}

_ENTITIES: dict[str, Verb] = {
    "aliases": shows.show_nothing,
    "bbstat": shows.show_nothing,
    "burstbuffer": shows.show_nothing,
    "config": shows.show_config,
    "dwstat": shows.show_nothing,
    "frontend": shows.show_front_ends,
    "hostlist": shows.show_hostlist,
    "hostlistsorted": shows.show_hostlist_sorted,
    "hostnames": shows.show_hostnames,
    "jobs": shows.show_jobs,
    "jobid": shows.show_jobs,
    "licenses": shows.show_licenses,
    "nodes": shows.show_nodes,
    "partitions": shows.show_partitions,
    "reservations": shows.show_reservations,
    "steps": shows.show_steps,
}
