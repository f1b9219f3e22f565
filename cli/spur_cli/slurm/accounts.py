"""What all keywords of sacctmgr need: what accounting knows, and how changes are handed in."""

from __future__ import annotations

import select
import sys
from collections.abc import Mapping

from spur.slurm.accountbook import AccountBook
from spur.slurm.accountoptions import (
    Word,
    option_settings,
    parse_word,
    setting_option,
)
from spur.slurm.accountvalues import BadValue
from spur.slurm.wording import SlurmError, sentence_of
from spur.values.accounts import EntityKey, Setting, Settings, Subject
from spur.values.errors import Rejection
from spur.wire.accounts import EditEntities, EntityEdit, EntityPage, EntityView, QueryEntities
from spur.wire.cluster import ClusterInfo, ShowCluster
from spur.wire.declare import Done
from spur_cli.slurm.session import Session

__all__ = ["Clerk", "complaint", "names_in", "read_words", "setting_of"]

PAGE_ROWS = 1_000

DECIDE_S = 30.0
"""How long a person may think before nothing is done."""


class Clerk:
    """One run of sacctmgr."""

    def __init__(self, session: Session, options: Mapping[str, object]) -> None:
        self.session = session
        self.options = options
        self._book: AccountBook | None = None

    @property
    def book(self) -> AccountBook:
        """Everything that accounting knows, fetched once. Raises: SlurmError."""
        if self._book is None:
            info = self.session.ask(ShowCluster(), ClusterInfo)
            if isinstance(info, Rejection):
                raise _problem(info)
            views = [(subject, view) for subject in Subject for view in self._fetch(subject)]
            self._book = AccountBook(info.settings.name if info.settings else "", views)
        return self._book

    def _fetch(self, subject: Subject) -> list[EntityView]:
        found: list[EntityView] = []
        after: EntityKey = ()
        while True:
            page = self.session.ask(QueryEntities(subject, after, PAGE_ROWS), EntityPage)
            if isinstance(page, Rejection):
                raise _problem(page)
            found += page.entities
            if not page.more:
                return found
            after = page.entities[-1].key

    def commit(self, edits: list[EntityEdit], problem: str) -> int:
        """Hand in the edits, once whoever types agrees; return the exit status.

        `problem` begins the sentence of a refusal. Raises: SlurmError.
        """
        if edits and self.agrees("Would you like to commit changes?"):
            answer = self.session.ask(EditEntities(tuple(edits)), Done)
            if isinstance(answer, Rejection):
                sys.stdout.flush()
                raise SlurmError(f" {problem}: {_said(answer)}")
        elif edits:
            sys.stdout.write(" Changes Discarded\n")
        return 0

    def agrees(self, question: str) -> bool:
        """Ask whoever types, unless --immediate has the answer."""
        if self.options.get("immediate"):
            return True
        sys.stdout.write(f"{question} (You have {DECIDE_S:.0f} seconds to decide)\n(N/y): ")
        sys.stdout.flush()
        ready, _, _ = select.select([sys.stdin], [], [], DECIDE_S)
        said = sys.stdin.readline() if ready else ""
        sys.stdout.write("\n")
        return said.strip().lower() in ("y", "yes")


def _said(rejection: Rejection) -> str:
    if rejection.code == "in-use" and "is active" in rejection.text:
        return "Job(s) active, cancel job(s) before remove"
    return sentence_of(rejection)


def _problem(rejection: Rejection) -> SlurmError:
    return SlurmError(f"sacctmgr: error: {sentence_of(rejection)}")


def read_words(words: list[str]) -> tuple[list[Word], list[Word]]:
    """Return the words before and behind "set"; "where" leads back to the first."""
    conditions: list[Word] = []
    changes: list[Word] = []
    here = conditions
    for text in words:
        if text.lower() == "where":
            here = conditions
        elif text.lower() == "set":
            here = changes
        else:
            here.append(parse_word(text))
    return conditions, changes


def names_in(text: str) -> list[str]:
    """Return the names of a list in small letters, each once, in the order typed."""
    return list(dict.fromkeys(name for name in text.lower().split(",") if name))


def setting_of(
    book: AccountBook, subjects: tuple[Subject, ...], word: Word, present: Settings = ()
) -> tuple[Subject, list[Setting]] | None:
    """Return what a word sets, on which kind of entity; None when it is no option.

    Raises: BadValue with Slurm's sentence.
    """
    for subject in subjects:
        option = setting_option(subject, word.key)
        if option is not None and word.key:
            return subject, option_settings(subject, option, word, present, book)
    return None


def complaint(error: BadValue) -> str:
    """Return the line in which a bad value is told."""
    text = str(error)
    return text if text.startswith(" ") else f"sacctmgr: error: {text}"
