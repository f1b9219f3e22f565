"""`scontrol update NodeName`, State and Reason of nodes; `scontrol reconfigure`."""

from __future__ import annotations

from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError, sentence_of
from spur.values.errors import OperatorFault, Rejection
from spur.values.states import NodeAction
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Done
from spur.wire.nodes import UpdateNodes
from spur_cli.conffiles import read_config_files
from spur_cli.slurm.session import Session

__all__ = ["reconfigure", "update_nodes"]

_SLURM_CONF = "/etc/slurm/slurm.conf"
"""Where slurm.conf is looked for when SLURM_CONF does not say."""

_ACTIONS = {
    "drain": NodeAction.DRAIN,
    "down": NodeAction.DOWN,
    "resume": NodeAction.RESUME,
    "idle": NodeAction.RESUME,
    "undrain": NodeAction.UNDRAIN,
}

_STATES = "NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN"

_NOT_YET = frozenset(
    {"fail", "future", "noresp", "power_down", "power_down_asap", "power_down_force", "power_up"}
)

_OTHERS = frozenset(
    {"activefeatures", "availablefeatures", "comment", "cpubind", "extra", "features", "gres"}
    | {"nodeaddr", "nodehostname", "weight"}
)


def update_nodes(session: Session, pairs: list[tuple[str, str]]) -> int:
    """Drain nodes, take them down, or take them into use."""
    nodes = reason = state = ""
    for key, value in pairs:
        word = key.lower()
        if word in ("nodename", "node"):
            nodes = value
        elif word == "reason":
            reason = value
        elif word == "state":
            state = value
        elif word in _OTHERS:
            raise SlurmError(f"Update of {key} is not honoured yet", "Request aborted")
        else:
            raise SlurmError(
                f"Update of this parameter is not supported: {key}={value}", "Request aborted"
            )
    if not state and not reason:
        raise SlurmError("No changes specified")
    if not state:
        raise SlurmError("Update of Reason alone is not honoured yet", "Request aborted")
    answer = session.ask(UpdateNodes(nodes, _action(state, reason), reason), Done)
    if not isinstance(answer, Rejection):
        return 0
    sentence = "Invalid user id" if answer.code == "not-permitted" else sentence_of(answer)
    raise SlurmError(f"slurm_update error: {sentence}")


def _action(state: str, reason: str) -> NodeAction:
    word = state.lower()
    if word in _NOT_YET:
        raise SlurmError(f"State={state} is not honoured yet", "Request aborted")
    action = _ACTIONS.get(word)
    if action is None:
        raise SlurmError(
            f"Invalid input: state={state}",
            "Request aborted",
            f"Valid states are: {_STATES}",
            "Not all states are valid given a node's prior state",
        )
    if action in (NodeAction.DRAIN, NodeAction.DOWN) and not reason:
        raise SlurmError(
            "You must specify a reason when DOWNING or DRAINING a node. Request denied"
        )
    return action


def reconfigure(session: Session, line: Layer, words: list[str]) -> int:
    """Hand in the slurm.conf of this host, with what lies beside it. Source: scontrol(1)."""
    if words:
        raise SlurmError("too many arguments for keyword:reconfigure")
    path = session.environment.get("SLURM_CONF") or _SLURM_CONF
    try:
        files = read_config_files(path)
    except OperatorFault as fault:
        raise SlurmError(f"slurm_reconfigure error: {fault}") from fault
    answer = session.ask(Reconfigure(files), Configured)
    if not isinstance(answer, Rejection):
        return 0
    sentence = "Invalid user id" if answer.code == "not-permitted" else sentence_of(answer)
    raise SlurmError(*f"slurm_reconfigure error: {sentence}".splitlines())
