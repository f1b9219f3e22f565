"""`sacctmgr delete`: accounts, users or their associations, QOS, coordinators."""

from __future__ import annotations

import sys

from spur.slurm.wording import SlurmError
from spur.values.accounts import Setting, Subject, Verb, names_setting
from spur.wire.accounts import EntityEdit
from spur_cli.slurm.accountchanges import conditions_of
from spur_cli.slurm.accounts import Clerk, read_words

__all__ = [
    "delete_accounts",
    "delete_clusters",
    "delete_coordinators",
    "delete_qos",
    "delete_users",
]

_USERS = {
    "names": ("user", 1),
    "users": ("user", 1),
    "accounts": ("account", 2),
    "clusters": ("cluster", 1),
    "partitions": ("partition", 4),
}

_ERROR = "Error with request"


def _wanted(words: list[str], keys: dict[str, tuple[str, int]], name: str) -> dict[str, list[str]]:
    found = conditions_of(read_words(words)[0], keys, name)
    if not any(found.values()):
        raise SlurmError(" No conditions given to remove, not executing.")
    return found


def _nothing() -> int:
    sys.stdout.write(" Nothing deleted\n")
    return 1


def _delete(clerk: Clerk, subject: Subject, names: list[str], title: str) -> int:
    known = [name for name in names if clerk.book.find(subject, name) is not None]
    if not known:
        return _nothing()
    sys.stdout.write(f" Deleting {title}...\n" + "".join(f"  {name}\n" for name in known))
    edits = [EntityEdit(Verb.REMOVE, subject, (name,)) for name in known]
    return clerk.commit(edits, _ERROR)


def delete_qos(clerk: Clerk, words: list[str]) -> int:
    """Delete QOS."""
    names = _wanted(words, {"names": ("qos", 1), "qos": ("qos", 1)}, "qos")["qos"]
    return _delete(clerk, Subject.QOS, names, "QOS(s)")


def delete_accounts(clerk: Clerk, words: list[str]) -> int:
    """Delete accounts with the associations of their users."""
    keys = {"names": ("account", 1), "accounts": ("account", 3), "clusters": ("cluster", 1)}
    names = _wanted(words, keys, "account").get("account", [])
    return _delete(clerk, Subject.ACCOUNT, names, "accounts")


def delete_clusters(clerk: Clerk, words: list[str]) -> int:
    """Say that a cluster is not here; the own one stays."""
    wanted = _wanted(words, {"names": ("cluster", 1), "clusters": ("cluster", 1)}, "cluster")
    if clerk.book.cluster.lower() not in wanted["cluster"]:
        return _nothing()
    raise SlurmError(" Error with request: a cluster does not delete itself")


def delete_users(clerk: Clerk, words: list[str]) -> int:
    """Delete users; or where accounts are named, their associations with those."""
    wanted = _wanted(words, _USERS, "user")
    book = clerk.book
    users = wanted.get("user", book.names(Subject.USER))
    if "account" not in wanted and "partition" not in wanted:
        return _delete(clerk, Subject.USER, users, "users")
    keys = [
        key
        for key in book.associations()
        if key[1] in users
        and ("account" not in wanted or key[0] in wanted["account"])
        and ("partition" not in wanted or key[2] in wanted["partition"])
    ]
    if not keys:
        return _nothing()
    out = [" Deleting user associations..."]
    for account, user, partition in keys:
        at = f" P = {partition:<10.10}" if partition else ""
        out.append(f"  C = {book.cluster:<10.10} A = {account:<10.10} U = {user:<9.9}{at}")
    gone = [
        user for user in sorted({key[1] for key in keys}) if set(book.of_user(user)) <= set(keys)
    ]
    if gone:
        out += [" Deleting users (No Associations)...", *(f"  {user}" for user in gone)]
    sys.stdout.write("".join(f"{line}\n" for line in out))
    edits = [EntityEdit(Verb.REMOVE, Subject.ASSOCIATION, key) for key in keys]
    edits += [EntityEdit(Verb.REMOVE, Subject.USER, (user,)) for user in gone]
    return clerk.commit(edits, _ERROR)


def delete_coordinators(clerk: Clerk, words: list[str]) -> int:
    """Take users from the coordinators of accounts."""
    wanted = _wanted(words, {**_USERS, "accounts": ("account", 1)}, "user")
    users, accounts = wanted.get("user", []), wanted.get("account", [])
    book = clerk.book
    out = [" Removing Coordinators with user name", *(f"  {user}" for user in users)]
    out += [" From Account(s)", *(f"  {account}" for account in accounts)]
    edits, removed = [], []
    for account in accounts or book.names(Subject.ACCOUNT):
        before = names_setting(book.settings(Subject.ACCOUNT, (account,)), "Coordinators")
        after = tuple(user for user in before if user not in users)
        if after != before:
            left = Setting("Coordinators", "", after or None)
            edits.append(EntityEdit(Verb.CHANGE, Subject.ACCOUNT, (account,), (left,)))
            removed += [
                f"  U = {user:<9.9} A = {account:<10.10}" for user in before if user in users
            ]
    if not edits:
        return _nothing()
    out += [" Removed Coordinators (sub accounts not listed)...", *removed]
    sys.stdout.write("".join(f"{line}\n" for line in out))
    return clerk.commit(edits, _ERROR)
