"""Situations that no black box shows at will: an engine's own classes, messages delivered by hand.

Each engine scripts a situation with its own messages, only in ways that its transport permits, and
reports what happened. The rules judge the reports alike.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Acknowledged", "PeerSituations", "Situations"]

_SECONDS_MAX = 60.0


@dataclass(frozen=True, kw_only=True)
class Acknowledged:
    """What clients were told, and what the nodes that are left hold."""

    acknowledged: tuple[str, ...]
    kept: tuple[str, ...]


class Situations(Protocol):
    """The scripts of one engine; each starts from nothing."""

    def voter_restarted(self) -> dict[int, tuple[str, ...]]:
        """A and B are candidates of one term; C votes for A, restarts, then hears B's request.

        Returns the nodes that became leaders, by term.
        """

    def append_repeated_late(self) -> Acknowledged:
        """An old append of A reaches B once more, then A is lost for good.

        Before it, entries were acknowledged by A and B; after it, B and C go on.
        """


class PeerSituations:
    """Runs a peer's scripts in the peers' own interpreter."""

    def __init__(self, argv: Sequence[str], root: Path, directory: Path) -> None:
        self._argv = list(argv)
        self._root = root
        self._directory = directory

    def voter_restarted(self) -> dict[int, tuple[str, ...]]:
        found = self._run("voter-restarted")
        return {int(term): tuple(nodes) for term, nodes in found.items()}

    def append_repeated_late(self) -> Acknowledged:
        found = self._run("append-repeated-late")
        return Acknowledged(acknowledged=tuple(found["acknowledged"]), kept=tuple(found["kept"]))

    def _run(self, name: str) -> dict[str, Any]:  # Any: the script's own JSON
        out = subprocess.run(
            [*self._argv, name, str(self._directory)],
            capture_output=True,
            text=True,
            check=True,
            timeout=_SECONDS_MAX,
            env={**os.environ, "PYTHONPATH": str(self._root)},
        )
        found: dict[str, Any] = json.loads(out.stdout.splitlines()[-1])
        return found
