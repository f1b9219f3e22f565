"""`scontrol update NodeName`, State and Reason of nodes; `scontrol reconfigure`."""

from __future__ import annotations

from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError, sentence_of
from spur.values.errors import OperatorFault, Rejection
from spur.values.states import NodeAction
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Done
from spur.wire.nodes import ListNodes, NodeList, UpdateNodes
from spur_cli.conffiles import read_config_files
from spur_cli.slurm.session import Session

__all__ = ["cancel_reboot", "power", "reboot", "reconfigure", "update_nodes"]

_SLURM_CONF = "/etc/slurm/slurm.conf"
"""Where slurm.conf is looked for when SLURM_CONF does not say."""

_ACTIONS = {
    "drain": NodeAction.DRAIN,
    "fail": NodeAction.FAIL,
    "resume": NodeAction.RESUME,
    "undrain": NodeAction.UNDRAIN,
    "down": NodeAction.DOWN,
    "idle": NodeAction.RESUME,
}
"""What may be cut short, in the order in which it is looked for."""

_STATES = "NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN"

_NOT_YET = frozenset(
    {"future", "noresp", "power_down", "power_down_asap", "power_down_force", "power_up"}
)

_OTHERS = frozenset(
    {"activefeatures", "availablefeatures", "cpubind", "features", "gres"}
    | {"nodeaddr", "nodehostname", "weight"}
)

_WORDS = {
    "invalid-node-state": "Invalid node state specified",
    "not-permitted": "Invalid user id",
}


def update_nodes(session: Session, pairs: list[tuple[str, str]]) -> int:
    """Change the state of nodes, or what is written of them.

    Source: scontrol(1) update NodeName.
    """
    nodes = reason = ""
    state: str | None = None
    texts: dict[str, str] = {}
    for key, value in pairs:
        word = key.lower()
        if word in ("nodename", "node"):
            nodes = value
        elif word == "reason":
            reason = value
            texts.setdefault(word, value)
        elif word == "state":
            state = value
        elif word in ("comment", "extra"):
            texts[word] = value
        elif word in _OTHERS:
            raise SlurmError(f"Update of {key} is not honoured yet", "Request aborted")
        else:
            raise SlurmError(
                f"Update of this parameter is not supported: {key}={value}", "Request aborted"
            )
    if state is None and not texts:
        raise SlurmError("No changes specified")
    action = NodeAction.NONE if state is None else _action(state, reason)
    request = UpdateNodes(nodes, action, reason, texts.get("comment"), texts.get("extra"))
    answer = session.ask(request, Done)
    if not isinstance(answer, Rejection):
        return 0
    if answer.code == "invalid-node-state" and (state or "").lower() == "idle":
        return 0  # it is in use already, and was not asked to come back
    raise SlurmError(f"slurm_update error: {_WORDS.get(answer.code) or sentence_of(answer)}")


def _action(state: str, reason: str) -> NodeAction:
    word = state.lower()
    if word in _NOT_YET:
        raise SlurmError(f"State={state} is not honoured yet", "Request aborted")
    action = _ACTIONS.get(word) or next(
        (action for name, action in _ACTIONS.items() if word and name.startswith(word)), None
    )
    if action is None:
        raise SlurmError(
            f"Invalid input: state={state}",
            "Request aborted",
            f"Valid states are: {_STATES}",
            "Not all states are valid given a node's prior state",
        )
    if action in (NodeAction.DRAIN, NodeAction.FAIL, NodeAction.DOWN) and not reason:
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


def reboot(session: Session, line: Layer, words: list[str]) -> int:
    """Judge what is to be rebooted; agents reboot no hosts so far."""
    options = [word for word in words if word.lower().partition("=")[0] in _REBOOT_OPTIONS]
    names = [word for word in words if word not in options]
    for option in options:
        key, _, value = option.lower().partition("=")
        if key == "nextstate" and value not in ("resume", "down"):
            raise SlurmError(f"Invalid state: {value}", "Valid states: DOWN, RESUME")
        if key == "reason" and not value:
            raise SlurmError("missing reason")
    if len(names) > 1:
        raise SlurmError("too many arguments for keyword:reboot")
    if not names:
        raise SlurmError("Missing node list. Specify ALL|<NodeList>")
    return _reboot(session, names[0], "scontrol_reboot_nodes error")


_REBOOT_OPTIONS = frozenset({"asap", "force", "nextstate", "reason"})


def cancel_reboot(session: Session, line: Layer, words: list[str]) -> int:
    """Judge which reboot is to be called off: there is none."""
    if not words:
        raise SlurmError("too few arguments for keyword:cancel_reboot")
    return _reboot(session, words[0], "slurm_update error")


def _reboot(session: Session, names: str, said: str) -> int:
    if not session.is_root:
        raise SlurmError(f"{said}: Permission denied")
    found = session.ask(ListNodes("" if names.upper() == "ALL" else names, "", 1), NodeList)
    if isinstance(found, Rejection):
        raise SlurmError(f"{said}: Invalid node name specified")
    raise SlurmError(f"{said}: Requested operation not supported on this system")


def power(session: Session, line: Layer, words: list[str]) -> int:
    """Judge what is to be powered; nodes are not powered down so far."""
    if not words or words[0].lower() not in ("up", "down"):
        raise SlurmError("missing argument for keyword:power")
    if len([word for word in words[1:] if word.lower() not in ("asap", "force")]) < 1:
        raise SlurmError("Missing node list. Specify ALL|<NodeList>")
    raise SlurmError("slurm_update error: Requested operation not supported on this system")
