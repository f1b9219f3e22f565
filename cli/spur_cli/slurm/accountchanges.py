"""`sacctmgr modify`: accounts, users and QOS, found by where and changed by set."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from spur.slurm.accountoptions import Word
from spur.slurm.accountvalues import BadValue
from spur.slurm.wording import SlurmError
from spur.values.accounts import (
    AssociationKey,
    EntityKey,
    Setting,
    Settings,
    Subject,
    Verb,
    merged,
    text_setting,
)
from spur.wire.accounts import EntityEdit
from spur_cli.slurm.accountadds import USE_WHERE
from spur_cli.slurm.accounts import Clerk, complaint, names_in, read_words, setting_of

__all__ = ["conditions_of", "modify_accounts", "modify_qos", "modify_users"]


def conditions_of(
    words: Iterable[Word], keys: dict[str, tuple[str, int]], name: str
) -> dict[str, list[str]]:
    """Return the names that where asks for, by field. Raises: SlurmError."""
    found: dict[str, list[str]] = {}
    for word in words:
        field = name if not word.key else ""
        for key, (known, letters) in keys.items():
            if word.key and key.startswith(word.key) and len(word.key) >= letters:
                field = field or known
        if not field:
            raise SlurmError(
                f" Unknown condition: {word.text}", " Use keyword 'set' to modify value"
            )
        found.setdefault(field, []).extend(names_in(word.value))
    return found


class _Changes:
    """What set asks for, on entities that each have settings of their own."""

    def __init__(self, clerk: Clerk, words: list[Word], subjects: tuple[Subject, ...]) -> None:
        self.clerk = clerk
        self.words = words
        self.subjects = subjects
        self.edits: dict[Subject, list[EntityEdit]] = {subject: [] for subject in subjects}
        if not words:
            raise SlurmError(" You didn't give me anything to set")

    def on(self, key: EntityKey, subject: Subject) -> None:
        """Note the change of one entity. Raises: BadValue, SlurmError."""
        present = self.clerk.book.settings(subject, key)
        changes: Settings = ()
        for word in self.words:
            found = setting_of(self.clerk.book, self.subjects, word, merged(present, changes))
            if found is None:
                raise SlurmError(f" Unknown option: {word.text}", USE_WHERE)
            if found[0] is subject:
                changes = _together(changes, found[1])
        if changes:
            self.edits[subject].append(EntityEdit(Verb.CHANGE, subject, key, changes))


def _together(before: Settings, more: Iterable[Setting]) -> Settings:
    """Return changes, of which a later one replaces an earlier one of the same setting."""
    found = {(setting.name, setting.resource): setting for setting in before}
    found.update(((setting.name, setting.resource), setting) for setting in more)
    return tuple(found[key] for key in sorted(found))


def _nothing() -> int:
    sys.stdout.write(" Nothing modified\n")
    return 1


def _reset(clerk: Clerk, changes: list[Word]) -> list[Word]:
    """Return the words but RawUsage=0, of which is told here: usage begins with a later release."""
    left = [word for word in changes if word.key != "rawusage"]
    if len(left) < len(changes):
        sys.stdout.write(f"No cluster specified, resetting on local cluster {clerk.book.cluster}\n")
    return left


def modify_qos(clerk: Clerk, words: list[str]) -> int:
    """Change QOS."""
    where, to = read_words(words)
    wanted = conditions_of(where, {"names": ("qos", 1), "qos": ("qos", 1)}, "qos").get("qos")
    known = clerk.book.names(Subject.QOS)
    names = [name for name in known if wanted is None or name in wanted]
    left = _reset(clerk, to)
    if to and not left:
        return 0
    changes = _Changes(clerk, left, (Subject.QOS,))
    try:
        for name in names:
            changes.on((name,), Subject.QOS)
    except BadValue as error:
        lines = [complaint(error)]
        if "Invalid value" in lines[0]:
            lines.append(" You didn't give me anything to set")
        raise SlurmError(*lines) from None
    except SlurmError as error:
        sys.stdout.write("".join(f"{line}\n" for line in error.lines))
        return 1
    edits = changes.edits[Subject.QOS]
    if not edits:
        return _nothing()
    sys.stdout.write(" Modified qos...\n" + "".join(f"  {edit.key[0]}\n" for edit in edits))
    return clerk.commit(edits, "Problem modifying QOS")


def modify_accounts(clerk: Clerk, words: list[str]) -> int:
    """Change accounts, and their places in the tree with their limits."""
    where, to = read_words(words)
    keys = {"names": ("account", 1), "accounts": ("account", 3), "clusters": ("cluster", 1)}
    keys |= {"parent": ("parent", 1), "organization": ("organization", 1)}
    wanted = conditions_of(where, keys, "account")
    if any(word.key and "names".startswith(word.key) for word in to):
        raise SlurmError(" Can't modify the name of an account")
    left = _reset(clerk, to)
    if to and not left:
        return 0
    book = clerk.book
    names = [name for name in book.names(Subject.ACCOUNT) if _is_account(clerk, name, wanted)]
    parents = [word for word in left if word.key and "parent".startswith(word.key)]
    rest = [word for word in left if word not in parents]
    subjects = (Subject.ACCOUNT, Subject.ASSOCIATION)
    edits = _edits(clerk, rest, subjects, names) if rest else {each: [] for each in subjects}
    for word in parents:
        moved = (Setting("Parent", "", word.value.lower()),)
        edits[Subject.ASSOCIATION] += [
            EntityEdit(Verb.CHANGE, Subject.ASSOCIATION, (name, "", ""), moved) for name in names
        ]
    return _tell(clerk, edits, "account")


def _is_account(clerk: Clerk, name: str, wanted: dict[str, list[str]]) -> bool:
    book = clerk.book
    place = book.settings(Subject.ASSOCIATION, (name, "", ""))
    own = book.settings(Subject.ACCOUNT, (name,))
    values = {
        "account": name,
        "cluster": book.cluster.lower(),
        "parent": text_setting(place, "Parent"),
        "organization": text_setting(own, "Organization").lower(),
    }
    return all(values[field] in names for field, names in wanted.items())


def _edits(
    clerk: Clerk, words: list[Word], subjects: tuple[Subject, ...], names: list[str]
) -> dict[Subject, list[EntityEdit]]:
    changes = _Changes(clerk, words, subjects)
    last = words[0]
    try:
        for name in names:
            changes.on((name,), subjects[0])
            if clerk.book.find(Subject.ASSOCIATION, name, "", ""):
                changes.on((name, "", ""), Subject.ASSOCIATION)
    except BadValue as error:
        raise _refusal(error, last) from None
    return changes.edits


def _refusal(error: BadValue, word: Word) -> SlurmError:
    text = complaint(error)
    if "slurmdb_format_tres_str" in text or text.startswith(" "):
        return SlurmError(text)
    return SlurmError(text, f" Unknown option: {word.text}", USE_WHERE)


def _tell(clerk: Clerk, edits: dict[Subject, list[EntityEdit]], entity: str) -> int:
    out = []
    places = edits[Subject.ASSOCIATION]
    own = [edit for each in edits.values() if each is not places for edit in each]
    if own:
        out += [f" Modified {entity}s...", *(f"  {edit.key[0]}" for edit in own)]
    if places:
        out += [f" Modified {entity} associations..."]
        out += [_place(clerk, edit.key) for edit in places]
    if not out:
        return _nothing()
    sys.stdout.write("".join(f"{line}\n" for line in out))
    return clerk.commit([*own, *places], f"Problem modifying {entity}s")


def _place(clerk: Clerk, key: EntityKey) -> str:
    account, user, partition = key
    book = clerk.book
    if user:
        at = f" P = {partition:<10.10}" if partition else ""
        return f"  C = {book.cluster:<10.10} A = {account:<20.20} U = {user:<9.9}{at}"
    above = text_setting(book.settings(Subject.ASSOCIATION, key), "Parent")
    return f"  C = {book.cluster:<10.10} A = {account}{f' of {above}' if above else ''}"


def modify_users(clerk: Clerk, words: list[str]) -> int:
    """Change users, and their associations with their limits."""
    where, to = read_words(words)
    keys = {"names": ("user", 1), "users": ("user", 1), "accounts": ("account", 2)}
    keys |= {"clusters": ("cluster", 1), "partitions": ("partition", 4)}
    wanted = conditions_of(where, keys, "user")
    if any(word.key == "rawusage" for word in to):
        raise SlurmError("sacctmgr: error: An account must be specified")
    book = clerk.book
    places = [key for key in book.associations() if key[1] and _is_place(clerk, key, wanted)]
    users = sorted({key[1] for key in places} or set(wanted.get("user", ())))
    users = [user for user in users if book.find(Subject.USER, user)]
    changes = _Changes(clerk, to, (Subject.USER, Subject.ASSOCIATION))
    word = to[0]
    try:
        for user in users:
            changes.on((user,), Subject.USER)
        for key in places:
            changes.on(key, Subject.ASSOCIATION)
    except BadValue as error:
        raise _refusal(error, word) from None
    strangers = _strangers(clerk, changes.edits[Subject.USER])
    if strangers:
        sys.stdout.write("".join(f"{line}\n" for line in strangers))
        return 1
    return _tell(clerk, changes.edits, "user")


def _is_place(clerk: Clerk, key: AssociationKey, wanted: dict[str, list[str]]) -> bool:
    values = {
        "account": key[0],
        "user": key[1],
        "partition": key[2],
        "cluster": clerk.book.cluster.lower(),
    }
    return all(values[field] in names for field, names in wanted.items())


def _strangers(clerk: Clerk, edits: list[EntityEdit]) -> list[str]:
    """Return what is said of users who would have a default account that is none of theirs."""
    lines: list[str] = []
    for edit in edits:
        default = text_setting(edit.settings, "DefaultAccount")
        if default and default not in {key[0] for key in clerk.book.of_user(edit.key[0])}:
            lines = lines or [
                " Can't modify because these users aren't associated with new default account "
                f"'{default}'..."
            ]
            lines.append(f"  U = {edit.key[0]} C = {clerk.book.cluster}")
    return lines
