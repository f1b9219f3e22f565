"""For whom a job counts: its account and QOS, as the associations of its user say.

A cluster without associations takes what a job names and gives nothing else. Source: slurm.conf(5)
AccountingStorageEnforce.
"""

from __future__ import annotations

from msgspec.structs import replace

from spur.projections.accounts import association_for, line_above
from spur.projections.limits import enforced
from spur.projections.state import State
from spur.values.accounts import NORMAL_QOS, AssociationKey, allowed_qos, default_qos
from spur.values.errors import Rejection
from spur.values.jobspec import JobSpec

__all__ = ["accounted_spec"]


def accounted_spec(
    state: State, spec: JobSpec, *, uid: int, is_operator: bool
) -> JobSpec | Rejection:
    """Return the spec of a user's job with the account and QOS that it counts for.

    Its partitions must be known. With several the first decides. An operator may use any QOS.
    """
    if not state.associations.rows:
        return spec
    words = enforced(state)
    account = spec.account.lower()
    key = association_for(state, uid, account, spec.partitions[0])
    if key is None:
        if "associations" in words:
            return Rejection(
                "invalid-account",
                f"uid {uid} has no association with account {account!r}; nothing was changed"
                if account
                else f"uid {uid} has no default account; nothing was changed",
            )
    else:
        account = key[0]
    qos = _qos(state, spec.qos.lower(), key, checks="qos" in words, is_operator=is_operator)
    if isinstance(qos, Rejection):
        return qos
    return replace(spec, account=account, qos=qos)


def _qos(
    state: State, asked: str, key: AssociationKey | None, *, checks: bool, is_operator: bool
) -> str | Rejection:
    """Return the QOS of a job: the one asked for, else that of its association, else normal."""
    line = [] if key is None else line_above(state, key)
    qos = asked or (default_qos(line) if line else NORMAL_QOS)
    if not checks:
        return qos
    if qos not in state.qos:
        return Rejection("invalid-qos", f"there is no QOS {qos!r}; nothing was changed")
    if not is_operator and line and qos not in allowed_qos(line):
        return Rejection(
            "invalid-qos", f"the association may not use QOS {qos!r}; nothing was changed"
        )
    return qos
