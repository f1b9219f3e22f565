"""The crash table of an agent: what follows when it, a supervisor or the machine dies, and when.

    died, and when                                             what follows
    ---------------------------------------------------------  -----------------------------------
    agent, after the manifest, before a supervisor             launched when it is ordered again
      ... and nobody orders it any more                        void
      ... and it was cancelled meanwhile                       void
    agent, while the script runs                               the script goes on; its end is told
    agent, while the script runs, which ends meanwhile         its end is told, with its age
    agent, after a report was sent, before its answer          the report again, under its number
    supervisor, before it took the claim                       void
    supervisor, while the script runs                          what is left is killed; told dead
      ... and the agent too                                    the next agent does the same
    warm process                                               scripts go on; the next ones begin
    machine, after the manifest                                void
    machine, while the script ran                              told dead
    machine, after the end was written down                    told ended, at least the boot's age

Every agent here is a real process, and so is every supervisor; the leader is a real RPC server.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spur.agent.manifest import (
    CLAIM,
    LOCK,
    OUTCOME,
    AttemptName,
    Manifest,
    Outcome,
    Site,
    encode_outcome,
)
from spur.agent.spool import Spool
from spur.testing.agentprocess import AgentProcess
from spur.testing.leader import CLUSTER_ID, Leader
from spur.testing.orders import kill_order, kill_step_order, order_for, step_order
from spur.testing.small_disk import small_disk
from spur.values.states import NodeShareState
from spur.wire.agents import LaunchOrder
from spur.wire.runs import ReportRun

ENDED, VOID, DEAD = NodeShareState.ENDED, NodeShareState.VOID, NodeShareState.DEAD
LAUNCHED = NodeShareState.LAUNCHED
PATIENCE_S = 20.0


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leader]:
    """Yield a leader that listens."""
    with Leader(tmp_path) as made:
        yield made


@pytest.fixture
def agent(tmp_path: Path, leader: Leader) -> Iterator[AgentProcess]:
    """Yield the agent of node n1, not started; what it started is ended afterwards."""
    made = AgentProcess(tmp_path / "a")
    (tmp_path / "boot").write_text("boot-1\n")
    settings = (
        f'cluster_id = "{CLUSTER_ID.hex()}"\ncontrollers = ["{leader.address}"]\n'
        f'nodes = ["n1"]\nattend_ms = 500\nboot_id_file = "{tmp_path / "boot"}"\n'
    )
    made.configure(settings)
    yield made
    made.kill()
    for lock in made.spool.glob(f"*/{LOCK}"):
        holder = holder_of(lock)
        if holder:
            os.kill(holder, signal.SIGKILL)
    for pid in alive_in(tmp_path):
        os.kill(pid, signal.SIGKILL)


def holder_of(lock: Path) -> int:
    """Return the process that wrote itself into a lock file, if it is a supervisor that lives."""
    text = lock.read_text().strip()
    if not text.isdigit():
        return 0
    try:
        words = Path(f"/proc/{text}/cmdline").read_bytes()
    except OSError:
        return 0
    return int(text) if b"spur.agent.forker" in words else 0


def alive_in(directory: Path) -> list[int]:
    """Return the processes whose working directory is this one."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/cwd") == str(directory):
                found.append(int(entry))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def left_in(directory: Path) -> list[int]:
    """Return the processes that stay: a supervisor may still be on its way out."""
    until_s = time.monotonic() + 2
    while (found := alive_in(directory)) and time.monotonic() < until_s:
        time.sleep(0.02)
    return found


def open_below(directory: Path) -> list[str]:
    """Return what processes hold open or work in below a directory."""
    found = []
    for link in (*Path("/proc").glob("[0-9]*/cwd"), *Path("/proc").glob("[0-9]*/fd/*")):
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith(f"{directory}/"):
            found.append(target)
    return found


def becomes(holds: Callable[[], object]) -> None:
    """Wait until something holds that another process does."""
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until_s, "it did not become so"
        time.sleep(0.01)


def job(tmp_path: Path, job_id: int, lines: str, *, attempt: int = 1) -> LaunchOrder:
    """Return an order for a script that notes its start in a file of its own."""
    script = f"#!/bin/sh\necho began >> {job_id}.notes\n{lines}\necho ended >> {job_id}.notes\n"
    return order_for(
        "n1",
        job_id,
        attempt=attempt,
        script=script.encode(),
        directory=os.fsencode(tmp_path),
        stdout=b"/dev/null",
    )


def notes(tmp_path: Path, job_id: int) -> list[str]:
    """Return what a job has noted."""
    path = tmp_path / f"{job_id}.notes"
    return path.read_text().split() if path.exists() else []


def begun(tmp_path: Path, leader: Leader, job_id: int, lines: str = "sleep 30") -> None:
    """Have a job launched, and wait until it has been told so."""
    leader.tell(job(tmp_path, job_id, lines))
    leader.wait_for(job_id, LAUNCHED)
    becomes(lambda: notes(tmp_path, job_id))


def left(agent: AgentProcess, order: LaunchOrder, boot: str = "boot-1") -> Path:
    """Leave a manifest behind as an agent does that dies right after; return its directory."""
    name = AttemptName(order.node, order.job_id, order.run, None, order.attempt)
    spool = Spool(agent.spool)
    spool.prepare(name, Manifest(boot, 1, 1, 10, order, Site("", "", "", "")))
    spool.close()
    return spool.directory(name)


def supervisor_of(agent: AgentProcess, job_id: int) -> int:
    """Return the process that supervises a job."""
    [lock] = agent.spool.glob(f"{job_id}.*.run.*/{LOCK}")
    return int(lock.read_text())


def test_script_runs_and_its_end_is_told(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """Nothing dies: the node registers, runs what it is told, and is told twice in vain."""
    agent.start()
    order = job(tmp_path, 5, "exit 3")
    leader.tell(order, order)
    report = leader.wait_for(5, ENDED)
    assert isinstance(report, ReportRun)
    assert (report.exit_code, report.signal) == (3, 0)
    leader.tell(order, owed=False)
    leader.wait_until(lambda: leader.states_of(5).count("ENDED") == 2)
    assert notes(tmp_path, 5) == ["began"]
    [registered] = leader.registered
    assert (registered.node, registered.boot_id) == ("n1", b"boot-1")
    assert agent.stop() == 0


@pytest.mark.parametrize("then", ["again", "never", "cancelled"])
def test_agent_dies_after_the_manifest(
    tmp_path: Path, leader: Leader, agent: AgentProcess, then: str
) -> None:
    """The next agent finds an order that nobody acted on: it asks the leader before it does."""
    order = job(tmp_path, 5, "true")
    left(agent, order)
    if then == "again":
        leader.tell(order)
    elif then == "cancelled":
        leader.tell(kill_order("n1", 5))
    else:
        leader.tell(kill_order("n1", 6))
    agent.start()
    if then == "again":
        leader.wait_for(5, ENDED)
        assert notes(tmp_path, 5) == ["began", "ended"]
    else:
        leader.wait_for(5, VOID)
        assert notes(tmp_path, 5) == []


def test_agent_dies_while_a_script_runs(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """The script goes on without an agent; the next one lists it, and tells its end."""
    agent.start()
    begun(tmp_path, leader, 5, "until test -e go; do sleep 0.02; done")
    agent.kill()
    agent.start()
    leader.wait_until(lambda: len(leader.sessions) == 2)
    (tmp_path / "go").touch()
    report = leader.wait_for(5, ENDED)
    assert (report.exit_code, report.signal) == (0, 0)
    assert notes(tmp_path, 5) == ["began", "ended"]


def test_script_ends_while_no_agent_lives(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """An agent is started again a while after the script ended: the end is dated by its age."""
    agent.start()
    begun(tmp_path, leader, 5, "until test -e go; do sleep 0.02; done")
    agent.kill()
    (tmp_path / "go").touch()
    becomes(lambda: list(agent.spool.glob(f"5.*/{OUTCOME}")))
    time.sleep(0.5)
    agent.start()
    report = leader.wait_for(5, ENDED)
    assert 0.5e9 < report.age_ns < 20e9
    assert notes(tmp_path, 5) == ["began", "ended"]


def test_agent_dies_before_its_report_is_answered(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """A report was heard and its answer lost with the agent: it comes again as what it was."""
    leader.deaf = True
    agent.start()
    leader.tell(job(tmp_path, 5, "true"))
    first = leader.wait_for(5, ENDED)
    agent.kill()
    leader.deaf = False
    agent.start()
    leader.wait_until(lambda: leader.repeated > 0)
    leader.tell(job(tmp_path, 6, "true"))
    after = leader.wait_for(6, ENDED)
    assert leader.states_of(5) == ["ENDED"]
    assert (after.outbox, after.number) == (first.outbox, first.number + 1)


def test_supervisor_dies_before_it_took_the_claim(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """A step waits to be told what it executes when its supervisor is killed: it never began."""
    agent.start()
    begun(tmp_path, leader, 5)
    leader.tell(step_order("n1", 5, 0, uid=os.geteuid()))
    locks = agent.spool / f"5.0.0.1.n1/{LOCK}"
    becomes(lambda: locks.exists() and locks.read_text().strip())
    os.kill(int(locks.read_text()), signal.SIGKILL)
    leader.wait_for(5, VOID)
    assert leader.states_of(5) == ["LAUNCHED", "VOID"]


def test_supervisor_of_a_step_that_is_void_ends(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """A step waits to be told what it executes when it is cancelled: its supervisor goes."""
    agent.start()
    begun(tmp_path, leader, 5)
    leader.tell(step_order("n1", 5, 0, uid=os.geteuid()))
    lock = agent.spool / f"5.0.0.1.n1/{LOCK}"
    becomes(lambda: lock.exists() and holder_of(lock))
    leader.tell(kill_step_order("n1", 5, 0))
    leader.wait_for(5, VOID)
    becomes(lambda: not holder_of(lock))


@pytest.mark.parametrize("is_alone", [True, False])
def test_supervisor_dies_while_its_script_runs(
    tmp_path: Path, leader: Leader, agent: AgentProcess, is_alone: bool
) -> None:
    """A supervisor is killed, with the agent or without: nothing of the job lives on."""
    agent.start()
    begun(tmp_path, leader, 5)
    if not is_alone:
        agent.kill()
    os.kill(supervisor_of(agent, 5), signal.SIGKILL)
    if not is_alone:
        agent.start()
    leader.wait_for(5, DEAD)
    assert left_in(tmp_path) == []
    assert notes(tmp_path, 5) == ["began"]


def test_warm_process_dies(tmp_path: Path, leader: Leader, agent: AgentProcess) -> None:
    """What supervisors are forked from is killed: they stay, and others can be forked."""
    agent.start()
    begun(tmp_path, leader, 5, "until test -e go; do sleep 0.02; done")
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    becomes(lambda: "the warm process ended" in agent.words())
    leader.tell(job(tmp_path, 6, "true"))
    leader.wait_for(6, ENDED)
    (tmp_path / "go").touch()
    assert leader.wait_for(5, ENDED).signal == 0
    assert notes(tmp_path, 5) == ["began", "ended"]


def test_machine_boots(tmp_path: Path, leader: Leader, agent: AgentProcess) -> None:
    """The machine lost its power: before a launch, while a script ran, after an end was written."""
    left(agent, job(tmp_path, 5, "true"), boot="boot-0")
    (left(agent, job(tmp_path, 6, "true"), boot="boot-0") / CLAIM).write_bytes(b"run")
    ended = left(agent, job(tmp_path, 7, "true"), boot="boot-0")
    (ended / CLAIM).write_bytes(b"run")
    outcome = Outcome("boot-0", False, 4, 0, False, 1 << 60)
    (ended / OUTCOME).write_bytes(encode_outcome(outcome))
    leader.tell(job(tmp_path, 5, "true"), kill_order("n1", 6), kill_order("n1", 7))
    agent.start()
    leader.wait_for(5, VOID)
    leader.wait_for(6, DEAD)
    report = leader.wait_for(7, ENDED)
    assert report.exit_code == 4
    assert report.age_ns > 0
    assert [notes(tmp_path, number) for number in (5, 6, 7)] == [[], [], []]


def test_killed_job_never_begins(tmp_path: Path, leader: Leader, agent: AgentProcess) -> None:
    """A cancellation is quicker than the launch, which comes late, and once more to a new agent."""
    agent.start()
    leader.tell(kill_order("n1", 5))
    leader.wait_for(5, VOID)
    order = job(tmp_path, 5, "true")
    leader.tell(order, owed=False)
    leader.wait_until(lambda: leader.states_of(5).count("VOID") == 2)
    agent.kill()
    agent.start()
    leader.tell(order, kill_order("n1", 6), owed=False)
    leader.wait_for(6, VOID)
    assert notes(tmp_path, 5) == []


def test_running_job_is_killed(tmp_path: Path, leader: Leader, agent: AgentProcess) -> None:
    """A job is cancelled as it runs, and its script takes no notice of SIGTERM."""
    agent.start()
    begun(tmp_path, leader, 5, "trap '' TERM; while :; do sleep 0.05; done")
    leader.tell(kill_order("n1", 5))
    report = leader.wait_for(5, ENDED)
    assert report.signal == signal.SIGKILL
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("is_heard_at_once", [True, False])
def test_job_that_the_cluster_does_not_know_is_killed(
    tmp_path: Path, leader: Leader, agent: AgentProcess, is_heard_at_once: bool
) -> None:
    """The node was given up meanwhile, and its job runs elsewhere: here it must end.

    So it must when the first answer that says so is lost together with the agent.
    """
    agent.start()
    begun(tmp_path, leader, 5)
    agent.kill()
    leader.owed.clear()
    if not is_heard_at_once:
        leader.deaf = True
        agent.start()
        leader.wait_until(lambda: leader.repeated > 0)
        agent.kill()
        leader.deaf = False
    agent.start()
    leader.wait_for(5, ENDED)
    assert left_in(tmp_path) == []
    assert "not known to the cluster; it is killed" in agent.words()


def test_next_attempt_waits_for_the_end_of_the_last(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """A job is launched anew on a node where, unknown to the cluster, it still runs."""
    agent.start()
    begun(tmp_path, leader, 5)
    leader.tell(job(tmp_path, 5, "exit 0", attempt=2))
    leader.wait_until(lambda: leader.states_of(5).count("ENDED") == 2)
    first, second = [report for report in leader.reports if report.state is ENDED]
    assert (first.attempt, second.attempt) == (1, 2)
    assert notes(tmp_path, 5) == ["began", "began"]


def test_orders_of_a_lower_term_are_not_obeyed(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """A leader that was deposed does not know it yet; the agent does, a new process too."""
    leader.term = 7
    agent.start()
    leader.tell(job(tmp_path, 5, "true"))
    leader.wait_for(5, ENDED)
    agent.kill()
    leader.term = 6
    agent.start()
    leader.tell(job(tmp_path, 6, "true"))
    becomes(lambda: "orders of term 6 came after those of term 7" in agent.words())
    assert leader.states_of(6) == []
    assert notes(tmp_path, 6) == []


def test_a_launch_that_cannot_be_is_void_and_said(leader: Leader, agent: AgentProcess) -> None:
    """The script of a job was lost on every controller."""
    agent.start()
    leader.tell(order_for("n1", 5, script=b"", why_not="nobody can read its script any more"))
    leader.wait_for(5, VOID)
    assert "attempt 1): nobody can read its script any more" in agent.words()


def test_full_disk_is_said_and_launches_nothing(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """The spool has less room than is asked for: the job is void here, and all are told why."""
    settings = agent.directory / "spurd.toml"
    settings.write_text(settings.read_text() + f"disk_mark_mib = {1 << 40}\n")
    agent.start()
    leader.tell(job(tmp_path, 5, "true"))
    leader.wait_for(5, VOID)
    assert f"MiB are free, below {1 << 40}; nothing is launched" in agent.words()
    assert "MiB are free, below" in leader.registered[0].fault
    assert notes(tmp_path, 5) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: mounts a file system")
def test_a_spool_that_fills_up_is_told_before_the_launch_is_void_and_that_it_has_room_again(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """The agent waits long for orders when its spool fills up, and the next one is a launch."""
    with small_disk(tmp_path / "small", 8) as disk:
        settings = agent.directory / "spurd.toml"
        text = settings.read_text().replace("attend_ms = 500", "attend_ms = 2000")
        settings.write_text(f'{text}disk_mark_mib = 4\nspool = "{disk.directory / "spool"}"\n')
        agent.start()
        leader.wait_until(lambda: leader.registered and leader.sessions)
        disk.fill(2)
        leader.tell(job(tmp_path, 5, "true"))
        leader.wait_for(5, VOID)
        first, second = leader.registered
        assert first.fault == ""
        assert second.fault == f"spool of {os.uname().nodename}: 2 MiB are free, below 4"
        disk.clear()
        leader.wait_until(lambda: leader.registered[-1].fault == "")
        assert len(leader.registered) == 3
        leader.tell(job(tmp_path, 6, "true"))
        leader.wait_for(6, ENDED)
        agent.kill()
        becomes(lambda: not open_below(disk.directory))
    assert (notes(tmp_path, 5), notes(tmp_path, 6)) == ([], ["began", "ended"])


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: mounts a file system")
def test_jobs_are_void_on_a_node_whose_disk_is_full(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """Not a byte is left for a manifest; later there is room again, and the next job runs."""
    with small_disk(tmp_path / "small", 4) as disk:
        settings = agent.directory / "spurd.toml"
        more = f'disk_mark_mib = 0\nspool = "{disk.directory / "spool"}"\n'
        settings.write_text(settings.read_text() + more)
        agent.start()
        leader.wait_until(lambda: leader.sessions)
        disk.fill(0)
        big = job(tmp_path, 5, "# " + "x" * 100_000)
        leader.tell(big)
        leader.wait_for(5, VOID)
        assert "No space left on device" in agent.words()
        disk.clear()
        leader.tell(job(tmp_path, 6, "true"))
        leader.wait_for(6, ENDED)
        agent.kill()
        becomes(lambda: not open_below(disk.directory))
    assert (notes(tmp_path, 5), notes(tmp_path, 6)) == ([], ["began", "ended"])


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: mounts a file system")
def test_agent_that_starts_on_a_full_disk_begins_when_there_is_room(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """Its host came up with a full disk: it says so and waits, and nobody has to start it again."""
    with small_disk(tmp_path / "small", 4) as disk:
        settings = agent.directory / "spurd.toml"
        more = f'disk_mark_mib = 0\nspool = "{disk.directory / "spool"}"\n'
        settings.write_text(settings.read_text() + more)
        disk.fill(0)
        agent.start()
        becomes(lambda: "No space left on device: it begins when there is room" in agent.words())
        assert leader.registered == []
        disk.clear()
        leader.tell(job(tmp_path, 6, "true"))
        leader.wait_for(6, ENDED)
        agent.kill()
        becomes(lambda: not open_below(disk.directory))
    assert notes(tmp_path, 6) == ["began", "ended"]


def test_no_job_runs_twice_or_is_lost_while_agents_die(
    tmp_path: Path, leader: Leader, agent: AgentProcess
) -> None:
    """Thirty short jobs run while the agent is killed again and again."""
    numbers = range(100, 130)
    for number in numbers:
        leader.tell(job(tmp_path, number, "sleep 0.2"))
    for life in range(6):
        agent.start()
        time.sleep(0.25 + 0.07 * life)
        agent.kill()
    agent.start()
    for number in numbers:
        leader.wait_for(number, ENDED)
    assert {tuple(notes(tmp_path, number)) for number in numbers} == {("began", "ended")}
    assert {tuple(leader.states_of(number)[-1:]) for number in numbers} == {("ENDED",)}
