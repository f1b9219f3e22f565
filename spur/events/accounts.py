"""What happens to accounts, users, associations and QOS.

All of them are entities with settings (`spur.values.accounts`), so three events tell their lives.
What is removed ends at that entry: the log has when it was there.
"""

from __future__ import annotations

from spur.events.declare import Event, event
from spur.values.accounts import EntityKey, Setting, Subject

__all__ = ["EntityAdded", "EntityChanged", "EntityRemoved"]


@event("entity.added")
class EntityAdded(Event, frozen=True):
    """An account, user, association or QOS is there from now on."""

    subject: Subject
    key: EntityKey
    settings: tuple[Setting, ...]


@event("entity.changed")
class EntityChanged(Event, frozen=True):
    """Some of its settings have other values; a value of None takes one away."""

    subject: Subject
    key: EntityKey
    settings: tuple[Setting, ...]


@event("entity.removed")
class EntityRemoved(Event, frozen=True):
    """It is there no more. What belonged to it was removed before, by events of their own."""

    subject: Subject
    key: EntityKey
