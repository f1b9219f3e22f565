"""Requests about accounts, users, associations and QOS, and their rows."""

from __future__ import annotations

from spur.values.accounts import EntityKey, Setting, Subject, Verb
from spur.wire.declare import Answer, Part, Request, answer, request

__all__ = ["EditEntities", "EntityEdit", "EntityPage", "EntityView", "QueryEntities"]


class EntityEdit(Part, frozen=True):
    """One thing to do."""

    verb: Verb
    subject: Subject
    key: EntityKey
    settings: tuple[Setting, ...] = ()
    """None of them for REMOVE."""


@request
class EditEntities(Request, frozen=True, tag="entities.edit"):
    """Do all of this in order, or nothing. Source: sacctmgr(1)."""

    edits: tuple[EntityEdit, ...]


@request
class QueryEntities(Request, frozen=True, tag="entities.query"):
    """Return a slice of the entities of one kind in order of their keys."""

    subject: Subject
    after: EntityKey
    """The slice begins above this key; empty for the first."""
    limit: int
    """Rows at most, from 1 to 1000."""


class EntityView(Part, frozen=True):
    """An entity, as it is now."""

    key: EntityKey
    number: int
    settings: tuple[Setting, ...]


@answer
class EntityPage(Answer, frozen=True, tag="entities.rows"):
    """A slice of the entities of one kind."""

    entities: tuple[EntityView, ...]
    more: bool
    """Whether others follow."""
