"""Commands that a warm worker runs: real launchers, workers and children, and a command that tells.

The worker runs a command of the tests in place of Spur's: it says what it finds around it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import pty
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spur.slurm.wording import VERSION
from spur.testing.errands import until
from spur_cli.commands.link import make_names
from spur_cli.warm.knock import COLD, LEAVE
from spur_cli.warm.native import compiled, native_launcher

ROOT = str(Path(__file__).parents[2])
INSTALL = [ROOT, f"{ROOT}/cli", *(path for path in sys.path if path.endswith("-packages"))]

LAUNCHER = """\
#!{python} -IS
import sys
sys.path += {install!r}
from spur_cli.warm.knock import knock
how = knock(sys.argv, {install!r})
print("cold", how, flush=True)
"""

WORKER = """\
import json, os, resource, signal, sys, time
sys.path += {install!r}
from spur_cli import calling
from spur_cli.warm import child, worker
from spur_cli.warm.knock import door_of

def command(argv):
    match argv[1:]:
        case ["facts"]:
            ignored = [n for n in range(1, 32) if signal.getsignal(n) == signal.SIG_IGN]
            mask = os.umask(0)
            os.umask(mask)
            json.dump({{
                "argv": argv, "cwd": os.getcwd(), "environment": dict(os.environ), "umask": mask,
                "nofile": resource.getrlimit(resource.RLIMIT_NOFILE), "ignored": ignored,
                "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
                "stdin": sys.stdin.read(), "session": os.getsid(calling.pid),
                "files": sorted(int(n) for n in os.listdir("/proc/self/fd")),
                "codings": [sys.stdin.encoding, sys.stdout.encoding, sys.stdout.errors],
                "zone": time.strftime("%z", time.localtime(0)),
            }}, sys.stdout)
            sys.stderr.write("said\\n")
        case ["exit", status]:
            return int(status)
        case ["die", number]:
            signal.signal(int(number), signal.SIG_DFL) if int(number) != 9 else None
            os.kill(os.getpid(), int(number))
        case ["touch", path]:
            open(path, "x").close()
        case ["raise"]:
            raise ValueError("of no use")
        case ["wait"]:
            try:
                print(os.getpid(), flush=True)
                time.sleep(60)
            except KeyboardInterrupt:
                return 130
    return 0

child.main = command
os.environb[b"XDG_RUNTIME_DIR"] = {place!r}
import posix
posix.environ[b"XDG_RUNTIME_DIR"] = {place!r}
worker.work(door_of({install!r}), idle_s={idle_s})
"""


class World:
    """A user's private place, a launcher under some names, and a worker when one is wanted."""

    def __init__(self, directory: Path, kind: str) -> None:
        self.directory, self.kind = directory, kind
        self.place = directory / "run"
        self.place.mkdir(mode=0o700)
        self.workers: list[subprocess.Popen[bytes]] = []
        entries = directory / "entries"
        entries.mkdir()
        for name in ("squeue", "sbatch", "srun"):
            launcher, entry = directory / name, entries / name
            entry.write_text(LAUNCHER.format(python=sys.executable, install=INSTALL))
            native = None
            if kind == "native":
                native = native_launcher(name, entry=str(entry), install=INSTALL, mark="test")
            launcher.write_bytes(native or entry.read_bytes())
            launcher.chmod(0o755)

    def environment(self, **more: str) -> dict[str, str]:
        return {"XDG_RUNTIME_DIR": str(self.place), "PATH": os.defpath, **more}

    def start(self, *, idle_s: float = 30) -> subprocess.Popen[bytes]:
        """Start a worker and wait until it answers."""
        code = WORKER.format(install=INSTALL, place=os.fsencode(self.place), idle_s=idle_s)
        worker = subprocess.Popen(
            [sys.executable, "-IS", "-c", code], cwd="/", env={}, start_new_session=True
        )
        self.workers.append(worker)
        until("the worker listens", lambda: bool(self.sockets()))
        until("it takes commands", lambda: self.run("exit", "7").returncode == 7)
        return worker

    def sockets(self) -> list[Path]:
        return sorted((self.place / "spur").glob("warm-*"))

    def run(
        self, *words: str, name: str = "squeue", **how: Any
    ) -> subprocess.CompletedProcess[str]:  # how: as `subprocess.run` takes it
        how.setdefault("env", self.environment())
        return subprocess.run(
            [self.directory / name, *words],
            **{"capture_output": True, "text": True, "check": False, "cwd": self.directory, **how},
        )

    def facts(self, **how: Any) -> dict[str, Any]:  # how: as `subprocess.run` takes it
        done = self.run("facts", **how)
        assert done.stderr == "said\n"
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def is_cold(self, *words: str, **how: Any) -> bool:  # how: as `subprocess.run` takes it
        return self.run(*words, **how).stdout == f"cold {COLD}\n"

    @contextlib.contextmanager
    def waiting(self) -> Iterator[tuple[subprocess.Popen[str], int]]:
        """Run a command that waits; yield its launcher, and the process that runs it."""
        launcher = subprocess.Popen(
            [self.directory / "squeue", "wait"],
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment(),
            # Whoever runs the tests may ignore it, as nohup(1) does.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        assert launcher.stdout is not None
        try:
            yield launcher, int(launcher.stdout.readline())
        finally:
            launcher.kill()
            launcher.wait()
            launcher.stdout.close()


@pytest.fixture(params=["python", "native"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """Yield a place without a worker, with launchers of one kind or the other."""
    if request.param == "native" and compiled() is None:
        pytest.skip("takes a C compiler")
    made = World(tmp_path, request.param)
    yield made
    for worker in made.workers:
        worker.kill()
        worker.wait()


@pytest.fixture
def warm(world: World) -> World:
    """Return a place with a worker."""
    world.start()
    return world


def state_of(pid: int) -> str:
    """Return the letter of a process's state; that of the dead when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def is_gone(pid: int) -> bool:
    return state_of(pid) == "Z"


root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can become someone else")


def test_a_command_has_what_its_launcher_has(warm: World, tmp_path: Path) -> None:
    """A script with settings of its own calls a command in a directory of its own."""
    there = tmp_path / "deep" / "er"
    there.mkdir(parents=True)

    def settle() -> None:
        os.umask(0o027)
        resource.setrlimit(resource.RLIMIT_NOFILE, (77, 88))
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    environment = warm.environment(
        ODD="\udcff=\n", TZ="Asia/Tokyo", HOME="/h", PYTHONPATH="/x", LC_ALL="C.UTF-8"
    )
    facts = warm.facts(cwd=there, env=environment, input="given", preexec_fn=settle)
    assert facts["argv"] == [str(tmp_path / "squeue"), "facts"]
    assert facts["cwd"] == str(there)
    assert facts["environment"] == environment
    assert (facts["umask"], facts["nofile"], facts["stdin"]) == (0o027, [77, 88], "given")
    assert facts["session"] == os.getsid(0)
    assert facts["zone"] == "+0900"
    assert signal.SIGUSR2 in facts["ignored"]
    assert facts["blocked"] == [signal.SIGUSR1]
    assert facts["codings"] == ["utf-8", "utf-8", "surrogateescape"]
    # Its line to the launcher, and the directory that was just read.
    assert len(facts["files"]) <= 5
    # Nothing of it stays for the next one.
    again = warm.facts(input="")
    assert (again["umask"], again["stdin"], again["blocked"]) == (os.umask(0o022), "", [])
    assert "ODD" not in again["environment"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the call has its number there")
def test_all_signals_may_be_ignored(warm: World) -> None:
    """Whoever starts a process by posix_spawn under some shells hands down odd masks."""
    libc = ctypes.CDLL(None)

    def ignore_all() -> None:
        action = struct.pack("@PLPQ", 1, 0, 0, 0)  # of the kernel: handler, flags, restorer, mask
        for number in set(range(1, 65)) - {9, 17, 19}:
            libc.syscall(ctypes.c_long(13), number, action, None, ctypes.c_long(8))

    facts = warm.facts(preexec_fn=ignore_all)
    assert {1, 2, 15, 30} <= set(facts["ignored"])


@pytest.mark.parametrize("status", [0, 1, 2, 130, 141, 255])
def test_a_launcher_exits_as_the_command_did(warm: World, status: int) -> None:
    """A script looks at the status."""
    done = warm.run("exit", str(status))
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_a_command_that_breaks_says_where(warm: World) -> None:
    """A fault of ours: the traceback is there, as it is when the command runs cold."""
    done = warm.run("raise")
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: of no use\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_launcher_dies_as_the_command_did(warm: World, number: signal.Signals) -> None:
    """Memory runs out, say."""
    assert warm.run("die", str(int(number))).returncode == -number


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -15), (signal.SIGHUP, -1), (signal.SIGINT, 130)]
)
def test_signals_reach_the_command(warm: World, number: signal.Signals, status: int) -> None:
    """Someone ends a command, or types Ctrl-C."""
    with warm.waiting() as (launcher, pid):
        launcher.send_signal(number)
        assert launcher.wait(10) == status
        until("the command is gone", lambda: is_gone(pid))


def test_a_command_stops_and_goes_on_with_its_launcher(warm: World) -> None:
    """Someone types Ctrl-Z, then fg."""
    with warm.waiting() as (launcher, pid):
        launcher.send_signal(signal.SIGTSTP)
        until("it stops", lambda: state_of(pid) == "T")
        launcher.send_signal(signal.SIGCONT)
        until("it goes on", lambda: state_of(pid) != "T")


def test_a_command_ends_with_its_launcher(warm: World) -> None:
    """A batch system kills what a user has: no part of a command is left."""
    with warm.waiting() as (launcher, pid):
        launcher.kill()
        until("the command is gone", lambda: is_gone(pid))


def test_a_command_goes_on_without_its_worker(warm: World) -> None:
    """An administrator ends the worker while a command runs."""
    with warm.waiting() as (launcher, pid):
        warm.workers[-1].kill()
        warm.workers[-1].wait()
        assert launcher.poll() is None
        os.kill(pid, signal.SIGINT)
        assert launcher.wait(10) == 130


@pytest.mark.parametrize(
    "variables",
    [{"SPUR_WARM": "0"}, {"LD_PRELOAD": ""}, {"LD_X": "1"}, {"SLURM_CONF": "/proc/self/fd/9"}],
)
def test_some_variables_keep_a_command_cold(warm: World, variables: dict[str, str]) -> None:
    """What steers a process from its start, or names what only the caller has open."""
    assert warm.is_cold("facts", env=warm.environment(**variables))


@pytest.mark.parametrize("word", ["/dev/fd/63", "/proc/self/fd/3", "/dev/tty"])
def test_files_that_only_the_caller_has_keep_a_command_cold(warm: World, word: str) -> None:
    """In bash: sbatch <(make-script)."""
    assert warm.is_cold(word, name="sbatch")


def test_commands_that_people_talk_with_run_cold(warm: World) -> None:
    """A script typed at sbatch's prompt; squeue asks nothing and may be warm there too."""
    assert warm.is_cold("facts", name="srun")
    ours, theirs = pty.openpty()
    try:
        assert warm.is_cold("exit", "3", name="sbatch", stdin=theirs)
        assert warm.run("exit", "3", stdin=theirs).returncode == 3
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("fd", [0, 1, 2])
def test_a_closed_standard_file_keeps_a_command_cold(warm: World, fd: int) -> None:
    """A daemon closes them; what the command opens must not take their numbers."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"{warm.directory}/squeue exit 7 {fd}>&-"],
        env=warm.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 7


def nicer() -> None:
    os.nice(3)


def on_one_cpu() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def in_a_group() -> None:
    os.setgroups([*os.getgroups(), 4242])


@pytest.mark.parametrize("differ", [nicer, on_one_cpu])
def test_a_launcher_that_differs_runs_cold(warm: World, differ: Callable[[], None]) -> None:
    """Whoever asks with less of the machine gets no more of it through a worker."""
    if differ is on_one_cpu and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one processor")
    assert warm.run("facts", preexec_fn=differ).stdout.startswith("cold ")


@root_only
def test_other_groups_and_namespaces_run_cold(warm: World) -> None:
    """A container, a sandbox, a shell after newgrp: rights are those of the caller."""
    assert warm.is_cold("facts", preexec_fn=in_a_group)
    for words in (["unshare", "-m"], ["unshare", "-u"], ["setpriv", "--no-new-privs"]):
        done = subprocess.run(
            [*words, warm.directory / "squeue", "facts"],
            env=warm.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"cold {COLD}\n"


def test_a_place_that_others_may_enter_is_not_used(world: World) -> None:
    """Someone opened the directory to their group; then a link lies where it was."""
    (world.place / "spur").mkdir(mode=0o750)
    (world.place / "spur").chmod(0o750)
    assert world.is_cold("facts")
    (world.place / "spur").rmdir()
    (world.place / "else").mkdir(mode=0o700)
    (world.place / "spur").symlink_to(world.place / "else")
    assert world.is_cold("facts")


@root_only
def test_a_place_or_a_listener_of_someone_else_is_not_used(world: World) -> None:
    """A neighbour waits where our worker would."""
    assert world.run("facts").stdout == f"cold {LEAVE}\n"
    os.chown(world.place / "spur", 4242, 4242)
    assert world.is_cold("facts")
    os.chown(world.place / "spur", 0, 0)
    world.start()
    [path] = world.sockets()
    world.workers[-1].kill()
    world.workers[-1].wait()
    path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    with listener:
        os.seteuid(4242)
        try:
            os.seteuid(0)
            listener.bind(str(path))
            os.seteuid(4242)
            listener.listen()
        finally:
            os.seteuid(0)
        assert world.is_cold("facts")
        taken, _ = listener.accept()
        with taken:
            assert taken.recv(1) == b""  # it was told nothing


def test_a_worker_that_does_not_answer_is_not_waited_for(warm: World) -> None:
    """It was stopped, then goes on: what its launcher has run cold it does not run again."""
    worker = warm.workers[-1]
    mark = warm.directory / "ran"
    worker.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    assert warm.is_cold("touch", str(mark))
    assert time.monotonic() - began < 5
    worker.send_signal(signal.SIGCONT)
    assert warm.run("exit", "7").returncode == 7
    assert not mark.exists()


def test_a_worker_without_work_ends(world: World) -> None:
    """Nothing is left, and the next command is told that it may leave one."""
    worker = world.start(idle_s=0.5)
    assert worker.wait(20) == 0
    assert world.sockets() == []
    assert world.run("facts").stdout == f"cold {LEAVE}\n"


def test_a_worker_that_serves_nobody_ends_though_others_knock(world: World) -> None:
    """A shell in a container asks every second for what the worker of another one can't give."""
    worker = world.start(idle_s=2)
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one processor")

    def is_over() -> bool:
        assert world.run("facts", preexec_fn=on_one_cpu).stdout.startswith("cold ")
        return worker.poll() == 0

    until("it ends", is_over)


def peer_of(path: Path) -> int:
    """Return which process listens; 0 while none does."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(path))
        except ConnectionRefusedError:
            return 0
        pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)


def test_the_linked_names_leave_a_worker_and_say_the_same(world: World) -> None:
    """Whoever uses them notices nothing: first cold, then warm; off when told so, and in jobs."""
    names = world.directory / "names"
    make_names(str(names), native=world.kind == "native")

    def run(*words: str, **variables: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [names / words[0], *words[1:]],
            env=world.environment(**variables),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    commands = [
        ("squeue", "--version"),
        ("scontrol", "show", "hostnames", "n[1-3]"),
        ("sinfo", "--nonsense"),
        ("sbatch", "/nowhere/at/all"),
        ("squeue", "-t", "nostate"),
    ]
    off = [run(*words, SPUR_WARM="0") for words in commands]
    assert run("squeue", "--version", SLURM_JOB_ID="1") == (0, f"{VERSION}\n", "")
    time.sleep(0.5)
    assert world.sockets() == []
    assert run(*commands[0]) == off[0]
    until("a worker was left", lambda: bool(world.sockets()))
    [path] = world.sockets()
    until("it listens", lambda: peer_of(path) > 0)
    pid = peer_of(path)
    try:
        before = children_s(pid)
        assert [run(*words) for words in commands] == off
        until("they were its children", lambda: children_s(pid) > before)
        assert os.getsid(pid) not in (os.getsid(0), pid)
    finally:
        os.kill(pid, signal.SIGTERM)


def children_s(pid: int) -> float:
    """Return the processor time of a process's children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[13]) + int(fields[14])


def test_of_many_commands_one_leaves_a_worker(world: World) -> None:
    """A script begins a dozen at once where there is none yet: the machine is not kept busy."""
    names = world.directory / "names"
    make_names(str(names), native=world.kind == "native")
    begun = [
        subprocess.Popen(
            [names / "squeue", "--version"], stdout=subprocess.DEVNULL, env=world.environment()
        )
        for _ in range(12)
    ]
    try:
        assert [each.wait(30) for each in begun] == [0] * 12
        assert len(workers_in(world.place)) <= 1
        until("it listens", lambda: bool(world.sockets()) and peer_of(world.sockets()[0]) > 0)
        time.sleep(0.2)
        assert workers_in(world.place) == [peer_of(world.sockets()[0])]
    finally:
        for pid in workers_in(world.place):
            os.kill(pid, signal.SIGKILL)


def workers_in(place: Path) -> list[int]:
    """Return the workers of a place, also those that do not listen yet."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = each.read_bytes()
            if b"warm.worker" in words and os.fsencode(place) in words:
                found.append(int(each.parent.name))
    return found


def test_no_room_for_a_worker_is_no_fault_of_the_command(world: World) -> None:
    """Somebody may have no process more: what was done is done, and its status is told."""
    names = world.directory / "names"
    make_names(str(names), native=False)
    code = (
        "import os, sys; sys.argv = ['squeue', '--version'];"
        "os.fork = lambda: (_ for _ in ()).throw(BlockingIOError(11, 'no process more'));"
        f"exec(open({str(names / 'squeue')!r}).read())"
    )
    done = subprocess.run(
        [sys.executable, "-IS", "-c", code],
        env=world.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION}\n", "")
