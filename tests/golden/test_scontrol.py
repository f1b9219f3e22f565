"""What `scontrol update` does and says, as a real Slurm 22.05 did and said it."""

from __future__ import annotations

import shlex
from typing import TypeVar

import pytest

from spur.slurm.wording import SlurmError
from spur.testing.builders import actor
from spur.testing.hall import Hall
from spur.values.errors import Rejection
from spur.wire.declare import Answer, Request
from spur.wire.nodes import ListNodes, NodeInfo, NodeList
from spur_cli.commands.scontrol import carry_out
from spur_cli.slurm.session import Session

A = TypeVar("A", bound=Answer)

USER_ID = 1000
"""The user of the hall."""


class Asking(Session):
    """A session whose controller is in this process."""

    def __init__(self, hall: Hall) -> None:
        super().__init__("scontrol", {})
        self.hall = hall
        self.uid = 0

    def ask(self, request: Request, expected: type[A], *, is_held: bool = False) -> A | Rejection:
        answer = self.hall.cluster.ask(request, actor(self.uid))
        assert isinstance(answer, (expected, Rejection))
        return answer

    def says(self, words: str, *, uid: int = 0) -> list[str]:
        """Return the lines in which it gives up; none when all went well."""
        self.uid = uid
        try:
            status = carry_out(self, shlex.split(words))
        except SlurmError as error:
            return list(error.lines)
        assert status == 0
        return []


@pytest.fixture
def hall() -> Hall:
    return Hall()


@pytest.fixture
def scontrol(hall: Hall) -> Asking:
    return Asking(hall)


def node(hall: Hall, name: str = "n4") -> NodeInfo:
    answer = hall.cluster.ask(ListNodes(name, "", 10))
    assert isinstance(answer, NodeList)
    return answer.nodes[0]


def told(found: NodeInfo) -> str:
    """Return state and reason of a node, as sinfo and scontrol build on them."""
    return f"{found.state} {found.reason}".rstrip()


NO_REASON = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
NO_STATE = "slurm_update error: Invalid node state specified"

NODE_STORY = [
    ("nodename=n4 reason=only", [], "IDLE"),
    ("nodename=n4 state=drain", [NO_REASON], "IDLE"),
    ("nodename=n4 state=drain reason=a", [], "IDLE+DRAIN a"),
    ("nodename=n4 reason=b", [], "IDLE+DRAIN b"),
    ("nodename=n4 reason=", [], "IDLE+DRAIN b"),
    ("nodename=n4 state=resume reason=c", [], "IDLE"),
    ("nodename=n4 state=resume", [NO_STATE], "IDLE"),
    ("nodename=n4 state=idle", [], "IDLE"),
    ("node=n4 state=DRAIN reason='two words'", [], "IDLE+DRAIN two words"),
    ("NodeName=n[3-4] State=down Reason=x", [], "DOWN+DRAIN x"),
    ("nodename=n3,n4 state=resume", [], "IDLE"),
    ("nodename=n4 state=DRAI reason=x", [], "IDLE+DRAIN x"),
    ("nodename=n4 state=undr", [], "IDLE"),
    ("nodename=n4 state=fail", [NO_REASON], "IDLE"),
    ("nodename=n4 state=fail reason=zz", [], "IDLE+FAIL zz"),
    ("nodename=n4 state=res", [], "IDLE"),
    ("nodename=n4 state=down reason=x", [], "DOWN x"),
    ("nodename=n4 state=drain reason=more", [], "DOWN+DRAIN more"),
    ("nodename=n4 state=undrain", [], "DOWN more"),
    ("nodename=n4 state=resume", [], "IDLE"),
    ("nodename= reason=x", ["slurm_update error: Invalid node name specified"], "IDLE"),
    ("nodename=n9 reason=x", ["slurm_update error: Invalid node name specified"], "IDLE"),
    ("node=n4", ["No changes specified"], "IDLE"),
    (
        "nodename=n4 foo=bar",
        ["Update of this parameter is not supported: foo=bar", "Request aborted"],
        "IDLE",
    ),
]
"""What was typed, one after the other, what scontrol said, and state and reason after it."""


def test_a_nodes_state_and_reason_follow_what_is_typed(hall: Hall, scontrol: Asking) -> None:
    """An operator's day, in all the forms in which scripts write it."""
    for words, says, state in NODE_STORY:
        assert scontrol.says(f"update {words}") == says, words
        assert told(node(hall)) == state, words


@pytest.mark.parametrize("state", ["draining", "drained", "nosuch", ""])
def test_a_state_that_none_can_set_is_named(scontrol: Asking, state: str) -> None:
    """A word that Slurm shows and does not take, one that there is not, and none."""
    assert scontrol.says(f"update nodename=n4 state={state} reason=x") == [
        f"Invalid input: state={state}",
        "Request aborted",
        "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN",
        "Not all states are valid given a node's prior state",
    ]


def test_what_operators_write_of_a_node_stays(hall: Hall, scontrol: Asking) -> None:
    """Comment and extra text outlive a change of state, and are taken away by nothing."""
    assert scontrol.says("update nodename=n4 comment='in row 3' extra=rack7") == []
    assert scontrol.says("update nodename=n4 state=drain reason=x") == []
    found = node(hall)
    assert (found.comment, found.extra, found.reason) == ("in row 3", "rack7", "x")
    assert scontrol.says("update nodename=n4 comment=") == []
    assert (node(hall).comment, node(hall).extra) == ("", "rack7")


@pytest.mark.parametrize("change", ["reason=x", "comment=x", "state=resume", "state=fail reason=x"])
def test_users_change_nothing_of_a_node(hall: Hall, scontrol: Asking, change: str) -> None:
    """Somebody tries to take a node out of the others' way."""
    says = scontrol.says(f"update nodename=n4 {change}", uid=USER_ID)
    assert says == ["slurm_update error: Invalid user id"]
    assert told(node(hall)) == "IDLE"


def test_a_failing_node_takes_no_new_jobs(hall: Hall, scontrol: Asking) -> None:
    """The node's disk reports errors; what runs there goes on."""
    job_id = hall.submit()
    hall.start(job_id, hall.share("n4"))
    assert scontrol.says("update nodename=n4 state=fail reason=disk") == []
    assert node(hall).state == "MIXED+FAIL"
    with pytest.raises(ValueError, match="does-not-fit"):
        hall.start(hall.submit(), hall.share("n4"))
    assert hall.view(job_id).state.name == "RUNNING"
