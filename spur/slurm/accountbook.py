"""Everything that accounting knows, as sacctmgr reads it: by name, and in the orders of Slurm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spur.values.accounts import (
    ROOT,
    AssociationKey,
    EntityKey,
    Settings,
    Subject,
    line_of,
    names_setting,
    text_setting,
)
from spur.wire.accounts import EntityView

__all__ = ["AccountBook"]


class AccountBook:
    """Entities by kind and key."""

    def __init__(self, cluster: str, views: Iterable[tuple[Subject, EntityView]]) -> None:
        """Read what was fetched; `cluster` is the cluster's name."""
        self.cluster = cluster
        self._views: dict[Subject, dict[EntityKey, EntityView]] = {each: {} for each in Subject}
        for subject, view in views:
            self._views[subject][view.key] = view
        self._below: dict[str, list[str]] = {}
        self._users: dict[str, list[AssociationKey]] = {}
        for key in sorted(self._views[Subject.ASSOCIATION]):
            account, user, partition = key
            if user:
                self._users.setdefault(account, []).append((account, user, partition))
            elif account != ROOT:
                above = text_setting(self.settings(Subject.ASSOCIATION, key), "Parent")
                self._below.setdefault(above, []).append(account)

    def find(self, subject: Subject, *key: str) -> EntityView | None:
        """Return an entity; None when there is none of this key."""
        return self._views[subject].get(key)

    def settings(self, subject: Subject, key: EntityKey) -> Settings:
        """Return the settings of an entity; none where there is no such entity."""
        view = self._views[subject].get(key)
        return () if view is None else view.settings

    def names(self, subject: Subject) -> list[str]:
        """Return the names of accounts, users or QOS: QOS by number, others in order."""
        views = self._views[subject]
        if subject is Subject.QOS:
            return [key[0] for key in sorted(views, key=lambda key: views[key].number)]
        return [key[0] for key in sorted(views)]

    def associations(self) -> list[AssociationKey]:
        """Return all associations down the tree: an account, its users, the accounts below."""
        if (ROOT, "", "") not in self._views[Subject.ASSOCIATION]:
            return []
        return list(self._walk(ROOT))

    def _walk(self, account: str) -> Iterator[AssociationKey]:
        waiting = [account]
        while waiting:
            here = waiting.pop()
            yield here, "", ""
            yield from self._users.get(here, ())
            waiting += reversed(self._below.get(here, ()))

    def depth(self, account: str) -> int:
        """Return how many accounts are above one."""
        return len(self.line((account, "", ""))) - 1

    def of_user(self, user: str) -> list[AssociationKey]:
        """Return the associations of a user down the tree."""
        return [key for key in self.associations() if key[1] == user]

    def line(self, key: AssociationKey) -> list[Settings]:
        """Return the settings of an association and of all above it, the nearest first."""

        def of(each: AssociationKey) -> Settings | None:
            view = self.find(Subject.ASSOCIATION, *each)
            return None if view is None else view.settings

        return line_of(of, key)

    def coordinators(self, account: str) -> tuple[str, ...]:
        """Return who coordinates an account itself."""
        return names_setting(self.settings(Subject.ACCOUNT, (account,)), "Coordinators")

    def coordinated(self, user: str) -> list[str]:
        """Return the accounts that a user coordinates: those named, and all below them."""
        found = []
        for account, owner, _ in self.associations():
            if not owner and any(
                user in self.coordinators(above) for above in self._above(account)
            ):
                found.append(account)
        return sorted(found)

    def _above(self, account: str) -> Iterator[str]:
        here = account
        while here:
            yield here
            here = text_setting(self.settings(Subject.ASSOCIATION, (here, "", "")), "Parent")
