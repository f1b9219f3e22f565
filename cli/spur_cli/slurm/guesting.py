"""Speaking with nodes of somebody else's step or of a run: as a guest, with a key of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.wire.steps import KEY_SIZE, AdmitGuest, GuestAccepted
from spur.wire.streams import STREAM_VERSION, Open, Splice, stream_frames
from spur_cli.slurm.dialling import dial_agent
from spur_cli.slurm.nodestream import NodeStream
from spur_cli.slurm.session import Session

__all__ = ["Visit", "visit"]


class Visit(NamedTuple):
    """Where a guest is let in."""

    job_id: JobId
    step_id: int
    run: int
    nodes: tuple[str, ...]
    addresses: tuple[str, ...]
    key: bytes

    def only(self, nodes: Sequence[str]) -> Visit:
        """Return the visit of these nodes alone, in their order."""
        known = dict(zip(self.nodes, self.addresses, strict=True))
        return self._replace(nodes=tuple(nodes), addresses=tuple(known[node] for node in nodes))

    def streams(self, session: Session, tasks: tuple[tuple[int, ...], ...]) -> list[NodeStream]:
        """Open a stream to each node, whose tasks these are. Raises: SlurmError."""
        dial = partial(dial_agent, session)
        found = []
        for node, address, own in zip(self.nodes, self.addresses, tasks, strict=True):
            opening = Open(node, self.job_id, self.run, self.step_id, self.key)
            splice = Splice(STREAM_VERSION, address, opening)
            found.append(NodeStream(node, own, dial, stream_frames(splice), tried_s=10.0))
        return found


def visit(session: Session, job_id: JobId, step_id: int) -> Visit | Rejection:
    """Ask to be let in; `step_id` is `EXTERN_STEP` for the run itself."""
    key = os.urandom(KEY_SIZE)
    answer = session.ask(AdmitGuest(job_id, step_id, key), GuestAccepted)
    if isinstance(answer, Rejection):
        return answer
    return Visit(job_id, step_id, answer.run, answer.nodes, answer.addresses, key)
