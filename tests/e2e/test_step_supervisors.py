"""Tasks of steps under real supervisors: what flows over their streams, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import time
import zlib
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spur.agent import control
from spur.agent.control import Kill
from spur.agent.manifest import OUTCOME
from spur.testing.attempts import BLOCK, SPEC, Life, Nursery, launch_order, step_order
from spur.values.config import GresPool
from spur.values.ids import NodeName
from spur.values.tres import NodeShare, cpu_set
from spur.wire.frames import FrameDecoder
from spur.wire.streams import (
    EVERY_TASK,
    FROM_STEP_LIMIT,
    STEP_ITSELF,
    Attached,
    Begin,
    FilePiece,
    FilePut,
    Finished,
    FromStep,
    Input,
    Output,
    Program,
    PutFile,
    Signal,
    Taken,
    TaskEnded,
    ToStep,
    counts,
    decode_from_step,
    stream_frames,
)


def program(*argv: bytes, **changes: Any) -> Program:
    """Return a program whose input and output go over the stream."""
    found = Program(
        argv=argv,
        environment=b"PATH=/usr/bin:/bin\0SLURM_JOB_ID=5\0",
        working_directory=b"/",
        umask=0o022,
        limits=(),
        stdin_path=b"",
        stdout_path=b"",
        stderr_path=b"",
        appends=False,
        kill_on_bad_exit=False,
        pty=None,
    )
    return msgspec.structs.replace(found, **changes)


def shell(script: bytes, **changes: Any) -> Program:
    return program(b"bash", b"-c", script, **changes)


class Client:
    """One who is attached to a step on a node."""

    takes = True
    """Whether it says what it has taken."""

    def __init__(
        self, life: Life, *, taken: int = 0, connection: socket.socket | None = None
    ) -> None:
        """Attach, having taken so many messages before; over a connection or a new one."""
        self._socket = connection or control.connect(str(life.directory), control.STREAM)
        self._socket.setblocking(False)
        self.taken = taken
        self.unsent = asyncio.Semaphore(8)
        """How many more messages may be said before some are taken."""
        self._said_taken = 0
        self._saying = asyncio.Lock()
        self._decoder = FrameDecoder(FROM_STEP_LIMIT)
        self.heard: list[FromStep] = []
        self._socket.sendall(stream_frames(Begin(taken)))

    async def say(self, message: ToStep) -> None:
        async with self._saying:
            await asyncio.get_running_loop().sock_sendall(self._socket, stream_frames(message))

    async def hear_until(self, holds: Callable[[], bool]) -> None:
        """Take messages until something holds, or there are no more."""
        loop = asyncio.get_running_loop()
        while not holds():
            data = await loop.sock_recv(self._socket, 65536)
            if not data:
                return
            found = [decode_from_step(message) for message in self._decoder.feed(data)]
            self.heard += [message for message in found if not isinstance(message, Taken)]
            self.taken += sum(map(counts, found))
            for said in found:
                while isinstance(said, Taken) and self._said_taken < said.count:
                    self._said_taken += 1
                    self.unsent.release()
            if self.takes:
                with contextlib.suppress(OSError):
                    await self.say(Taken(self.taken))

    async def hear_all(self) -> None:
        await self.hear_until(lambda: False)
        self._socket.close()

    def close(self) -> None:
        self._socket.close()

    def output(self, fd: int = 1, task: int = 0) -> bytes:
        """Return what a task has written so far."""
        return b"".join(
            message.data
            for message in self.heard
            if isinstance(message, Output) and (message.task, message.fd) == (task, fd)
        )

    def ends(self) -> dict[int, tuple[int, int]]:
        """Return exit code and signal of each task that ended."""
        return {m.task: (m.exit_code, m.signal) for m in self.heard if isinstance(m, TaskEnded)}


def tell(tmp_path: Path, story: Callable[[Nursery], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Nursery(tmp_path / "spool") as nursery:
            await asyncio.wait_for(story(nursery), 60)

    asyncio.run(run())


async def attached(nursery: Nursery, **changes: Any) -> tuple[Life, Client]:
    """Have a step begin and attach to it."""
    life = await nursery.begin(step_order(**changes), host_name="n1")
    for _ in range(500):
        try:
            return life, Client(life)
        except OSError:
            await asyncio.sleep(0.01)
    raise TimeoutError


def run(tmp_path: Path, what: Program, **changes: Any) -> tuple[Client, Life]:
    """Run a step to its end without saying anything more, and return all that was heard."""
    found: list[tuple[Client, Life]] = []

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery, **changes)
        await client.say(what)
        await client.hear_all()
        await life.gone.wait()
        found.append((client, life))

    tell(tmp_path, story)
    return found[0]


@pytest.mark.parametrize("pty", [None, (24, 80)], ids=["pipes", "terminal"])
def test_tasks_have_their_three_files_and_none_of_ours(
    tmp_path: Path, pty: tuple[int, int] | None
) -> None:
    """A user looks for a way to speak to the agent through what a task was born with."""
    client, _ = run(tmp_path, program(b"ls", b"/proc/self/fd", pty=pty))
    its_own_directory = b"3"
    assert client.output().split() == [b"0", b"1", b"2", its_own_directory]


def test_output_of_tasks_is_told_apart_and_comes_whole(tmp_path: Path) -> None:
    """Three tasks write and exit: who is attached gets all of it, and each exit."""
    script = b"echo out $SLURM_PROCID $SLURM_LOCALID; echo err >&2; exit $SLURM_PROCID"
    client, life = run(tmp_path, shell(script), tasks=(3,))
    for task in range(3):
        assert client.output(1, task) == b"out %d %d\n" % (task, task)
        assert client.output(2, task) == b"err\n"
    assert client.ends() == {0: (0, 0), 1: (1, 0), 2: (2, 0)}
    assert client.heard[0] == Attached("n1")
    assert client.heard[-1] == Finished("")
    assert (life.outcome().exit_code, life.outcome().void) == (2, False)


def test_the_second_node_numbers_its_tasks_on(tmp_path: Path) -> None:
    """A step spans nodes: ranks go on where the first node stopped."""
    shares = tuple(NodeShare(NodeName(name), 2, 500, 0, cpu_set(3), False) for name in ("n0", "n1"))
    script = b"echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_GTIDS $SLURMD_NODENAME"
    client, _ = run(tmp_path, shell(script), shares=shares, tasks=(1, 2))
    assert client.output(1, 1) == b"1 0 1 1,2 n1\n"
    assert client.output(1, 2) == b"2 1 1 1,2 n1\n"


def test_input_reaches_every_task_or_one(tmp_path: Path) -> None:
    """Something is piped into srun, for all tasks, or with --input=1 for one of them."""

    async def story(nursery: Nursery) -> None:
        _, client = await attached(nursery, tasks=(2,))
        await client.say(program(b"cat"))
        await client.say(Input(EVERY_TASK, b"all\n"))
        await client.say(Input(1, b"one\n"))
        await client.say(Input(EVERY_TASK, b""))
        await client.hear_all()
        assert client.output(1, 0) == b"all\n"
        assert client.output(1, 1) == b"all\none\n"

    tell(tmp_path, story)


def test_much_flows_both_ways_without_being_held(tmp_path: Path) -> None:
    """Sixty megabytes go through a task while their reader is slower than the task."""
    size = 60_000_000

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        await client.say(program(b"cat"))

        async def send() -> None:
            for _ in range(size // 60_000):
                await client.unsent.acquire()
                await client.say(Input(0, bytes(60_000)))
            await client.say(Input(0, b""))

        sending = asyncio.create_task(send())
        await asyncio.sleep(0.3)  # nobody reads meanwhile: all must wait, and nothing be kept
        assert rss_kib(life.pid) < 40_000
        await client.hear_all()
        await sending
        assert len(client.output()) == size

    tell(tmp_path, story)


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def rss_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        ((b"/nonexistent/prog",), 2, b"/nonexistent/prog: No such file or directory"),
        ((b"no-such-prog",), 2, b"no-such-prog: No such file or directory"),
        ((b"/etc/passwd",), 13, b"/etc/passwd: Permission denied"),
        ((b"/tmp",), 13, b"/tmp: Permission denied"),
    ],
)
def test_a_program_that_cannot_be_executed(
    tmp_path: Path, argv: tuple[bytes, ...], code: int, sentence: bytes
) -> None:
    """Someone mistypes a command: the task says why, in Slurm's words, and exits with the error."""
    client, life = run(tmp_path, program(*argv))
    assert client.output(2) == b"slurmstepd-n1: error: execve(): " + sentence + b"\n"
    assert client.ends() == {0: (code, 0)}
    assert life.outcome().exit_code == code


def test_a_working_directory_that_is_not_there(tmp_path: Path) -> None:
    """It is said twice, as Slurm says it, and the task runs in /tmp."""
    client, _ = run(tmp_path, program(b"pwd", working_directory=b"/nosuch"))
    sentence = (
        b"slurmstepd-n1: error: couldn't chdir to `/nosuch': No such file or directory: "
        b"going to /tmp instead\n"
    )
    assert client.output(2, STEP_ITSELF) == sentence * 2
    assert client.output() == b"/tmp\n"


def test_files_of_tasks_are_theirs(tmp_path: Path) -> None:
    """Each task has an output file of its own, and reads one; errors go where output goes."""
    (tmp_path / "in").write_text("read\n")
    what = shell(
        b"cat; echo $SLURM_PROCID >&2",
        working_directory=bytes(tmp_path),
        stdin_path=b"in",
        stdout_path=b"out/%J-%t-%n-%N",
    )
    client, _ = run(tmp_path, what, tasks=(2,))
    assert (tmp_path / "out/5.0-0-0-n1").read_text() == "read\n0\n"
    assert (tmp_path / "out/5.0-1-0-n1").read_text() == "read\n1\n"
    assert not any(isinstance(message, Output) for message in client.heard)


def test_files_that_cannot_be_opened_start_nothing(tmp_path: Path) -> None:
    """The output lies where nobody may write."""
    client, life = run(tmp_path, program(b"true", stdout_path=b"/proc/version/x"))
    assert client.heard[-1] == Finished("Slurmd could not connect IO")
    assert client.ends() == {}
    assert (life.outcome().signal, life.outcome().void) == (53, False)


def test_a_signal_reaches_the_tasks_and_what_they_started(tmp_path: Path) -> None:
    """Someone presses Ctrl-C at srun, or sends USR1 by scancel."""

    async def story(nursery: Nursery) -> None:
        _, client = await attached(nursery)
        await client.say(
            shell(b"trap 'echo got; exit 6' USR1; echo up; while :; do sleep 0.1; done")
        )
        await client.hear_until(lambda: b"up" in client.output())
        await client.say(Signal(signal.SIGUSR1))
        await client.hear_all()
        assert b"got" in client.output(), client.heard
        assert client.ends() == {0: (6, 0)}

    tell(tmp_path, story)


def test_a_cancelled_step_is_told_and_ended(tmp_path: Path) -> None:
    """Scancel names a step: its tasks are warned, the sentence comes over the stream."""

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery, tasks=(2,))
        await client.say(shell(b"echo up; exec sleep 1000"))
        await client.hear_until(lambda: b"up" in client.output(1, 0) + client.output(1, 1))
        life.tell(Kill(state="CANCELLED", kill_wait_s=30))
        await client.hear_all()
        sentence = client.output(2, STEP_ITSELF).decode()
        assert sentence.startswith("slurmstepd-n1: error: *** STEP 5.0 ON n1 CANCELLED AT 2")
        assert client.ends() == {0: (0, signal.SIGTERM), 1: (0, signal.SIGTERM)}
        await life.gone.wait()
        assert life.outcome().signal == signal.SIGTERM

    tell(tmp_path, story)


def test_one_bad_exit_ends_the_others_when_asked(tmp_path: Path) -> None:
    """One rank of a parallel program dies; with --kill-on-bad-exit the rest goes too."""
    script = b"[ $SLURM_PROCID = 1 ] && exit 3; exec sleep 1000"
    client, life = run(tmp_path, shell(script, kill_on_bad_exit=True), tasks=(2,))
    assert client.ends() == {0: (0, signal.SIGTERM), 1: (3, 0)}
    assert life.outcome().signal == signal.SIGTERM


def test_tasks_go_on_without_their_srun(tmp_path: Path) -> None:
    """The host of srun dies; the tasks go on, and one who attaches later gets what was kept."""
    mark = tmp_path / "go"

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        script = b"echo first; while [ ! -e %s ]; do sleep 0.01; done; echo last" % bytes(mark)
        await client.say(shell(script))
        await client.hear_until(lambda: b"first" in client.output())
        client.close()
        later = Client(life, taken=client.taken)
        await asyncio.to_thread(mark.touch)
        await later.hear_all()
        assert later.output() == b"last\n"
        assert later.ends() == {0: (0, 0)}
        await life.gone.wait()

    tell(tmp_path, story)


def test_output_waits_for_a_connection_that_broke_off(tmp_path: Path) -> None:
    """An agent is killed under a step that writes much: whoever comes back gets all, once."""
    size = 3_000_000

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        client.takes = False  # what it hears it has, though the supervisor was never told
        await client.say(shell(b"seq -w %d" % (size // 8)))
        await client.hear_until(lambda: len(client.output()) > 200_000)
        client.close()
        await asyncio.sleep(0.3)
        later = Client(life, taken=client.taken)
        await later.hear_all()
        written = (client.output() + later.output()).split()
        assert written == [b"%06d" % number for number in range(1, size // 8 + 1)]
        assert later.ends() == {0: (0, 0)}
        await life.gone.wait()

    tell(tmp_path, story)


def test_input_is_taken_once_over_two_connections(tmp_path: Path) -> None:
    """What srun sent and the supervisor did not take is sent again, and only that."""

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        await client.say(program(b"cat"))
        await client.say(Input(EVERY_TASK, b"one\n"))
        await client.hear_until(lambda: b"one" in client.output())
        client.close()
        later = Client(life, taken=client.taken)
        await later.hear_until(lambda: bool(later.heard))
        assert later.heard == [Attached("n1", taken=2)]
        await later.say(Input(EVERY_TASK, b"two\n"))
        await later.say(Input(EVERY_TASK, b""))
        await later.hear_all()
        assert later.output() == b"two\n"

    tell(tmp_path, story)


def test_the_end_of_a_step_is_kept_for_one_who_comes_back(tmp_path: Path) -> None:
    """A step ends while its srun is cut off: the outcome is there at once, the words wait."""

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        mark = tmp_path / "go"
        script = b"while [ ! -e %s ]; do sleep 0.01; done; exit 4" % bytes(mark)
        await client.say(shell(script))
        await client.hear_until(lambda: bool(client.heard))
        client.close()
        await asyncio.to_thread(mark.touch)
        await asyncio.to_thread(wait_for, life.directory / OUTCOME)
        assert life.outcome().exit_code == 4
        later = Client(life, taken=client.taken)
        await later.hear_all()
        assert later.ends() == {0: (4, 0)}
        await life.gone.wait()

    tell(tmp_path, story)


def test_a_step_that_nobody_speaks_to_is_void(tmp_path: Path) -> None:
    """Srun dies before it has said what to run, and the step is cancelled."""

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        assert not life.tell(Kill(state="CANCELLED", kill_wait_s=30))
        await client.hear_all()
        await life.gone.wait()
        assert life.outcome().void
        assert isinstance(client.heard[-1], Finished)

    tell(tmp_path, story)


def test_a_terminal_is_one(tmp_path: Path) -> None:
    """Srun --pty: the program sees a terminal of the size that srun's has, and Ctrl-D ends it."""

    async def story(nursery: Nursery) -> None:
        _, client = await attached(nursery)
        await client.say(shell(b"tty -s && stty size; cat; echo over", pty=(33, 99)))
        await client.hear_until(lambda: b"33 99" in client.output())
        await client.say(Input(0, b"typed\n"))
        await client.hear_until(lambda: client.output().count(b"typed") == 2)  # echo, and cat
        await client.say(Input(0, b""))
        await client.hear_all()
        assert b"over" in client.output()

    tell(tmp_path, story)


def test_the_terminal_is_the_first_tasks_alone(tmp_path: Path) -> None:
    """Srun --pty -n2: a shell for each, of which one has somebody who types."""
    script = b"tty -s && echo typed && exit 2; echo lost; echo lost >&2; cat"
    client, _ = run(tmp_path, shell(script, pty=(24, 80)), tasks=(2,))
    assert client.output(1, 0) == b"typed\r\n"
    assert client.output(1, 1) == client.output(2, 1) == b""
    assert client.ends() == {0: (2, 0), 1: (0, 0)}


def test_tasks_execute_what_is_theirs_between_prolog_and_epilog(tmp_path: Path) -> None:
    """Two programs in one step; what a prolog exports they find, an epilog knows its task."""
    prolog, epilog = tmp_path / "prolog", tmp_path / "epilog"
    prolog.write_text("#!/bin/sh\necho print before $SLURM_PROCID\necho export WORD=found\n")
    epilog.write_text(f"#!/bin/sh\necho said; echo $WORD $SLURM_PROCID >> {tmp_path}/after\n")
    for path in (prolog, epilog):
        path.chmod(0o755)
    what = program(
        b"nosuch",
        several=((b"printenv", b"WORD"), (b"bash", b"-c", b"exit 4")),
        task_prolog=os.fsencode(prolog),
        task_epilog=os.fsencode(epilog),
    )
    client, life = run(tmp_path, what, tasks=(2,))
    assert client.output(1, 0) == b"before 0\nfound\n"
    assert client.output(1, 1) == b"before 1\n"
    assert client.ends() == {0: (0, 0), 1: (4, 0)}
    assert sorted((tmp_path / "after").read_text().splitlines()) == ["0", "1"]
    assert life.outcome().exit_code == 4


@pytest.mark.parametrize(
    ("prolog", "status", "told"),
    [
        ("/nosuch", 1, "run_command: user task_prolog can not be executed (/nosuch) No such file"),
        ("bad", 1, "run_command: user task_prolog is not fully qualified pathname (bad)"),
        ("{}/three", 3, "--task-prolog failed status=3"),
        ("{}/killed", 1, "user task_prolog did not exit normally. reason: "),
    ],
)
def test_task_does_not_begin_after_a_prolog_that_failed(
    tmp_path: Path, prolog: str, status: int, told: str
) -> None:
    """It is missing, exits with 3, or dies; what it printed before is there."""
    for name, last in (("three", "exit 3"), ("killed", "kill -9 $$")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho print before\n{last}\n")
        (tmp_path / name).chmod(0o755)
    path = prolog.format(tmp_path)
    client, _ = run(tmp_path, shell(b"echo ran", task_prolog=os.fsencode(path)))
    assert client.ends() == {0: (status, 0)}
    assert client.output() == (b"before\n" if path.startswith(str(tmp_path)) else b"")
    assert f"slurmstepd-n1: error: {told}" in client.output(2).decode()


@pytest.mark.parametrize(
    ("epilog", "told"),
    [
        ("/nosuch", "Could not run user task_epilog [/nosuch]: access denied"),
        ("{}/three", "TaskEpilog failed status=768"),
    ],
)
def test_epilog_that_failed_is_told_of(tmp_path: Path, epilog: str, told: str) -> None:
    """It changes nothing for the task, which has ended."""
    (tmp_path / "three").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "three").chmod(0o755)
    path = os.fsencode(epilog.format(tmp_path))
    client, life = run(tmp_path, shell(b"echo ran", task_epilog=path))
    assert client.output() == b"ran\n"
    assert f"slurmstepd-n1: error: {told}\n" in client.output(2, STEP_ITSELF).decode()
    assert life.outcome().exit_code == 0


def test_output_that_is_not_to_be_held_back_goes_to_a_terminal(tmp_path: Path) -> None:
    """Srun --unbuffered: the C library sees one, and nothing is changed on the way."""
    what = shell(b"test -t 1 && echo yes; test -t 0 || echo no", is_unbuffered=True)
    client, _ = run(tmp_path, what)
    assert client.output() == b"yes\nno\n"


def visit(life: Life) -> Client:
    """Come as a guest, as an agent lets one in."""
    connection = control.connect(str(life.directory), control.CONTROL)
    connection.sendall(control.encode_order(control.Guest()))
    connection.recv(1, socket.MSG_PEEK)  # a guest is silent until it is greeted
    return Client(life, connection=connection)


def test_guests_of_a_step_hear_what_its_srun_hears_and_write_to_its_tasks(tmp_path: Path) -> None:
    """Two come while it runs: they see what was written before, and one of them types."""

    def begun(guest: Client) -> bool:
        return guest.output() == guest.output(task=1) == b"begun\n"

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery, tasks=(2,))
        await client.say(shell(b"echo begun; read word; echo heard $word"))
        await client.hear_until(lambda: bool(client.output() and client.output(task=1)))
        guests = [visit(life), visit(life)]
        for guest in guests:
            await guest.hear_until(partial(begun, guest))
        await guests[0].say(Input(EVERY_TASK, b"you\n"))
        await client.hear_all()
        for guest in guests:
            await guest.hear_all()
            assert guest.output() == guest.output(task=1) == b"begun\nheard you\n"
            assert guest.ends() == {0: (0, 0), 1: (0, 0)}
        assert client.output() == b"begun\nheard you\n"

    tell(tmp_path, story)


@pytest.mark.parametrize("is_compressed", [False, True], ids=["plain", "compressed"])
def test_files_of_guests_are_written_where_a_run_holds_its_place(
    tmp_path: Path, is_compressed: bool
) -> None:
    """A big file with its mode and times; one that is there; one for a directory that is not."""
    content = os.urandom(300_000) + bytes(700_000)
    sent = zlib.compress(content) if is_compressed else content
    target = tmp_path / "target"

    async def put(life: Life, path: Path, *, forces: bool = False) -> int:
        guest = visit(life)
        what = PutFile(os.fsencode(path), 0o641, 10**18, 10**18 + 5, True, forces, is_compressed)
        await guest.say(what)
        for place in range(0, len(sent), 60_000):
            await guest.say(FilePiece(sent[place : place + 60_000]))
        await guest.say(FilePiece(b""))
        await guest.hear_until(lambda: any(isinstance(m, FilePut) for m in guest.heard))
        guest.close()
        (told,) = (m for m in guest.heard if isinstance(m, FilePut))
        return told.number

    async def story(nursery: Nursery) -> None:
        life = await nursery.begin(
            launch_order(spec=msgspec.structs.replace(SPEC, batch=False)), host_name="n1"
        )
        await life.claimed.wait()
        assert await put(life, target) == 0
        assert target.read_bytes() == content
        found = target.stat()
        assert (found.st_mode & 0o7777, found.st_mtime_ns) == (0o641, 10**18 + 5)
        assert await put(life, target) == errno.EEXIST
        assert await put(life, target, forces=True) == 0
        assert await put(life, tmp_path / "nosuch" / "x") == errno.ENOENT
        control.deliver(str(life.directory), Kill("CANCELLED", 0))
        await life.gone.wait()

    tell(tmp_path, story)


def test_tasks_see_the_gpus_and_the_place_of_their_job(tmp_path: Path) -> None:
    """A step of a job with GPUs: it uses one of them."""
    pools = (GresPool("gpu", "a100", 4, "", "", ("nvidia_gpu_env",)),)
    job = launch_order(
        spec=msgspec.structs.replace(launch_order().spec, batch=False),
        block=msgspec.structs.replace(BLOCK, gpus=4, gres=pools),
        topology="core.leaf0.n1",
        topology_pattern="switch.switch.node",
    )

    async def story(nursery: Nursery) -> None:
        holder = await nursery.begin(job)
        share = NodeShare(NodeName("n1"), 1, 500, 0b100, cpu_set(1), False)
        _, client = await attached(nursery, shares=(share,))
        await client.say(program(b"env"))
        await client.hear_all()
        found = client.output().decode().splitlines()
        wanted = {
            "CUDA_VISIBLE_DEVICES=2",
            "SLURM_STEP_GPUS=2",
            "SLURM_GPUS_ON_NODE=1",
            "SLURM_TOPOLOGY_ADDR=core.leaf0.n1",
            "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node",
            "SPUR_SOCKET=/relay",
            "SLURMD_NODENAME=n1",
        }
        assert wanted <= set(found)
        holder.tell(Kill(state="COMPLETED", kill_wait_s=0))
        await holder.gone.wait()

    tell(tmp_path, story)


def test_each_task_may_have_gpus_of_its_own(tmp_path: Path) -> None:
    """Srun --gpus-per-task=1 -n2: each task finds its own device, in every variable."""
    pools = (GresPool("gpu", "a100", 4, "", "", ("nvidia_gpu_env",)),)
    job = launch_order(
        spec=msgspec.structs.replace(launch_order().spec, batch=False),
        block=msgspec.structs.replace(BLOCK, gpus=4, gres=pools),
    )

    async def story(nursery: Nursery) -> None:
        holder = await nursery.begin(job)
        share = NodeShare(NodeName("n1"), 1, 500, 0b110, cpu_set(1), False)
        _, client = await attached(nursery, shares=(share,), tasks=(2,))
        script = b"echo $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS $SLURM_GPUS_ON_NODE"
        await client.say(shell(script, gpu_binding="per_task:1"))
        await client.hear_all()
        assert [client.output(1, task) for task in (0, 1)] == [b"1 1 2\n", b"2 2 2\n"]
        holder.tell(Kill(state="COMPLETED", kill_wait_s=0))
        await holder.gone.wait()

    tell(tmp_path, story)


def test_nonsense_on_a_stream_ends_the_connection_alone(tmp_path: Path) -> None:
    """Something else connects: it is let go, and the step waits for its srun."""

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        client.close()
        stranger = control.connect(str(life.directory), control.STREAM)
        await asyncio.to_thread(stranger.sendall, b"GET / HTTP/1.1\r\n\r\n")
        while await asyncio.to_thread(stranger.recv, 4096):
            pass
        stranger.close()
        again = Client(life)
        await again.say(program(b"true"))
        await again.hear_all()
        assert again.ends() == {0: (0, 0)}

    tell(tmp_path, story)


def test_sockets_are_for_the_agent_alone(tmp_path: Path) -> None:
    """Another user of the host looks for a step to attach to."""

    async def story(nursery: Nursery) -> None:
        life, client = await attached(nursery)
        for name in (control.STREAM, control.CONTROL):
            mode = os.stat(life.directory / name).st_mode
            assert mode & 0o777 == 0o600
        life.tell(Kill(state="CANCELLED", kill_wait_s=0))
        await client.hear_all()

    tell(tmp_path, story)
