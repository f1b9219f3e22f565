"""`sacctmgr add`: accounts, users, QOS, coordinators, and the cluster itself."""

from __future__ import annotations

import sys

from spur.slurm.accountbook import AccountBook
from spur.slurm.accountoptions import Word
from spur.slurm.accountvalues import BadValue
from spur.slurm.accountwords import association_lines, qos_lines
from spur.slurm.wording import SlurmError
from spur.values.accounts import (
    ROOT,
    Setting,
    Settings,
    Subject,
    Verb,
    merged,
    names_setting,
    number_setting,
    text_setting,
)
from spur.wire.accounts import EntityEdit
from spur_cli.slurm.accounts import Clerk, complaint, names_in, read_words, setting_of
from spur_cli.slurm.people import user_id

__all__ = ["add_accounts", "add_cluster", "add_coordinators", "add_qos", "add_users"]

USE_WHERE = " Use keyword 'where' to modify condition"

_CONTACT = "        Contact your admin to add this account."


def _nothing() -> int:
    sys.stdout.write(" Nothing new added.\n")
    return 1


class _Asked:
    """The words of one add command."""

    def __init__(
        self,
        clerk: Clerk,
        words: list[str],
        lists: dict[str, tuple[str, int]],
        name: str,
        subjects: tuple[Subject, ...],
    ) -> None:
        """Read words; `lists` are keys of names, with the letters that are enough.

        A word alone names what is added, as does the key of `name`. Raises: SlurmError.
        """
        self.lists: dict[str, list[str]] = {}
        self.settings: dict[Subject, Settings] = dict.fromkeys(subjects, ())
        conditions, changes = read_words(words)
        for word in [*conditions, *changes]:
            if not word.key:
                self.lists.setdefault(name, []).extend(names_in(word.value))
            elif not self._list(word, lists):
                self._set(clerk.book, word, subjects)

    def _list(self, word: Word, lists: dict[str, tuple[str, int]]) -> bool:
        for key, (field, letters) in lists.items():
            if key.startswith(word.key) and len(word.key) >= letters:
                self.lists.setdefault(field, []).extend(names_in(word.value))
                return True
        return False

    def _set(self, book: AccountBook, word: Word, subjects: tuple[Subject, ...]) -> None:
        try:
            found = setting_of(book, subjects, word)
        except BadValue as error:
            raise SlurmError(complaint(error), f" Unknown option: {word.text}") from None
        if found is None:
            raise SlurmError(f" Unknown option: {word.text}")
        subject, settings = found
        self.settings[subject] = merged(self.settings[subject], settings)

    def names(self, field: str) -> list[str]:
        """Return the names of one list."""
        return list(dict.fromkeys(self.lists.get(field, ())))


def _check_cluster(book: AccountBook, asked: _Asked) -> None:
    for name in asked.names("cluster"):
        if name != book.cluster.lower():
            raise SlurmError(
                f" This cluster '{name}' doesn't exist.",
                "        Contact your admin to add it to accounting.",
            )


# -- accounts
def add_accounts(clerk: Clerk, words: list[str]) -> int:
    """Add accounts, and hang them into the tree."""
    lists = {"names": ("account", 1), "accounts": ("account", 3), "clusters": ("cluster", 1)}
    lists["parent"] = ("parent", 1)
    try:
        asked = _Asked(clerk, words, lists, "account", (Subject.ACCOUNT, Subject.ASSOCIATION))
    except SlurmError as error:
        raise SlurmError(*error.lines, USE_WHERE) from None
    book, names = clerk.book, asked.names("account")
    if not names:
        raise SlurmError(" Need name of account to add.")
    _check_cluster(book, asked)
    parent = (asked.names("parent") or [ROOT])[0]
    if parent != ROOT and book.find(Subject.ASSOCIATION, parent, "", "") is None:
        raise SlurmError(
            f" Parent account '{parent}' doesn't exist on cluster {book.cluster}",
            _CONTACT,
            " No associations created.",
        )
    new = [name for name in names if book.find(Subject.ACCOUNT, name) is None]
    loose = [name for name in names if book.find(Subject.ASSOCIATION, name, "", "") is None]
    if not new and not loose:
        return _nothing()
    own, limits = asked.settings[Subject.ACCOUNT], asked.settings[Subject.ASSOCIATION]
    edits = [
        EntityEdit(Verb.ADD, Subject.ACCOUNT, (name,), _described(own, name, parent))
        for name in new
    ]
    hung = merged(limits, (Setting("Parent", "", parent),))
    edits += [EntityEdit(Verb.ADD, Subject.ASSOCIATION, (name, "", ""), hung) for name in loose]
    out = []
    if new:
        out += [" Adding Account(s)", *(f"  {name}" for name in new), " Settings"]
        description = text_setting(own, "Description") or "Account Name"
        organization = text_setting(own, "Organization") or "Parent/Account Name"
        out += [f"  Description     = {description}", f"  Organization    = {organization}"]
    if loose:
        out += [" Associations"]
        out += [f"  A = {name:<10.10} C = {book.cluster:<10.10}" for name in loose]
    is_plain = not limits and "parent" not in asked.lists and len(names) == 1
    if not is_plain:
        out += [" Settings", *association_lines(limits, parent=parent)]
    sys.stdout.write("".join(f"{line}\n" for line in out))
    return clerk.commit(edits, "Problem adding accounts")


def _described(own: Settings, name: str, parent: str) -> Settings:
    """Return an account's texts, where those that were not given are names."""
    texts = {
        "Description": text_setting(own, "Description") or name,
        "Organization": text_setting(own, "Organization") or (name if parent == ROOT else parent),
    }
    return tuple(Setting(key, "", text) for key, text in texts.items())


# -- users
def add_users(clerk: Clerk, words: list[str]) -> int:
    """Add users, and their associations with accounts."""
    lists = {
        "names": ("user", 1),
        "users": ("user", 1),
        "accounts": ("account", 2),
        "clusters": ("cluster", 1),
        "partitions": ("partition", 4),
        "defaultaccount": ("default", 8),
    }
    try:
        asked = _Asked(clerk, words, lists, "user", (Subject.USER, Subject.ASSOCIATION))
    except SlurmError as error:
        # Slurm reads each value twice here.
        raise SlurmError(*error.lines[:-1], *error.lines) from None
    book, names = clerk.book, asked.names("user")
    if not names:
        raise SlurmError(" Need name of user to add.")
    default = (asked.names("default") or [""])[0]
    accounts = asked.names("account") or ([default] if default else [])
    if not accounts:
        raise SlurmError(" Need name of account to add user to.")
    _check_cluster(book, asked)
    for account in accounts:
        if book.find(Subject.ASSOCIATION, account, "", "") is None:
            raise SlurmError(
                f" This account '{account}' doesn't exist.",
                _CONTACT,
                " No associations or wckeys created.",
            )
    partitions = asked.names("partition") or [""]
    keys = [
        (account, user, partition)
        for user in names
        for account in accounts
        for partition in partitions
        if book.find(Subject.ASSOCIATION, account, user, partition) is None
    ]
    new = [name for name in names if book.find(Subject.USER, name) is None]
    if not new and not keys:
        return _nothing()
    if not _knows(clerk, new):
        return 1
    edits = [_new_user(name, asked.settings[Subject.USER]) for name in new]
    edits += [edit for name in names if name not in new for edit in _met(book, name)]
    limits = asked.settings[Subject.ASSOCIATION]
    edits += [EntityEdit(Verb.ADD, Subject.ASSOCIATION, key, limits) for key in keys]
    if default:
        changed = (Setting("DefaultAccount", "", default),)
        edits += [EntityEdit(Verb.CHANGE, Subject.USER, (name,), changed) for name in new]
    _say_users(book, new, keys, default, asked)
    return clerk.commit(edits, "Problem adding users")


def _knows(clerk: Clerk, users: list[str]) -> bool:
    """Whether this host knows the users, or whoever types wants them all the same."""
    for user in users:
        if user_id(user) is None and not clerk.options.get("immediate"):
            sys.stdout.write(f"There is no uid for user '{user}'\n")
            if not clerk.agrees("Are you sure you want to continue?"):
                return False
    return True


def _new_user(name: str, settings: Settings) -> EntityEdit:
    uid = user_id(name)
    known = merged(settings, () if uid is None else (Setting("Uid", "", uid),))
    return EntityEdit(Verb.ADD, Subject.USER, (name,), known)


def _met(book: AccountBook, name: str) -> list[EntityEdit]:
    """Return the edit that tells the uid of a user whom the host of their adding did not know."""
    uid = user_id(name)
    if uid is None or number_setting(book.settings(Subject.USER, (name,)), "Uid") is not None:
        return []
    return [EntityEdit(Verb.CHANGE, Subject.USER, (name,), (Setting("Uid", "", uid),))]


def _say_users(
    book: AccountBook,
    new: list[str],
    keys: list[tuple[str, str, str]],
    default: str,
    asked: _Asked,
) -> None:
    out = []
    level = text_setting(asked.settings[Subject.USER], "AdminLevel")
    if new:
        out += [" Adding User(s)", *(f"  {name}" for name in new)]
        settings = [f"  Default Account = {default}"] if default else []
        settings += [f"  Admin Level     = {level.capitalize()}"] if level else []
        out += [" Settings =", *settings] if settings else []
    if keys:
        out += [" Associations ="]
        for account, user, partition in keys:
            at = f" P = {partition:<10.10}" if partition else ""
            out.append(f"  U = {user:<9.9} A = {account:<10.10} C = {book.cluster:<10.10}{at}")
        out += [" Non Default Settings"]
        out += association_lines(asked.settings[Subject.ASSOCIATION])
    sys.stdout.write("".join(f"{line}\n" for line in out))


# -- others
def add_qos(clerk: Clerk, words: list[str]) -> int:
    """Add QOS."""
    try:
        asked = _Asked(clerk, words, {"names": ("qos", 1)}, "qos", (Subject.QOS,))
    except SlurmError as error:
        lines = (*error.lines, USE_WHERE)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return 1
    names = asked.names("qos")
    if not names:
        raise SlurmError(" Need name of qos to add.")
    new = [name for name in names if clerk.book.find(Subject.QOS, name) is None]
    if not new:
        return _nothing()
    settings = asked.settings[Subject.QOS]
    description = text_setting(settings, "Description")
    out = [" Adding QOS(s)", *(f"  {name}" for name in new), " Settings"]
    out += [f"  Description    = {description or new[0]}", *qos_lines(settings)]
    sys.stdout.write("".join(f"{line}\n" for line in out))
    edits = [
        EntityEdit(
            Verb.ADD,
            Subject.QOS,
            (name,),
            merged(settings, (Setting("Description", "", description or name),)),
        )
        for name in new
    ]
    return clerk.commit(edits, "Problem adding QOS")


def add_cluster(clerk: Clerk, words: list[str]) -> int:
    """Begin the tree of accounts of this cluster, which is the only one there is."""
    asked = _Asked(clerk, words, {"names": ("cluster", 1)}, "cluster", (Subject.ASSOCIATION,))
    names = asked.names("cluster")
    if not names:
        raise SlurmError(" Need name of cluster to add.")
    book = clerk.book
    for name in names:
        if name != book.cluster.lower():
            raise SlurmError(f"sacctmgr: error: cluster {name} is another one: not honoured yet")
    if book.find(Subject.ASSOCIATION, ROOT, "", "") is not None:
        sys.stdout.write(f" This cluster {book.cluster} already exists.  Not adding.\n")
        return 1
    sys.stdout.write(f" Adding Cluster(s)\n  Name           = {book.cluster}\n")
    limits = asked.settings[Subject.ASSOCIATION]
    if limits:
        sys.stdout.write(
            "".join(f"{line}\n" for line in (" Default Limits:", *association_lines(limits)))
        )
    edit = EntityEdit(Verb.ADD, Subject.ASSOCIATION, (ROOT, "", ""), limits)
    return clerk.commit([edit], "Problem adding clusters")


def add_coordinators(clerk: Clerk, words: list[str]) -> int:
    """Make users coordinators of accounts."""
    lists = {"names": ("user", 1), "users": ("user", 1), "accounts": ("account", 1)}
    asked = _Asked(clerk, words, lists, "user", ())
    users, accounts = asked.names("user"), asked.names("account")
    book = clerk.book
    for account in accounts:
        if book.find(Subject.ACCOUNT, account) is None:
            raise SlurmError(f" You specified a non-existent account '{account}'.")
    for user in users:
        if book.find(Subject.USER, user) is None:
            raise SlurmError(f" You specified a non-existent user '{user}'.")
    if not users or not accounts:
        raise SlurmError(" You need to specify a user list and an account list here.")
    out = [" Adding Coordinator User(s)", *(f"  {name}" for name in users)]
    out += [" To Account(s) and all sub-accounts", *(f"  {name}" for name in accounts)]
    sys.stdout.write("".join(f"{line}\n" for line in out))
    edits = []
    for account in accounts:
        before = names_setting(book.settings(Subject.ACCOUNT, (account,)), "Coordinators")
        after = Setting("Coordinators", "", tuple(sorted({*before, *users})))
        edits.append(EntityEdit(Verb.CHANGE, Subject.ACCOUNT, (account,), (after,)))
    return clerk.commit(edits, "Problem adding coordinator")
