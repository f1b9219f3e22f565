"""Entities as they are after some edits of a request, before any of it is in the log."""

from __future__ import annotations

from collections.abc import Callable

from spur.events.accounts import EntityAdded, EntityChanged, EntityRemoved
from spur.events.declare import Event
from spur.projections.accounts import entity, entity_keys
from spur.projections.state import State
from spur.values.accounts import EntityKey, Settings, Subject, merged, number_setting, text_setting
from spur.values.errors import Rejection

__all__ = ["EVENTS_MAX", "Draft", "Refused", "shown"]

EVENTS_MAX = 5_000
"""That the edits of one request may come to."""


def shown(key: EntityKey) -> str:
    """Return a key for a sentence."""
    return ", ".join(filter(None, key))


class Refused(Exception):
    """Why an edit can't be done; caught where the edits are."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.rejection = Rejection(code, f"{text}; nothing was changed")

    def __reduce__(self) -> tuple[object, ...]:
        return (Refused, (self.rejection.code, str(self)))


class Draft:
    """The entities as they are after the edits so far, and the events that say so."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.events: list[Event] = []
        self._changed: dict[tuple[Subject, EntityKey], Settings | None] = {}

    def get(self, subject: Subject, key: EntityKey) -> Settings | None:
        """Return an entity's settings; None when there is no such entity."""
        if (subject, key) in self._changed:
            return self._changed[subject, key]
        row = entity(self.state, subject, key)
        return None if row is None else row.settings

    def need(self, subject: Subject, key: EntityKey) -> Settings:
        """Return an entity's settings. Raises: Refused."""
        found = self.get(subject, key)
        if found is None:
            raise Refused("unknown-entity", f"there is no {subject} {shown(key)}")
        return found

    def keys(self, subject: Subject) -> list[EntityKey]:
        """Return the keys of one kind, in order."""
        found = set(entity_keys(self.state, subject))
        for (kind, key), settings in self._changed.items():
            if kind is subject:
                (found.discard if settings is None else found.add)(key)
        return sorted(found)

    def of_user(self, user: str) -> list[EntityKey]:
        """Return the associations of a user, in order."""
        before: list[EntityKey] = list(self.state.associations_of_user.keys(user))
        return self._touched(before, lambda key, _: key[1] == user)

    def under(self, account: str) -> list[EntityKey]:
        """Return the associations right under an account, in order."""
        before: list[EntityKey] = list(self.state.associations_under.keys(account))
        return self._touched(
            before,
            lambda key, settings: (
                account == (key[0] if key[1] else text_setting(settings, "Parent"))
            ),
        )

    def of_uid(self, uid: int) -> list[EntityKey]:
        """Return the users of a uid."""
        found: set[EntityKey] = {(name,) for name in self.state.users_of_uid.keys(uid)}
        for (kind, key), settings in self._changed.items():
            if kind is Subject.USER:
                found.discard(key)
                if settings is not None and number_setting(settings, "Uid") == uid:
                    found.add(key)
        return sorted(found)

    def _touched(
        self, before: list[EntityKey], fits: Callable[[EntityKey, Settings], bool]
    ) -> list[EntityKey]:
        found = set(before)
        for (kind, key), settings in self._changed.items():
            if kind is Subject.ASSOCIATION:
                found.discard(key)
                if settings is not None and fits(key, settings):
                    found.add(key)
        return sorted(found)

    # -- writing
    def add(self, subject: Subject, key: EntityKey, settings: Settings = ()) -> None:
        """Add an entity."""
        self._note(EntityAdded(subject, key, settings))
        self._changed[subject, key] = merged((), settings)

    def change(self, subject: Subject, key: EntityKey, settings: Settings) -> None:
        """Change an entity, if these are other values than it has."""
        before = self.need(subject, key)
        after = merged(before, settings)
        if after != before:
            self._note(EntityChanged(subject, key, settings))
            self._changed[subject, key] = after

    def remove(self, subject: Subject, key: EntityKey) -> None:
        """Remove an entity."""
        self._note(EntityRemoved(subject, key))
        self._changed[subject, key] = None

    def _note(self, event: Event) -> None:
        if len(self.events) >= EVENTS_MAX:
            raise Refused("limit-exceeded", f"events-max is {EVENTS_MAX}, and this needs more")
        self.events.append(event)
