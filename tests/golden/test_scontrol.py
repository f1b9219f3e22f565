"""What `scontrol update` does and says, as a real Slurm 22.05 did and said it."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from typing import TypeVar

import pytest
from msgspec.structs import replace

from spur.projections.attachments import unpack_attachments
from spur.slurm.wording import SlurmError
from spur.testing.builders import actor
from spur.testing.hall import SPEC, Hall
from spur.values.arrays import TaskSet
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import Hold, JobState
from spur.wire.controllers import ControllerList, ShowControllers
from spur.wire.declare import Answer, Request
from spur.wire.jobs import JobView, UpdateJob
from spur.wire.nodes import ListNodes, NodeInfo, NodeList
from spur_cli.commands.scontrol import carry_out
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals

A = TypeVar("A", bound=Answer)

USER_ID = 1001
"""The user of the hall."""


class Asking(Session):
    """A session whose controller is in this process."""

    def __init__(self, hall: Hall) -> None:
        super().__init__("scontrol", {})
        self.hall = hall
        self.uid = 0
        self.amended: dict[str, bytes] = {}

    def ask(
        self, request: Request, expected: type[A], *, held_with: Signals | None = None
    ) -> A | Rejection:
        if isinstance(request, ShowControllers):
            alone: Answer = ControllerList(1, (), b"")
            assert isinstance(alone, expected)
            return alone
        answer = self.hall.cluster.ask(request, actor(self.uid))
        if isinstance(request, UpdateJob):
            self.amended = {each.name: each.content for each in request.attachments}
        assert isinstance(answer, (expected, Rejection))
        return answer

    def shows(self, words: str, *, uid: int = 0) -> str:
        """Return what it writes; it must go well."""
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            assert self.says(words, uid=uid) == []
        return written.getvalue()

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


GONE = "Job has already finished"
DENIED = "Access/permission denied"
PLACED = "Job is no longer pending execution"
HELD = "Job is in held state, pending scheduler release"
NOT_KEPT = "Changes to job priority are not persistent, change nice instead"
STRANGER = "Invalid user id"

CHANGES = [
    ("comment=x", "", "", ""),
    ("timelimit=5", "", "", ""),
    ("timelimit=+5", "", DENIED, ""),
    ("timelimit=-2", "", "", ""),
    ("timelimit=20", "", DENIED, ""),
    ("partition=debug", "", PLACED, ""),
    ("nice=5", "", "", ""),
    ("name=nn", "", "", ""),
    ("starttime=now+1hour", "", PLACED, ""),
    ("priority=5", HELD, NOT_KEPT, ""),
    ("requeue=0", "", "", ""),
    ("nice=-5", DENIED, DENIED, ""),
    ("dependency=xx", "Job dependency problem", "Job dependency problem", ""),
    ("stdout=/tmp/x", "", PLACED, ""),
    ("numnodes=1-2", "", PLACED, ""),
]
"""What its owner types, and what is said of a held job, of one that runs, and to the owner of one
that is done: there it is always the same."""


def jobs_of(hall: Hall) -> dict[str, str]:
    """Return names of jobs that wait, run and are done, of arrays too."""
    spec = replace(SPEC, time_limit_s=600)
    waits = hall.submit(spec, hold=True)
    runs = hall.submit(spec)
    hall.start(runs)
    done = hall.submit(spec)
    hall.start(done)
    hall.end(done)
    array = hall.submit(spec, tasks=TaskSet(((1, 4, 1),)), hold=True)
    other = hall.submit(spec, tasks=TaskSet(((1, 3, 1),)))
    hall.start(other, task=1)
    return {
        "waits": str(waits),
        "runs": str(runs),
        "done": str(done),
        "array": str(array),
        "task": f"{array}_2",
        "running task": f"{other}_1",
        "running array": str(other),
    }


@pytest.mark.parametrize(("change", "waits", "runs", "done"), CHANGES)
def test_each_key_is_answered_for_each_kind_of_job(
    hall: Hall, scontrol: Asking, change: str, waits: str, runs: str, done: str
) -> None:
    """The owner of jobs that wait, run and are done tries one change on each of them."""
    jobs = jobs_of(hall)
    for kind, word in (("waits", waits), ("runs", runs), ("done", done or GONE)):
        if kind == "done" and change.startswith("dependency"):
            continue  # what cannot be read is not asked of anybody
        says = scontrol.says(f"update job={jobs[kind]} {change}", uid=USER_ID)
        assert says == ([f"{word} for job {jobs[kind]}"] if word else []), kind
    for kind, word in (("task", waits), ("running task", runs)):
        says = scontrol.says(f"update job={jobs[kind]} {change}", uid=USER_ID)
        assert says == ([f"{jobs[kind]}: {word}"] if word else []), kind


def test_tasks_of_an_array_are_told_of_together(hall: Hall, scontrol: Asking) -> None:
    """One task runs, the others wait: what is refused for one alone is said of that one."""
    jobs = jobs_of(hall)
    array, mixed = jobs["array"], jobs["running array"]
    says = scontrol.says(f"update job={array} priority=5", uid=USER_ID)
    assert says == [f"{array}_1-4: {HELD}"]
    says = scontrol.says(f"update job={mixed} partition=debug", uid=USER_ID)
    assert says == [f"{mixed}_1: {PLACED}", f"{mixed}_2-3: No error"]
    assert scontrol.says(f"update job={mixed} timelimit=+5", uid=USER_ID) == [
        "scontrol: error: TimeLimit increment/decrement not supported for job arrays"
    ]
    assert scontrol.says(f"update job={array}_9 nice=5", uid=USER_ID) == [
        f"{array}_9: Invalid job id specified"
    ]
    assert scontrol.says(f"update job={array}_[1-2] nice=7", uid=USER_ID) == []


@pytest.mark.parametrize("keyword", ["update", "hold", "release", "uhold", "requeue"])
def test_a_stranger_is_told_so(hall: Hall, scontrol: Asking, keyword: str) -> None:
    """Someone mistypes a number, and hits a colleague's job."""
    job_id = jobs_of(hall)["runs"]
    words = f"update job={job_id} nice=5" if keyword == "update" else f"{keyword} {job_id}"
    sentence = DENIED if keyword == "requeue" else STRANGER
    says = scontrol.says(words, uid=4711)
    ends = [f"slurm_suspend error: {sentence}"] if keyword.endswith(("hold", "release")) else []
    assert says == [f"{sentence} for job {job_id}", *ends]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "timelimit=-500",
            ["scontrol: error: TimeLimit decrement larger than current time limit (500 > 10)"],
        ),
        ("timelimit=", ["scontrol: error: Invalid TimeLimit value"]),
        ("starttime=xx", ["Invalid time specification (pos=0): xx", "No changes specified"]),
        ("priority=abc", ["scontrol: error: Invalid Priority value: abc"]),
        ("partition=nosuch", ["Invalid partition name specified for job {}"]),
        ("dependency=afterok:{}", ["Job dependency problem for job {}"]),
        ("timelimit=1-1", ["Access/permission denied for job {}"]),
        ("timelimit=unlimited", ["Access/permission denied for job {}"]),
        ("features=nosuch", ["Invalid feature specification for job {}"]),
        ("licenses=nosuch", ["Invalid license specification for job {}"]),
        ("reservation=nosuch", ["Requested reservation is invalid for job {}"]),
        ("", ["No changes specified"]),
    ],
)
def test_a_bad_change_is_refused(
    hall: Hall, scontrol: Asking, change: str, says: list[str]
) -> None:
    """Someone mistypes a value, or asks for more than there is."""
    job_id = jobs_of(hall)["waits"]
    found = scontrol.says(f"update job={job_id} {change.format(job_id)}", uid=USER_ID)
    assert found == [line.format(job_id) for line in says]


def test_priority_nought_holds(hall: Hall, scontrol: Asking) -> None:
    """An administrator holds by a priority; its owner cannot let go of it."""
    job_id = JobId(int(jobs_of(hall)["waits"]))
    assert scontrol.says(f"release {job_id}", uid=USER_ID) == []
    assert scontrol.says(f"update job={job_id} priority=0", uid=USER_ID) == []
    assert hall.view(job_id).hold is Hold.USER
    assert scontrol.says(f"update job={job_id} priority=0") == []
    assert hall.view(job_id).hold is Hold.ADMIN
    assert scontrol.says(f"release {job_id}", uid=USER_ID) == [
        f"{DENIED} for job {job_id}",
        f"slurm_suspend error: {DENIED}",
    ]


def test_a_comment_is_private_and_takes_the_formers_place(hall: Hall, scontrol: Asking) -> None:
    """A script writes how far it has come, again and again."""
    job_id = JobId(int(jobs_of(hall)["runs"]))
    for comment in (b"10 %", b"20 %"):
        words = f"update jobid={job_id} comment='{comment.decode()}'"
        assert scontrol.says(words, uid=USER_ID) == []
        assert scontrol.amended == {"comment": comment}
    names = [each.name for each in unpack_attachments(hall.state.jobs[job_id].attachments)]
    assert names == ["script", "environment", "text", "comment"]
    assert all(b"20 %" not in entry.body for entry in hall.cluster.entries)


def limit_s(job: JobView) -> int:
    return (job.limit_ns - job.start_ns) // 1_000_000_000


def test_the_limit_of_a_running_job_moves(hall: Hall, scontrol: Asking) -> None:
    """An operator gives more time, and takes some; the owner gives back."""
    job_id = JobId(int(jobs_of(hall)["runs"]))
    assert scontrol.says(f"update jobid={job_id} timelimit=+10") == []
    assert limit_s(hall.view(job_id)) == 1_200
    assert scontrol.says(f"update jobid {job_id} TimeLimit=-5", uid=USER_ID) == []
    assert limit_s(hall.view(job_id)) == 900


def test_a_job_is_suspended_and_goes_on(hall: Hall, scontrol: Asking) -> None:
    """An operator lets a job stand still; what is said of those that cannot is Slurm's."""
    jobs = jobs_of(hall)
    job_id, waits = jobs["runs"], jobs["waits"]
    assert scontrol.says(f"suspend {job_id}") == []
    assert hall.view(JobId(int(job_id))).state is JobState.SUSPENDED
    assert scontrol.says(f"suspend {job_id}") == []
    assert scontrol.says(f"resume {job_id}") == []
    assert scontrol.says(f"resume {job_id}") == [f"Job is not suspended for job {job_id}"]
    for keyword in ("suspend", "resume"):
        assert scontrol.says(f"{keyword} {waits} 99999 abc") == [
            f"Job is pending execution for job {waits}",
            "Unexpected message received for job 99999",
            "Invalid job id specified for job abc",
        ]
        assert scontrol.says(keyword) == [f"too few arguments for keyword:{keyword}"]
        assert scontrol.says(f"{keyword} {job_id}", uid=USER_ID) == [
            f"Access/permission denied for job {job_id}"
        ]


def test_wait_job_says_whether_its_nodes_are_ready(hall: Hall, scontrol: Asking) -> None:
    """A script asks before it goes on; a job that waits or never was is a problem."""
    jobs = jobs_of(hall)
    assert scontrol.says(f"wait_job {jobs['waits']}") == [
        f"scontrol: Problem running job {jobs['waits']}"
    ]
    assert scontrol.says("wait_job abc") == ["Invalid job_id abc"]


PARTITION_SAYS = [
    ("update partitionname=gpu maxtime=10", []),
    (
        "update partitionname=gpu maxtime=xx",
        ["scontrol: error: Invalid input maxtime=xx", "slurm_update error: No error"],
    ),
    (
        "update partitionname=gpu nosuch=1",
        [
            "scontrol: error: Update of this parameter is not supported: nosuch=1\n",
            "scontrol: error: Request aborted",
            "slurm_update error: No error",
        ],
    ),
    ("update partitionname=gpu nodes=n77", ["slurm_update error: Invalid node name specified"]),
    ("update partitionname=gpu qos=nosuch", ["slurm_update error: Invalid qos specification"]),
    ("update partition=no state=up", ["slurm_update error: Invalid partition name specified"]),
    ("update partitionname=gpu", ["No changes specified"]),
    ("create partitionname=p nodes=n1", []),
    ("create partition", ["PartitionName must be given."]),
    ("create nosuch=1", ["Invalid creation entity: nosuch=1"]),
    ("create", ["too few arguments for create keyword"]),
    ("delete partitionname=p", []),
    ("delete partition p", ["delete_partition partition p: Invalid partition name specified"]),
    ("delete nosuch=1", ["Invalid deletion entity: nosuch=1"]),
    ("delete part=p extra", ["too many arguments for delete keyword"]),
]


def test_partitions_are_made_changed_and_taken_away(scontrol: Asking) -> None:
    """An operator's afternoon, in order."""
    for words, says in PARTITION_SAYS:
        assert scontrol.says(words) == says, words
    for words, ending in (
        ("update partitionname=gpu state=up", "slurm_update error"),
        ("create partitionname=q", "Error creating the partition"),
        ("delete partitionname=gpu", "delete_partition partitionname=gpu"),
    ):
        assert scontrol.says(words, uid=USER_ID) == [f"{ending}: Invalid user id"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("bogus", ["invalid keyword: bogus"]),
        ("sh", ["invalid keyword: sh"]),
        ("errnumstr xx", ["numeric arguments required for keyword:errnumstr"]),
        ("pidinfo abc", ["Failed to locate job for requested pid"]),
        ("setdebug nosuch", ["invalid debug level: nosuch"]),
        (
            "setdebugflags nosuch",
            ["invalid debug flag: nosuch", "Usage: setdebugflags [+|-]NAME"],
        ),
        ("takeover", ["takeover: no backup controller defined"]),
        ("top", ["too few arguments for keyword:top"]),
        ("notify 5", ["too few arguments for keyword:notify"]),
        ("notify 99 hello", ["job notify failure: Invalid job id specified"]),
        ("fsdampeningfactor 0", ["invalid dampening factor: 0"]),
        ("write nosuch", ["invalid write argument:nosuch"]),
        (
            "create reservation nodes=n1 duration=5 users=a",
            ["scontrol: error: A start time must be given.  No reservation created."],
        ),
        ("delete reservation=r", ["delete_reservation r: Requested reservation is invalid"]),
    ],
)
def test_what_cannot_be_is_told_in_slurms_words(
    scontrol: Asking, words: str, says: list[str]
) -> None:
    """Mistyped keywords and values."""
    assert scontrol.says(words) == says


def test_settings_of_the_log_are_kept(scontrol: Asking) -> None:
    """An administrator looks closer for a while; a user may not."""
    assert scontrol.says("setdebug 5") == []
    assert scontrol.says("setdebugflags +backfill +Steps") == []
    assert scontrol.says("setdebugflags -Backfill") == []
    shown = scontrol.shows("show config")
    assert "SlurmctldDebug          = debug\n" in shown
    assert "DebugFlags              = Steps\n" in shown
    assert scontrol.says("setdebug 3", uid=USER_ID) == [
        "slurm_set_debug_level error: Permission denied"
    ]


def test_the_configuration_is_shown_in_full(scontrol: Asking) -> None:
    """Tools look for what no file says as well."""
    shown = scontrol.shows("show config")
    for name in ("MaxArraySize", "SLURM_VERSION", "PriorityWeightAge", "MessageTimeout"):
        assert f"\n{name} " in shown
    assert len(shown.splitlines()) > 180


def test_keywords_are_typed_one_after_the_other(
    scontrol: Asking, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Someone keeps scontrol open; what fails does not end it."""
    typed = "version\noneliner\nshow part gpu\n!!\nbogus\n\nquit\nversion\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert carry_out(scontrol, []) == 1
    written = capsys.readouterr()
    lines = written.out.splitlines()
    assert lines[0] == "scontrol: version"
    assert [line for line in lines if line.startswith("scontrol:")] == [
        "scontrol: version",
        "scontrol: oneliner",
        "scontrol: show part gpu",
        "scontrol: !!",
        "scontrol: bogus",
        "scontrol: ",
        "scontrol: quit",
    ]
    assert sum(line.startswith("PartitionName=gpu AllowGroups=ALL") for line in lines) == 2
    assert written.err == "invalid keyword: bogus\n"


def test_the_end_of_what_is_typed_ends_it(
    scontrol: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is typed at all."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert carry_out(scontrol, []) == 0
