"""Edits of accounting entities: in few words, for stories; and at random, good and bad ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from spur.values.accounts import ROOT, EntityKey, Setting, Settings, Subject, Verb
from spur.wire.accounts import EntityEdit

__all__ = [
    "Draws",
    "add_account",
    "add_association",
    "add_qos",
    "add_user",
    "change",
    "number",
    "random_edit",
    "remove",
    "word",
    "words",
]


def number(name: str, value: int, resource: str = "") -> Setting:
    """Return a setting that is a number."""
    return Setting(name, resource, value)


def word(name: str, value: str) -> Setting:
    """Return a setting that is one word or a text."""
    return Setting(name, "", value)


def words(name: str, *values: str) -> Setting:
    """Return a setting that is a list of names."""
    return Setting(name, "", values)


def add_account(account: str, *, parent: str = "root") -> tuple[EntityEdit, EntityEdit]:
    """Return the edits that make an account and hang it into the tree."""
    key = (account, "", "")
    return (
        EntityEdit(Verb.ADD, Subject.ACCOUNT, (account,)),
        EntityEdit(Verb.ADD, Subject.ASSOCIATION, key, (word("Parent", parent),)),
    )


def add_user(user: str, *settings: Setting, uid: int) -> EntityEdit:
    """Return the edit that makes a user known."""
    return EntityEdit(Verb.ADD, Subject.USER, (user,), (number("Uid", uid), *settings))


def add_association(
    account: str, user: str, partition: str = "", *, settings: Settings = ()
) -> EntityEdit:
    """Return the edit that lets a user use an account."""
    return EntityEdit(Verb.ADD, Subject.ASSOCIATION, (account, user, partition), settings)


def add_qos(name: str, *settings: Setting) -> EntityEdit:
    """Return the edit that makes a QOS."""
    return EntityEdit(Verb.ADD, Subject.QOS, (name,), settings)


def change(subject: Subject, key: EntityKey, *settings: Setting) -> EntityEdit:
    """Return the edit that changes settings."""
    return EntityEdit(Verb.CHANGE, subject, key, settings)


def remove(subject: Subject, *key: str) -> EntityEdit:
    """Return the edit that removes an entity."""
    return EntityEdit(Verb.REMOVE, subject, key)


T = TypeVar("T")

ACCOUNTS = (ROOT, "physics", "astro", "chem", "bio")
PEOPLE = {ROOT: 0, "ada": 1001, "bob": 1002, "eve": 1003}
QOS = ("normal", "high", "low")
"""Names of random edits."""


class Draws(Protocol):
    """What decides: a `random.Random`, or what a property test draws from."""

    def randrange(self, stop: int, /) -> int: ...

    def choice(self, options: Sequence[T], /) -> T: ...


def random_edit(chance: Draws) -> EntityEdit:
    """Return an edit that may make sense, or not, in whatever cluster."""
    subject = chance.choice(tuple(Subject))
    verb = chance.choice((Verb.ADD, Verb.ADD, Verb.ADD, Verb.CHANGE, Verb.CHANGE, Verb.REMOVE))
    account, user = chance.choice(ACCOUNTS), chance.choice(tuple(PEOPLE))
    keys: dict[Subject, EntityKey] = {
        Subject.ACCOUNT: (account,),
        Subject.USER: (user,),
        Subject.QOS: (chance.choice(QOS),),
        Subject.ASSOCIATION: (
            account,
            chance.choice(("", user)),
            chance.choice(("", "", "gpu")),
        ),
    }
    key = keys[subject]
    if verb is Verb.REMOVE:
        return EntityEdit(verb, subject, key)
    return EntityEdit(verb, subject, key, _random_settings(chance, subject, verb, key))


def _random_settings(chance: Draws, subject: Subject, verb: Verb, key: EntityKey) -> Settings:
    count = chance.randrange(100)
    qos = tuple(sorted({chance.choice(QOS), chance.choice(QOS)}))
    if subject is Subject.USER:
        if verb is Verb.ADD:
            return (number("Uid", PEOPLE[key[0]]),)
        return (word("DefaultAccount", chance.choice(ACCOUNTS)),)
    if subject is Subject.ACCOUNT:
        return (words("Coordinators", chance.choice(tuple(PEOPLE))),) if count < 30 else ()
    if subject is Subject.QOS:
        return (number("GrpTRES", count, "cpu"), words("Preempt", *qos))
    if not key[1] and (verb is Verb.ADD or count < 50):
        return (word("Parent", chance.choice(ACCOUNTS)),)
    signed = words("QOS", *(f"+{name}" for name in qos))
    options = (words("QOS", *qos), signed, word("DefaultQOS", qos[0]), number("MaxJobs", count))
    return (chance.choice(options),)
