"""What the jobs of associations and QOS hold in a plan, and which limits on them a job would break.

Nothing is counted before a job comes that a limit is on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spur.projections.jobs import JobRow
from spur.projections.limits import (
    Scope,
    add_to,
    broken_limit,
    held_by_scope,
    held_of,
    limits_of,
    scopes_of,
)
from spur.projections.priority import asked_of_job
from spur.projections.state import State
from spur.scheduling.need import Need
from spur.values.ids import PartitionName
from spur.values.states import Reason
from spur.wire.runs import Placement

__all__ = ["Holdings"]


class Holdings:
    """What is held by scope, the starts of a plan included."""

    def __init__(self, state: State, placements: Sequence[Placement]) -> None:
        """Follow a plan that goes on adding placements and counts each by `count`."""
        self._state = state
        self._placements = placements
        self._held: dict[Scope, dict[str, int]] | None = None

    def broken(self, job: JobRow, partition: PartitionName, need: Need, limit_s: int) -> Reason:
        """Return the limit that a job would break, if it started now; NONE for none."""
        limits = limits_of(self._state, job.spec, job.uid, partition)
        if not limits:
            return Reason.NONE
        asked = asked_of_job(job.spec.ask)
        asked["node"] = need.nodes_min
        asked["cpu"] = max(asked["cpu"], need.nodes_min)
        return broken_limit(limits, asked, limit_s=limit_s, nodes=need.nodes_min, held=self._of)

    def count(self, placed: Placement) -> None:
        """Count what a start of the plan holds."""
        if self._held is not None:
            job = self._state.jobs[placed.job_id]
            found = held_of(self._state, placed.shares)
            for scope in scopes_of(self._state, job.spec, job.uid, placed.partition):
                add_to(self._held.setdefault(scope, {}), found)

    def forget(self) -> None:
        """Count anew when it is asked for: starts were taken back."""
        self._held = None

    def _of(self, scope: Scope) -> Mapping[str, int]:
        if self._held is None:
            self._held = held_by_scope(self._state)
            for placed in self._placements:
                self.count(placed)
        return self._held.get(scope, {})
