"""Commands about what the leading controller counts; the process round it has the counts."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.projections.state import State
from spur.wire.declare import Done
from spur.wire.statistics import ResetStatistics, ShowStatistics

__all__ = ["decide_reset_statistics", "decide_show_statistics"]


@command(ShowStatistics, permission=Permission.USER, soft=True)
def decide_show_statistics(state: State, request: ShowStatistics, context: Context) -> Decision:
    """Let anybody see the counts."""
    return Decision((), Done())


@command(ResetStatistics, permission=Permission.OPERATOR, soft=True)
def decide_reset_statistics(state: State, request: ResetStatistics, context: Context) -> Decision:
    """Let operators set them to zero."""
    return Decision((), Done())
