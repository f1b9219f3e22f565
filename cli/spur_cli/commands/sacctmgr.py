"""`sacctmgr`: show and change accounts, users, associations and QOS."""

from __future__ import annotations

import sys
from collections.abc import Callable

from spur.slurm.wording import VERSION, SlurmError
from spur_cli.registry import Command
from spur_cli.slurm import accountadds, accountchanges, accountremovals, accountshows
from spur_cli.slurm.accounts import Clerk
from spur_cli.slurm.session import Session, guarded

__all__ = ["execute", "run"]

Verb = Callable[[Clerk, list[str]], int]


def run(arguments: list[str], command: Command) -> int:
    """Carry out one keyword."""
    return guarded("sacctmgr", lambda session: execute(session, arguments))


def execute(session: Session, arguments: list[str]) -> int:
    """Carry out one keyword in a session. Raises: SlurmError."""
    line, words = session.options(arguments)
    if session.shows_help(line, [row[0] for row in _VERBS if row[2] is not _not_yet]):
        return 0
    if not words:
        raise SlurmError(
            "sacctmgr: error: the interactive mode is not there; give a keyword, such as show"
        )
    keyword = words[0].lower()
    for name, letters, verb, writes in _VERBS:
        if name.startswith(keyword) and len(keyword) >= letters:
            if writes and line.values.get("readonly"):
                raise SlurmError("Can't run this command in readonly mode.")
            return verb(Clerk(session, line.values), words[1:])
    raise SlurmError(f"invalid keyword: {words[0]}")


def _entity(words: list[str], table: list[tuple[str, int, Verb]], complaint: str) -> Verb:
    """Return what is done to the entity that is named. Raises: SlurmError."""
    word = words[0].lower() if words else ""
    for name, letters, verb in table:
        if word and name.startswith(word) and len(word) >= letters:
            return verb
    raise SlurmError(*complaint.splitlines())


def _show(clerk: Clerk, words: list[str]) -> int:
    return _entity(words, _SHOWN, _SHOW_COMPLAINT)(clerk, words[1:])


def _add(clerk: Clerk, words: list[str]) -> int:
    return _entity(words, _ADDED, _COMPLAINT.format("add"))(clerk, words[1:])


def _modify(clerk: Clerk, words: list[str]) -> int:
    return _entity(words, _MODIFIED, _MODIFY_COMPLAINT)(clerk, words[1:])


def _delete(clerk: Clerk, words: list[str]) -> int:
    return _entity(words, _DELETED, _COMPLAINT.format("delete"))(clerk, words[1:])


def _not_yet(clerk: Clerk, words: list[str]) -> int:
    raise SlurmError("sacctmgr: error: this is not honoured yet; nothing was changed")


def _version(clerk: Clerk, words: list[str]) -> int:
    sys.stdout.write(f"{VERSION}\n")
    return 0


_VERBS: list[tuple[str, int, Verb, bool]] = [
    ("add", 3, _add, True),
    ("archive", 3, _not_yet, True),
    ("clear", 3, _not_yet, True),
    ("create", 3, _add, True),
    ("delete", 3, _delete, True),
    ("dump", 3, _not_yet, False),
    ("list", 3, _show, False),
    ("load", 3, _not_yet, True),
    ("modify", 1, _modify, True),
    ("reconfigure", 3, _not_yet, True),
    ("remove", 3, _delete, True),
    ("show", 3, _show, False),
    ("version", 4, _version, False),
]

_SHOWN: list[tuple[str, int, Verb]] = [
    ("accounts", 2, accountshows.show_accounts),
    ("associations", 2, accountshows.show_associations),
    ("clusters", 2, _not_yet),
    ("configuration", 2, _not_yet),
    ("events", 1, _not_yet),
    ("federations", 1, _not_yet),
    ("problems", 1, _not_yet),
    ("qos", 1, accountshows.show_qos),
    ("reservations", 4, _not_yet),
    ("resources", 4, _not_yet),
    ("runawayjobs", 2, _not_yet),
    ("stats", 1, _not_yet),
    ("transactions", 1, _not_yet),
    ("tres", 2, _not_yet),
    ("txn", 2, _not_yet),
    ("users", 1, accountshows.show_users),
    ("wckeys", 1, _not_yet),
]

_ADDED: list[tuple[str, int, Verb]] = [
    ("accounts", 1, accountadds.add_accounts),
    ("clusters", 2, accountadds.add_cluster),
    ("coordinators", 2, accountadds.add_coordinators),
    ("federations", 1, _not_yet),
    ("resources", 1, _not_yet),
    ("qos", 1, accountadds.add_qos),
    ("users", 1, accountadds.add_users),
]

_MODIFIED: list[tuple[str, int, Verb]] = [
    ("accounts", 1, accountchanges.modify_accounts),
    ("clusters", 2, _not_yet),
    ("federations", 1, _not_yet),
    ("jobs", 1, _not_yet),
    ("resources", 1, _not_yet),
    ("qos", 1, accountchanges.modify_qos),
    ("users", 1, accountchanges.modify_users),
]

_DELETED: list[tuple[str, int, Verb]] = [
    ("accounts", 1, accountremovals.delete_accounts),
    ("clusters", 2, accountremovals.delete_clusters),
    ("federations", 1, _not_yet),
    ("resources", 1, _not_yet),
    ("coordinators", 2, accountremovals.delete_coordinators),
    ("qos", 1, accountremovals.delete_qos),
    ("users", 1, accountremovals.delete_users),
]

_SHOW_COMPLAINT = """\
No valid entity in list command
Input line must include "Account", "Association", "Cluster", "Configuration",
"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",
"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey\""""

_COMPLAINT = """\
No valid entity in {} command
Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or \
"User\""""

_MODIFY_COMPLAINT = """\
No valid entity in modify command
Input line must include "Account", "Cluster", "Federation", "Job", "QOS", "Resource" or "User\""""
