"""How much a controller logs: as SlurmctldDebug says, which scontrol setdebug changes."""

from __future__ import annotations

import logging

from spur.projections.cluster import ConfigRow, parameter_of
from spur.projections.state import State

__all__ = ["LogLevel"]

_LEVELS = {
    "quiet": logging.CRITICAL + 1,
    "fatal": logging.CRITICAL,
    "error": logging.ERROR,
    "info": logging.INFO,
    "verbose": logging.INFO,
}
"""Every other word is a kind of debug. Source: slurm.conf(5) SlurmctldDebug."""


class LogLevel:
    """Follows the parameter; a controller that was started to be verbose begins with more."""

    def __init__(self) -> None:
        self._seen: ConfigRow | None = None
        self._word = ""

    def follow(self, state: State) -> None:
        """Set the level when the configuration names another one than before."""
        row = state.config.get(1)
        if row is None or row is self._seen:
            return
        self._seen = row
        word = parameter_of(state, "SlurmctldDebug").lower()
        if word and word != self._word:
            logging.getLogger().setLevel(_LEVELS.get(word, logging.DEBUG))
        self._word = word
