"""`--clusters` of a command: there is one cluster, which may be named, or called all."""

from __future__ import annotations

from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.wire.cluster import ClusterInfo, ShowCluster
from spur_cli.slurm.session import Session

__all__ = ["cluster_meant", "own_cluster"]


def own_cluster(session: Session) -> str:
    """Return the cluster's name; empty before it is configured. Raises: SlurmError."""
    info = session.ask(ShowCluster(), ClusterInfo)
    if isinstance(info, Rejection):
        raise SlurmError(f"slurm_load_ctl_conf error: {sentence_of(info)}")
    return "" if info.settings is None else info.settings.name


def cluster_meant(session: Session, text: str) -> str:
    """Return the cluster that a list of names means, and complain of those that are none.

    Raises: SlurmError when it means none. Source: squeue(1) --clusters; transcripts of Slurm 22.05.
    """
    own = own_cluster(session)
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in (own, "all"):
            session.complain(f"No cluster '{name}' known by database.")
    if own in names or "all" in names:
        return own
    raise SlurmError(
        error_line(
            session.program,
            f"'{text}' can't be reached now, or it is an invalid entry for --cluster.  "
            "Use 'sacctmgr list clusters' to see available clusters.",
        )
    )
