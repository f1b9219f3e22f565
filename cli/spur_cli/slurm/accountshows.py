"""`sacctmgr show`: accounts, users, associations and QOS."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from spur.slurm.accountbook import AccountBook
from spur.slurm.accountoptions import Word
from spur.slurm.columns.accounts import (
    DEFAULT_FIELDS,
    Line,
    UnknownField,
    parse_sheet,
    with_inherited,
)
from spur.slurm.wording import SlurmError
from spur.values.accounts import (
    AssociationKey,
    Subject,
    allowed_qos,
    text_setting,
)
from spur_cli.slurm.accounts import Clerk, names_in, read_words

__all__ = ["show_accounts", "show_associations", "show_qos", "show_users"]


class _Asked:
    """The words of one show command."""

    def __init__(
        self,
        words: list[str],
        conditions: dict[str, tuple[str, int]],
        name: str,
        flags: dict[str, str],
    ) -> None:
        """Read words; `conditions` are what a key may be, with the letters that are enough.

        A word alone is one of the flags, else a value of `name`.
        """
        self.format = ""
        self.flags: set[str] = set()
        self.wanted: dict[str, list[str]] = {}
        for word in read_words(words)[0]:
            if word.key.startswith("format"[: max(len(word.key), 1)]) and word.key:
                self.format = ",".join(filter(None, (self.format, word.value)))
            elif word.key:
                self._condition(word, conditions)
            elif word.text.lower() in flags:
                self.flags.add(flags[word.text.lower()])
            else:
                self.wanted.setdefault(name, []).extend(names_in(word.value))

    def _condition(self, word: Word, conditions: dict[str, tuple[str, int]]) -> None:
        for key, (field, letters) in conditions.items():
            if key.startswith(word.key) and len(word.key) >= letters:
                self.wanted.setdefault(field, []).extend(names_in(word.value))
                return
        raise SlurmError(f" Unknown condition: {word.text}")

    def takes(self, field: str, *values: str) -> bool:
        """Whether one of the values is wanted; everything is where nothing was said."""
        wanted = self.wanted.get(field)
        return not wanted or any(value in wanted for value in values)


_WITH = {
    "withassoc": "assoc",
    "withcoordinators": "coord",
    "withcoord": "coord",
    "withdeleted": "deleted",
}
"""Flags of accounts and users."""

_OF_ASSOCIATIONS = {
    "onlydefaults": "defaults",
    "tree": "tree",
    "withdeleted": "deleted",
    "wopinfo": "raw",
    "wopi": "raw",
    "woplimits": "raw",
    "wopl": "raw",
}
"""Flags of associations."""


def _write(clerk: Clerk, entity: str, asked: _Asked, lines: Iterable[Line]) -> int:
    usual = DEFAULT_FIELDS[f"{entity} withassoc" if "assoc" in asked.flags else entity]
    if "coord" in asked.flags:
        usual += ",coordinators"
    if "tree" in asked.flags:
        usual = usual.replace(",account,", ",account%-20,")
    options = clerk.options
    try:
        sheet = parse_sheet(
            entity,
            asked.format or usual,
            parsable="|" if options.get("parsable") or options.get("parsable2") else "",
            ends=bool(options.get("parsable")) and not options.get("parsable2"),
        )
    except UnknownField as error:
        raise SlurmError(f"Unknown field '{error}'") from None
    text = "" if options.get("noheader") else sheet.header()
    sys.stdout.write(text + "".join(map(sheet.line, lines)))
    return 0


def _association(book: AccountBook, key: AssociationKey, asked: _Asked) -> Line:
    is_raw = "raw" in asked.flags
    settings = book.settings(Subject.ASSOCIATION, key) if is_raw else with_inherited(book, key)
    indent = None
    if "tree" in asked.flags:
        indent = book.depth(key[0]) + (1 if key[1] else 0)
    return Line(book, key[0], key[1], key, "", settings, is_raw, indent)


_WHERE = {
    "accounts": ("account", 2),
    "acct": ("account", 4),
    "clusters": ("cluster", 1),
    "parent": ("parent", 4),
    "partitions": ("partition", 4),
    "qos": ("qos", 1),
    "users": ("user", 1),
    "defaultqos": ("defaultqos", 8),
    "id": ("number", 2),
}
"""Conditions of associations, and the letters that are enough."""


def _fits(book: AccountBook, key: AssociationKey, asked: _Asked) -> bool:
    account, user, partition = key
    settings = book.settings(Subject.ASSOCIATION, key)
    view = book.find(Subject.ASSOCIATION, *key)
    tests: tuple[tuple[str, Callable[[], tuple[str, ...]]], ...] = (
        ("account", lambda: (account,)),
        ("cluster", lambda: (book.cluster,)),
        ("user", lambda: (user,)),
        ("partition", lambda: (partition,)),
        ("parent", lambda: (text_setting(settings, "Parent"),)),
        ("qos", lambda: allowed_qos(book.line(key))),
        ("defaultqos", lambda: (text_setting(settings, "DefaultQOS"),)),
        ("number", lambda: (str(view.number if view else 0),)),
    )
    if not all(name not in asked.wanted or asked.takes(name, *of()) for name, of in tests):
        return False
    if "defaults" not in asked.flags:
        return True
    return bool(user) and account == text_setting(
        book.settings(Subject.USER, (user,)), "DefaultAccount"
    )


def show_associations(clerk: Clerk, words: list[str]) -> int:
    """Show associations down the tree."""
    asked = _Asked(words, _WHERE, "number", _OF_ASSOCIATIONS)
    for text in asked.wanted.get("number", ()):
        if not text.isdigit():
            raise SlurmError(f"sacctmgr: error: Invalid value for AssocId ({text})")
    book = clerk.book
    keys = [key for key in book.associations() if _fits(book, key, asked)]
    if "defaults" in asked.flags:
        keys.sort(key=lambda key: key[1])
    return _write(clerk, "association", asked, (_association(book, key, asked) for key in keys))


def show_accounts(clerk: Clerk, words: list[str]) -> int:
    """Show accounts by name."""
    own = {"names": ("account", 1), "organization": ("organization", 1)}
    own["descriptions"] = ("description", 1)
    asked = _Asked(words, {**_WHERE, **own}, "account", _WITH)
    book = clerk.book
    if clerk.options.get("associations"):
        asked.flags.add("assoc")
    lines: list[Line] = []
    of_account: dict[str, list[AssociationKey]] = {}
    for key in book.associations():
        of_account.setdefault(key[0], []).append(key)
    for account in book.names(Subject.ACCOUNT):
        settings = book.settings(Subject.ACCOUNT, (account,))
        if not (
            asked.takes("account", account)
            and asked.takes("organization", text_setting(settings, "Organization").lower())
            and asked.takes("description", text_setting(settings, "Description").lower())
        ):
            continue
        found = of_account.get(account, []) if "assoc" in asked.flags else []
        lines += [_association(book, key, asked) for key in found]
        if not found:
            lines.append(Line(book, account))
    return _write(clerk, "account", asked, lines)


def show_users(clerk: Clerk, words: list[str]) -> int:
    """Show users by name."""
    own = {"names": ("user", 1), "adminlevel": ("admin", 2)}
    own["defaultaccounts"] = ("defaultaccount", 8)
    asked = _Asked(words, {**_WHERE, **own}, "user", _WITH)
    book = clerk.book
    if clerk.options.get("associations"):
        asked.flags.add("assoc")
    lines: list[Line] = []
    for user in book.names(Subject.USER):
        settings = book.settings(Subject.USER, (user,))
        level = text_setting(settings, "AdminLevel") or "none"
        if not (
            asked.takes("user", user)
            and asked.takes("defaultaccount", text_setting(settings, "DefaultAccount"))
            and asked.takes("admin", *(level[:size] for size in range(1, len(level) + 1)))
        ):
            continue
        found = []
        if "assoc" in asked.flags:
            found = [key for key in book.of_user(user) if _fits(book, key, asked)]
        lines += [_association(book, key, asked) for key in found]
        if not found:
            lines.append(Line(book, "", user))
    return _write(clerk, "user", asked, lines)


def show_qos(clerk: Clerk, words: list[str]) -> int:
    """Show QOS in the order of adding."""
    conditions = {"names": ("qos", 1), "qos": ("qos", 1), "id": ("number", 1)}
    asked = _Asked(words, {**conditions, "descriptions": ("description", 1)}, "qos", {})
    book = clerk.book
    lines = []
    for name in book.names(Subject.QOS):
        settings = book.settings(Subject.QOS, (name,))
        view = book.find(Subject.QOS, name)
        if (
            asked.takes("qos", name)
            and asked.takes("number", str(view.number if view else 0))
            and asked.takes("description", text_setting(settings, "Description").lower())
        ):
            lines.append(Line(book, qos=name, settings=settings))
    return _write(clerk, "qos", asked, lines)
