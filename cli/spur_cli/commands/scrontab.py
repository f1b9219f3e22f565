"""`scrontab`: jobs that come again, in a crontab of their user."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

from spur.slurm.crontab import BadCrontab, CrontabEntry, read_crontab
from spur.slurm.getopt import parse_arguments
from spur.slurm.layers import Layer, layer_of
from spur.slurm.options import OPTIONS
from spur.slurm.submission import merge, submission_of
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.zones import parse_zone
from spur.wire.crontabs import CronAsk, CrontabText, ReadCrontab, SetCrontab
from spur.wire.declare import Attachment, Done
from spur_cli.registry import Command
from spur_cli.slurm.people import LocalCalendar
from spur_cli.slurm.session import Session, guarded
from spur_cli.slurm.submitting import here, texts_of

__all__ = ["carry_out", "run"]

SCRIPT = b"#!/bin/sh\n# This script was created by scrontab.\n\n%s\n"

_EMPTY = """\
# Jobs that come again, one a line:
#   minute hour day-of-month month day-of-week command
# Options of a job stand before it, as in: #SCRON --time=10
"""


def run(arguments: list[str], command: Command) -> int:
    """Show, change or remove a crontab."""
    return guarded("scrontab", lambda session: carry_out(session, arguments))


def carry_out(session: Session, arguments: list[str]) -> int:
    """Do what is asked in a session. Raises: SlurmError."""
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    uid = _uid(line.values.get("user"))
    asked = [name for name in ("edit", "list", "remove") if line.values.get(name)]
    if len(asked) > 1 or (asked and words):
        raise SlurmError(error_line("scrontab", "only one of -e, -l, -r or a file can be given"))
    if len(words) > 1:
        raise SlurmError(error_line("scrontab", "only one file can be given"))
    if "list" in asked:
        sys.stdout.write(_read(session, uid))
        return 0
    if "remove" in asked:
        return _set(session, None, uid)
    if "edit" in asked or (not words and sys.stdin.isatty()):
        return _edit(session, uid)
    return _set(session, _content(words[0] if words else "-"), uid)


def _uid(name: str | None) -> int | None:
    """Return whose crontab is meant; None for one's own."""
    if name is None:
        return None
    try:
        return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError as error:
        raise SlurmError(error_line("scrontab", f"Invalid user: {name}")) from error


def _content(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise SlurmError(error_line("scrontab", f"{path}: {error.strerror}")) from error


def _read(session: Session, uid: int | None) -> str:
    answer = session.ask(ReadCrontab(uid), CrontabText)
    if isinstance(answer, Rejection):
        raise SlurmError(error_line("scrontab", sentence_of(answer)))
    if not answer.is_there:
        name = pwd.getpwuid(os.getuid() if uid is None else uid).pw_name
        raise SlurmError(f"no crontab for {name}")
    return answer.content.decode("utf-8", "surrogateescape")


def _edit(session: Session, uid: int | None) -> int:
    """Let the user's editor change the crontab, until it can be read or is given up."""
    try:
        text = _read(session, uid)
    except SlurmError:
        text = _EMPTY
    editor = session.environment.get("VISUAL") or session.environment.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crontab"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        while True:
            if subprocess.run(["/bin/sh", "-c", f'{editor} "$1"', "sh", str(path)]).returncode:
                raise SlurmError(error_line("scrontab", "the editor failed; nothing was changed"))
            changed = path.read_text(encoding="utf-8", errors="surrogateescape")
            if changed == text:
                sys.stderr.write("scrontab: no changes made to crontab\n")
                return 0
            try:
                return _set(session, changed, uid)
            except SlurmError as error:
                sys.stderr.write("".join(f"{line}\n" for line in error.lines))
                sys.stderr.write("Do you want to retry the same edit? (y/n) ")
                sys.stderr.flush()
                if not sys.stdin.readline().lower().startswith("y"):
                    return error.status


def _set(session: Session, text: str | None, uid: int | None) -> int:
    """Hand in a crontab; None removes it."""
    attachments: list[Attachment] = []
    asks: list[CronAsk] = []
    if text is not None:
        content = text.encode("utf-8", "surrogateescape")
        attachments.append(Attachment("crontab", content))
        try:
            entries = read_crontab(text)
        except BadCrontab as error:
            raise SlurmError(error_line("scrontab", f"Error on {error}")) from error
        for entry in entries:
            asks.append(_ask(entry, attachments))
    request = SetCrontab(_zone(session), tuple(asks), tuple(attachments), uid)
    answer = session.ask(request, Done)
    if isinstance(answer, Rejection):
        raise SlurmError(error_line("scrontab", sentence_of(answer)))
    return 0


def _ask(entry: CrontabEntry, attachments: list[Attachment]) -> CronAsk:
    """Return an entry as it is asked for; what its job carries is added to the attachments."""
    given, others = parse_arguments(
        entry.options, OPTIONS["sbatch"], program="scrontab", stops_at_word=True
    )
    if others:
        raise SlurmError(error_line("scrontab", f"line {entry.line}: invalid option {others[0]}"))
    nothing = Layer({}, {})
    settings = merge(layer_of(given, "scrontab"), nothing, nothing, "scrontab")
    account = pwd.getpwuid(os.getuid())
    submission = submission_of(
        settings,
        program="scrontab",
        default_name=entry.command.split()[0].rpartition("/")[2],
        argv=(b"",),
        working_directory=os.fsencode(account.pw_dir),
        calendar=LocalCalendar(),
        place=here(),
    )
    environment = (
        f"HOME={account.pw_dir}\0USER={account.pw_name}\0LOGNAME={account.pw_name}\0"
        f"SHELL={account.pw_shell or '/bin/sh'}\0PATH=/usr/local/bin:/usr/bin:/bin\0"
    )
    first = len(attachments)
    script = SCRIPT % entry.command.encode("utf-8", "surrogateescape")
    attachments.append(Attachment("script", script))
    attachments.append(Attachment("environment", environment.encode("utf-8", "surrogateescape")))
    attachments.extend(texts_of(submission.text))
    return CronAsk(entry.time, submission.spec, tuple(range(first, len(attachments))))


def _zone(session: Session) -> str:
    """Return the rule for local time here: of TZ, or of the host; else UTC."""
    name = session.environment.get("TZ", "").lstrip(":")
    path = Path("/usr/share/zoneinfo") / name if name else Path("/etc/localtime")
    found = [name] if name else []
    with contextlib.suppress(OSError, UnicodeDecodeError):  # else it may be a rule itself
        found.append(path.read_bytes().rstrip(b"\n").rpartition(b"\n")[2].decode("ascii"))
    for text in reversed(found):
        try:
            parse_zone(text)
        except ValueError:
            continue
        return text
    return "UTC0"
