"""Batch scripts under real supervisors: what runs, as whom, where its output goes, how it ends."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spur.agent.control import Kill, Signal, Steer
from spur.agent.manifest import CLAIM, OUTCOME, Outcome
from spur.agent.processes import kill_leftovers
from spur.testing.attempts import SPEC, Life, Nursery, launch_order
from spur.values.ids import JobId, NodeName
from spur.values.tres import NodeShare, cpu_set
from spur.wire.agents import LaunchOrder

PRIVATE_KIB_MAX = 8 * 1024

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users, which takes root")


def with_nursery(spool: Path, story: Callable[[Nursery], Awaitable[None]]) -> None:
    """Tell a story with a warm process of its own."""

    async def tell() -> None:
        async with Nursery(spool) as nursery:
            await asyncio.wait_for(story(nursery), 60)

    asyncio.run(tell())


def run(tmp_path: Path, order: LaunchOrder, host_name: str = "") -> Outcome:
    """Run one attempt to its end."""
    found: list[Outcome] = []

    async def story(nursery: Nursery) -> None:
        found.append(await nursery.run(order, host_name=host_name))

    with_nursery(tmp_path / "spool", story)
    return found[0]


def here(tmp_path: Path, name: str = "work") -> bytes:
    """Return a working directory."""
    (tmp_path / name).mkdir(exist_ok=True)
    return os.fsencode(tmp_path / name)


async def becomes(holds: Callable[[], bool]) -> None:
    """Wait until something holds that another process does."""
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


async def appears(path: Path, text: str) -> None:
    """Wait until a file holds a text."""
    await becomes(lambda: path.exists() and text in path.read_text())


def test_a_script_runs_with_its_arguments_and_is_told_of_itself(tmp_path: Path) -> None:
    """A newcomer's first job: its output is beside the script, its exit code is kept."""
    script = b'#!/bin/bash\necho "$# [$1] [$2]"; echo "${0##*/} $SLURM_JOB_ID $SLURM_TASK_PID $$"\n'
    script += b"pwd; echo err >&2; exit 3\n"
    work = here(tmp_path)
    outcome = run(tmp_path, launch_order(script=script, directory=work, arguments=(b"a b", b"")))
    assert (outcome.exit_code, outcome.signal, outcome.void) == (3, 0, False)
    assert outcome.ended_boot_ns > 0
    first, second, third, fourth = (tmp_path / "work/slurm-5.out").read_text().splitlines()
    assert first == "2 [a b] []"
    name, job, told, pid = second.split()
    assert (name, job) == ("slurm_script", "5")
    assert told == pid
    assert third == os.fsdecode(work)
    assert fourth == "err"


def test_a_script_has_its_three_files_and_none_of_ours(tmp_path: Path) -> None:
    """A user looks for a way to speak to the agent through what the script was born with."""
    script = b"#!/bin/sh\nexec ls /proc/self/fd\n"
    run(tmp_path, launch_order(script=script, directory=here(tmp_path)))
    its_own_directory = "3"
    assert (tmp_path / "work/slurm-5.out").read_text().split() == ["0", "1", "2", its_own_directory]


def test_a_signal_is_told_from_an_exit(tmp_path: Path) -> None:
    """A program crashes: the record says by which signal."""
    outcome = run(
        tmp_path, launch_order(script=b"#!/bin/sh\nkill -SEGV $$\n", directory=here(tmp_path))
    )
    assert (outcome.exit_code, outcome.signal) == (0, signal.SIGSEGV)


def test_output_files_are_named_cut_and_appended_as_asked(tmp_path: Path) -> None:
    """Output goes into directories that are not there yet; old output is cut or kept as asked."""
    work = here(tmp_path)
    script = b"#!/bin/sh\necho out; echo err >&2\n"
    old = tmp_path / "work/old.txt"
    old.write_text("old\n")
    run(
        tmp_path,
        launch_order(script=script, directory=work, stdout=b"logs/%x/%j.out", stderr=b"old.txt"),
    )
    assert (tmp_path / "work/logs/job/5.out").read_text() == "out\n"
    assert old.read_text() == "err\n"

    order = launch_order(
        script=script, directory=work, stdout=b"old.txt", options=(("open-mode", b"append"),)
    )
    run(tmp_path / "again", order)
    assert old.read_text() == "err\nout\nerr\n"


def test_input_is_a_file_or_nothing(tmp_path: Path) -> None:
    """A script reads its input; without one it meets its end at once."""
    work = here(tmp_path)
    (tmp_path / "work/in-5").write_text("from a file\n")
    run(tmp_path, launch_order(script=b"#!/bin/sh\ncat\n", directory=work, stdin=b"in-%j"))
    assert (tmp_path / "work/slurm-5.out").read_text() == "from a file\n"
    run(tmp_path / "b", launch_order(script=b"#!/bin/sh\ncat\n", directory=work, stdout=b"x"))
    assert (tmp_path / "work/x").read_text() == ""


@pytest.mark.parametrize(
    "names",
    [
        {"stdout": b"/proc/version/x"},
        {"stdout": b"/"},
        {"stderr": b"/proc/nowhere/x"},
        {"stdin": b"nosuch"},
        {"directory": b"/vanished"},
    ],
    ids=["under-a-file", "a-directory", "errors", "input", "vanished"],
)
def test_files_that_cannot_be_opened_fail_the_launch(tmp_path: Path, names: dict[str, Any]) -> None:
    """A path in a script is wrong: the job fails as in Slurm, 0:53, and nothing of it runs."""
    proof = tmp_path / "ran"
    script = b"#!/bin/sh\ntouch %s\n" % os.fsencode(proof)
    outcome = run(
        tmp_path, launch_order(**{"script": script, "directory": here(tmp_path), **names})
    )
    assert (outcome.exit_code, outcome.signal, outcome.void) == (0, 53, False)
    assert "a file of the job" in outcome.why
    assert not proof.exists()
    assert not Path("/vanished").exists()


def test_a_working_directory_that_vanished_is_replaced(tmp_path: Path) -> None:
    """Somebody removed the directory; the output goes elsewhere by an absolute path.

    It is said twice, as Slurm says it.
    """
    out = tmp_path / "out.txt"
    order = launch_order(script=b"#!/bin/sh\npwd\n", directory=b"/vanished", stdout=bytes(out))
    assert run(tmp_path, order).exit_code == 0
    sentence = (
        "slurmstepd: error: couldn't chdir to `/vanished': No such file or directory: "
        "going to /tmp instead\n"
    )
    assert out.read_text() == f"{sentence}{sentence}/tmp\n"


@pytest.mark.parametrize(
    ("script", "sentence", "code"),
    [
        (b"#!/nosuch/sh\n", "execve(): bad interpreter(/nosuch/sh): No such file or directory", 2),
        (b"#!/tmp\n", "execve(): {script}: Permission denied", 13),
    ],
)
def test_a_script_that_cannot_be_executed_says_why(
    tmp_path: Path, script: bytes, sentence: str, code: int
) -> None:
    """The interpreter of the first line is not on this node."""
    outcome = run(tmp_path, launch_order(script=script, directory=here(tmp_path)), host_name="n1")
    assert (outcome.exit_code, outcome.signal) == (code, 0)
    path = tmp_path / "spool/5.0.run.1.n1/slurm_script"
    text = (tmp_path / "work/slurm-5.out").read_text()
    assert text == f"slurmstepd-n1: error: {sentence.format(script=path)}\n"


def test_umask_limits_and_temporary_directory_are_the_submitters(tmp_path: Path) -> None:
    """What somebody set in their shell before sbatch holds in the job."""
    temporary = tmp_path / "tmp-of-job"
    order = launch_order(
        script=b'#!/bin/bash\numask; ulimit -S -n; ls -ld "$TMPDIR" | cut -c1-10\nenv\n',
        directory=here(tmp_path),
        variables={
            b"SLURM_UMASK": b"0027",
            b"SLURM_RLIMIT_NOFILE": b"123",
            b"TMPDIR": bytes(temporary),
        },
    )
    assert run(tmp_path, order).exit_code == 0
    output = tmp_path / "work/slurm-5.out"
    lines = output.read_text().splitlines()
    assert lines[:3] == ["0027", "123", "drwx------"]
    assert not any(line.startswith(("SLURM_UMASK=", "SLURM_RLIMIT")) for line in lines)
    assert output.stat().st_mode & 0o777 == 0o640


def test_nothing_that_a_script_starts_outlives_it(tmp_path: Path) -> None:
    """A script leaves a daemon behind, in a session of its own, deaf to SIGTERM."""
    script = b"""#!/bin/bash
setsid bash -c 'trap "" TERM HUP; echo $$ > daemon; sleep 1000' &
while [ ! -s daemon ]; do sleep 0.01; done
"""
    assert run(tmp_path, launch_order(script=script, directory=here(tmp_path))).exit_code == 0
    pid = int((tmp_path / "work/daemon").read_text())
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ("CANCELLED", ""),
        ("TIMEOUT", " DUE TO TIME LIMIT"),
        ("PREEMPTED", " DUE TO PREEMPTION"),
        ("REQUEUED", " DUE TO JOB REQUEUE"),
        ("NODE_FAIL", " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"),
    ],
)
def test_a_killed_job_is_told_why(tmp_path: Path, state: str, cause: str) -> None:
    """A job runs into its limit, or is cancelled: the last line of its output says so."""
    work = here(tmp_path)
    out = tmp_path / "work/slurm-5.out"

    async def story(nursery: Nursery) -> None:
        script = b"#!/bin/bash\necho up; exec sleep 1000\n"
        life = await nursery.begin(launch_order(script=script, directory=work), host_name="n1")
        await appears(out, "up")
        assert life.tell(Kill(state=state, kill_wait_s=30))
        await life.gone.wait()
        outcome = life.outcome()
        assert (outcome.exit_code, outcome.signal) == (0, signal.SIGTERM)

    with_nursery(tmp_path / "spool", story)
    _, sentence = out.read_text().splitlines()
    assert sentence.startswith("slurmstepd-n1: error: *** JOB 5 ON n1 CANCELLED AT 2")
    assert sentence.endswith(f"{cause} ***")


def test_a_job_that_hears_the_warning_has_its_time_to_clean_up(tmp_path: Path) -> None:
    """SIGTERM reaches the script and not its children; who does not go is killed after the wait."""
    work = here(tmp_path)
    out = tmp_path / "work/slurm-5.out"
    script = b"""#!/bin/bash
trap 'echo cleaned' TERM
bash -c 'trap "echo child heard" TERM; echo up; while true; do sleep 0.05; done' &
while true; do wait; sleep 0.05; done
"""

    async def story(nursery: Nursery) -> None:
        life = await nursery.begin(launch_order(script=script, directory=work))
        await appears(out, "up")
        life.tell(Kill(state="CANCELLED", kill_wait_s=1))
        await appears(out, "cleaned")
        await life.gone.wait()
        assert life.outcome().signal == signal.SIGKILL

    with_nursery(tmp_path / "spool", story)
    assert "child heard" not in out.read_text()


def test_signals_reach_the_script_or_all_of_it_once(tmp_path: Path) -> None:
    """Of scancel --batch and scancel --full; the order is repeated by a new leader."""
    work = here(tmp_path)
    out = tmp_path / "work/slurm-5.out"
    script = b"""#!/bin/bash
trap 'echo script' USR1
bash -c 'trap "echo child" USR1; echo up; while true; do sleep 0.02; done' &
while true; do wait; sleep 0.02; done
"""

    async def story(nursery: Nursery) -> None:
        life = await nursery.begin(launch_order(script=script, directory=work))
        await appears(out, "up")
        life.tell(Signal(signal=signal.SIGUSR1, mains_only=True, index=7))
        await appears(out, "script")
        life.tell(Signal(signal=signal.SIGUSR1, mains_only=False, index=8))
        await appears(out, "child")
        life.tell(Signal(signal=signal.SIGUSR1, mains_only=True, index=7))
        life.tell(Kill(state="CANCELLED", kill_wait_s=0))
        await life.gone.wait()

    with_nursery(tmp_path / "spool", story)
    assert out.read_text().count("script\n") == 2
    assert out.read_text().count("child\n") == 1


def test_a_script_is_warned_before_its_limit(tmp_path: Path) -> None:
    """A script that catches the signal it asked for saves its work and exits as it likes."""
    order = launch_order(
        script=b"#!/bin/bash\ntrap 'echo got USR1; exit 4' USR1\nwhile :; do sleep 0.02; done\n",
        directory=here(tmp_path),
        options=(("signal", b"B:USR1@50"),),
        limit_ns=time.time_ns() + 50_500_000_000,
    )
    assert run(tmp_path, order).exit_code == 4
    assert (tmp_path / "work/slurm-5.out").read_text() == "got USR1\n"


def order_without_script(kind: str) -> LaunchOrder:
    """Return the order for the second node of a job, or for an interactive allocation."""
    if kind == "interactive":
        return launch_order(spec=msgspec.structs.replace(SPEC, batch=False))
    names = (NodeName("n1"), NodeName("n2"))
    shares = tuple(NodeShare(name, 1, 500, 0, cpu_set(1), False) for name in names)
    return launch_order(node=names[1], shares=shares)


@pytest.mark.parametrize("kind", ["second node", "interactive"])
def test_a_place_is_held_until_the_job_ends(tmp_path: Path, kind: str) -> None:
    """A node of a job on which no script runs; the controller ends it with the job."""

    async def story(nursery: Nursery) -> None:
        life = await nursery.begin(order_without_script(kind))
        await life.claimed.wait()
        assert not life.tell(Kill(state="COMPLETED", kill_wait_s=30))
        await life.gone.wait()
        assert (life.outcome().exit_code, life.outcome().signal) == (0, 0)

    with_nursery(tmp_path / "spool", story)


def test_an_attempt_that_was_voided_never_runs(tmp_path: Path) -> None:
    """The agent was told to forget the job just before its supervisor came to the claim."""
    proof = tmp_path / "ran"
    order = launch_order(script=b"#!/bin/sh\ntouch %s\n" % os.fsencode(proof))
    directory = tmp_path / "spool/5.0.run.1.n1"
    directory.mkdir(parents=True)
    (directory / CLAIM).write_bytes(b"void in 0")

    async def story(nursery: Nursery) -> None:
        life = await nursery.begin(order)
        await life.gone.wait()
        assert life.status == 0

    with_nursery(tmp_path / "spool", story)
    assert not proof.exists()
    assert not (directory / OUTCOME).exists()


def test_an_unknown_user_voids_the_attempt(tmp_path: Path) -> None:
    """A job's user was removed from this node, or the agent is an ordinary user's."""
    uid = next(uid for uid in range(60_000, 61_000) if not _exists(uid))
    outcome = run(tmp_path, launch_order(uid=uid))
    assert outcome.void
    assert str(uid) in outcome.why


def _exists(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def test_a_job_survives_the_warm_process(tmp_path: Path) -> None:
    """Agent and warm process are killed; the job goes on and its outcome is there afterwards."""
    work = here(tmp_path)
    script = b"#!/bin/bash\necho up; while [ ! -e go ]; do sleep 0.01; done; exit 7\n"
    lives: list[Life] = []

    async def story(nursery: Nursery) -> None:
        lives.append(await nursery.begin(launch_order(script=script, directory=work)))
        await appears(tmp_path / "work/slurm-5.out", "up")
        os.kill(nursery.warm.pid, signal.SIGKILL)
        (tmp_path / "work/go").touch()
        await becomes((lives[0].directory / OUTCOME).exists)

    with_nursery(tmp_path / "spool", story)
    assert lives[0].outcome().exit_code == 7


def test_what_a_dead_supervisor_leaves_is_found_and_killed(tmp_path: Path) -> None:
    """A supervisor is killed: its script goes with it, and the rest is known by its variables."""
    work = here(tmp_path)
    script = b"#!/bin/bash\nsetsid sleep 1000 &\necho up; sleep 1000\n"
    job = JobId(700_000 + os.getpid())

    async def story(nursery: Nursery) -> None:
        order = launch_order(script=script, directory=work, job_id=job, stdout=b"out")
        life = await nursery.begin(order)
        await appears(tmp_path / "work/out", "up")
        os.kill(life.pid, signal.SIGKILL)
        await life.gone.wait()
        assert not (life.directory / OUTCOME).exists()
        assert kill_leftovers(job, "n1", "/relay/of/another/cluster") == 0
        assert kill_leftovers(job, "n1", "/relay") >= 1
        assert kill_leftovers(job, "n2", "/relay") == 0

    with_nursery(tmp_path / "spool", story)


def private_kib(pid: int) -> int:
    """Return the memory that a process shares with nobody."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {row.split(":")[0]: int(row.split()[1]) for row in rows}
    return kib["Private_Clean"] + kib["Private_Dirty"]


def test_the_private_memory_of_a_supervisor_is_small(tmp_path: Path) -> None:
    """A node runs hundreds of jobs: their supervisors must not eat its memory."""
    work = here(tmp_path)
    script = b"#!/bin/bash\necho up; exec sleep 1000\n# " + b"x" * 100_000

    async def story(nursery: Nursery) -> None:
        variables = {b"V%d" % number: b"x" * 100 for number in range(100)}
        life = await nursery.begin(launch_order(script=script, directory=work, variables=variables))
        await appears(tmp_path / "work/slurm-5.out", "up")
        assert private_kib(life.pid) <= PRIVATE_KIB_MAX
        life.tell(Kill(state="CANCELLED", kill_wait_s=0))
        await life.gone.wait()

    with_nursery(tmp_path / "spool", story)


@as_root
def test_a_job_runs_as_its_user_on_its_node(tmp_path: Path) -> None:
    """Several nodes share a machine: each job sees its own node's name, and is its user's."""
    user = pwd.getpwnam("nobody")
    work = tmp_path / "work"
    work.mkdir()
    work.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    order = launch_order(
        script=b"#!/bin/bash\nid -u; id -g; id -G; hostname; ls -l $0 | cut -c1-10\n",
        directory=bytes(work),
        uid=user.pw_uid,
        gid=user.pw_gid,
    )
    assert run(tmp_path, order, host_name="n1").exit_code == 0
    out = work / "slurm-5.out"
    uid, gid = str(user.pw_uid), str(user.pw_gid)
    assert out.read_text().splitlines() == [uid, gid, gid, "n1", "-rwx------"]
    assert out.stat().st_uid == user.pw_uid


@as_root
def test_files_are_opened_with_the_rights_of_the_user(tmp_path: Path) -> None:
    """Someone names a file of root's as output: it stays as it is."""
    user = pwd.getpwnam("nobody")
    precious = tmp_path / "precious"
    precious.write_text("keep\n")
    precious.chmod(0o644)
    order = launch_order(
        directory=b"/tmp", stdout=bytes(precious), uid=user.pw_uid, gid=user.pw_gid
    )
    assert run(tmp_path, order).signal == 53
    assert precious.read_text() == "keep\n"


def test_all_processes_of_a_suspended_job_stand_still_until_it_goes_on(tmp_path: Path) -> None:
    """A script and what it started count on; suspended, nothing counts, resumed, all does."""
    work = here(tmp_path)
    count = "while :; do echo >> {}; sleep 0.01; done"
    script = f"#!/bin/bash\n({count.format('child')}) & {count.format('script')}\n".encode()
    files = [tmp_path / "work/child", tmp_path / "work/script"]

    def sizes() -> list[int]:
        return [path.stat().st_size if path.exists() else 0 for path in files]

    async def story(nursery: Nursery) -> None:
        life = await nursery.begin(launch_order(script=script, directory=work))
        await becomes(lambda: all(sizes()))
        life.tell(Steer(True, 0, 7))
        still = sizes()
        await asyncio.sleep(0.2)
        assert sizes() == still
        life.tell(Steer(False, 0, 9))
        life.tell(Steer(True, 0, 8))  # came late
        await becomes(lambda: all(now > then for now, then in zip(sizes(), still, strict=True)))
        life.tell(Steer(True, 0, 10))
        life.tell(Kill("CANCELLED", 30))
        await life.gone.wait()
        assert life.outcome().signal == signal.SIGTERM

    with_nursery(tmp_path / "spool", story)


def test_the_early_warning_follows_a_limit_that_moves(tmp_path: Path) -> None:
    """A job wants SIGUSR1 a minute before its end, which is brought forward while it runs."""
    script = (
        b"#!/bin/bash\ntrap 'echo warned; exit 0' USR1; echo up\nwhile :; do sleep 0.01; done\n"
    )
    order = launch_order(
        script=script, directory=here(tmp_path), options=(("signal", b"B:USR1@60"),)
    )
    order = msgspec.structs.replace(order, limit_ns=time.time_ns() + 3600 * 10**9)

    async def story(nursery: Nursery) -> None:
        life = await nursery.begin(order)
        await appears(tmp_path / "work/slurm-5.out", "up")
        life.tell(Steer(False, time.time_ns() + 30 * 10**9, 7))
        await life.gone.wait()
        assert life.outcome().exit_code == 0

    with_nursery(tmp_path / "spool", story)
    assert "warned" in (tmp_path / "work/slurm-5.out").read_text()
