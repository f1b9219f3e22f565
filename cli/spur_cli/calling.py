"""For which process a command runs: for itself, or for the launcher that handed it over."""

from __future__ import annotations

__all__ = ["pid"]

pid = 0
"""0 is the process itself. Set once, before the command begins."""
