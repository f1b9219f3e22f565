"""The cluster that cases run on: its configuration, its users, and commands run as they are.

`spur up` brings it up from the recording's own slurm.conf, with what a scene overrides.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from spur.testing.conformance.cases import Scene
from spur.values.errors import OperatorFault

__all__ = ["USERS", "Entry", "Ran", "Site", "make_users", "overridden"]

USERS = {"u1": 2001, "u2": 2002, "u3": 2003, "u4": 2004}

LOGIN_HOST = "login"
"""Name of the host where commands run."""

SILENT_NODES = frozenset({"x1"})
"""Nodes of the recording whose daemon never ran."""

COMMAND_S = 60.0
"""How long one command may take. Source: the longest wait of the recordings is 40 s."""

IN_STEPS = {"PriorityCalcPeriod": "60"}
"""Priorities age in steps. No scene was recorded for longer than one step of the recorded site; a
busy machine takes longer to replay it."""

SILENT_S = 5
"""SlurmdTimeout until the scene begins, so that the silent nodes are soon taken for lost."""

READY_S = 20.0
"""How long nodes may take until they are there."""

_SPUR = 'import sys; from spur_cli.main import main; sys.exit(main(["spur", *sys.argv[1:]]))'

_CLONE_NEWUTS = 0x04000000


class Ran(NamedTuple):
    """What a command did."""

    stdout: str
    stderr: str
    exit_code: int | None
    """None when it did not end by itself."""


def make_users() -> None:
    """Make the users of the recordings where they are missing. Takes root."""
    for name, number in USERS.items():
        try:
            pwd.getpwnam(name)
        except KeyError:
            for command in (
                ["groupadd", "-g", str(number), name],
                ["useradd", "-m", "-u", str(number), "-g", str(number), "-s", "/bin/bash", name],
            ):
                subprocess.run(command, check=True)


def overridden(text: str, overrides: Mapping[str, str]) -> str:
    """Return slurm.conf with other values for some keys; an empty value takes the line away."""
    left = {key.lower(): (key, value) for key, value in overrides.items()}
    lines: list[str] = []
    for line in text.splitlines():
        found = left.pop(line.partition("=")[0].strip().lower(), None)
        if found is None:
            lines.append(line)
        elif found[1]:
            lines.append(f"{found[0]}={found[1]}")
    lines += [f"{key}={value}" for key, value in left.values() if value]
    return "".join(f"{line}\n" for line in lines)


def _node_of(row: Mapping[str, str]) -> str:
    """Return the node of an agent that `spur status` tells of."""
    return row["name"].removeprefix("spurd-")


class Entry(StrEnum):
    """How commands start."""

    NATIVE = "native"
    """As `spur up` makes them: by a native launcher, where there is a C compiler."""
    PYTHON = "python"
    TURNS = "turns"
    """One case this way, the next one that way."""


class Site:
    """One cluster in a directory of its own."""

    def __init__(self, directory: Path, cluster: Path, entry: Entry) -> None:
        self.directory = directory
        self._entry = entry
        self._cluster = cluster
        self._up_directory = directory / "up"
        self._bins = {
            Entry.NATIVE: self._up_directory / "bin",
            Entry.PYTHON: directory / "bin-python",
        }
        self._bin = self._bins[Entry.PYTHON if entry is Entry.PYTHON else Entry.NATIVE]
        # Cases that change nothing run several at a time: whose turn it is matters to none of them.
        self._turns = cycle(self._bins.values())
        self._work = directory / "work"
        self._conf = self._up_directory / "conf" / "slurm.conf"
        text = (cluster / "slurm.conf").read_text(encoding="utf-8")
        found = re.search(r"(?mi)^SlurmctldPort=(\d+)", text)
        self._port = found.group(1) if found else "6817"
        """Where the recorded controller listened."""

    # -- life
    def start(self, scene: Scene) -> None:
        """Bring the cluster up, as the scene wants it. Raises: OperatorFault when it can't be."""
        self._work.mkdir(parents=True, exist_ok=True)
        (self.directory / "dev").mkdir(exist_ok=True)
        for place in (self.directory, self._work):
            place.chmod(0o755)
        source = self.directory / "site"
        source.mkdir(exist_ok=True)
        for path in self._cluster.iterdir():
            if path.suffix != ".conf":
                continue
            text = path.read_text(encoding="utf-8").replace("@DIR@", str(self.directory))
            if path.name == "slurm.conf":
                first = {"FirstJobId": str(scene.first_job_id)}
                text = overridden(text, {**first, **IN_STEPS, **scene.config_overrides})
            if path.name == "gres.conf":
                self._make_devices(text)
            (source / path.name).write_text(text, encoding="utf-8")
        conf = source / "slurm.conf"
        text = conf.read_text(encoding="utf-8")
        conf.write_text(overridden(text, {"SlurmdTimeout": str(SILENT_S)}), encoding="utf-8")
        self._spur("up", "--conf", str(conf))
        self._tool("link", "--python", str(self._bins[Entry.PYTHON]))
        self._silence()
        self._load_accounts()
        self._await_nodes()
        self._configure(text)

    def _configure(self, text: str) -> None:
        """Let this slurm.conf be in force from now on. Raises: OperatorFault."""
        self._conf.write_text(text, encoding="utf-8")
        taken = self.run("scontrol reconfigure", user="root", environment={})
        if taken.exit_code:
            raise OperatorFault(f"scontrol reconfigure: {taken.stderr.strip()}")

    def _load_accounts(self) -> None:
        """Do what the recording's accounts.txt says. Raises: OperatorFault."""
        path = self._cluster / "accounts.txt"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            ran = self.run(f"sacctmgr -i {line}", user="root", environment={})
            if ran.exit_code:
                raise OperatorFault(f"sacctmgr -i {line}: {(ran.stderr or ran.stdout).strip()}")

    def stop(self) -> None:
        """End the cluster and remove its directory."""
        try:
            self._spur("down")
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _make_devices(self, gres: str) -> None:
        for folder, stem, first, last in re.findall(r"File=(\S+)/(\w+)\[(\d+)-(\d+)\]", gres):
            for number in range(int(first), int(last) + 1):
                Path(folder, f"{stem}{number}").touch()

    def _spur(self, *words: str) -> str:
        return self._tool(*words, "--dir", str(self._up_directory))

    def _tool(self, *words: str) -> str:
        command = [sys.executable, "-c", _SPUR, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode and words[0] != "status":
            raise OperatorFault(f"spur {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def _await_nodes(self) -> None:
        """Wait until the nodes that have an agent are there, and the silent ones are down.

        A node that does not come in time is told of by the cases that need it.
        """
        expected = {
            name: "down" if name in SILENT_NODES else "idle"
            for name in map(_node_of, self._agents())
        }
        until = time.monotonic() + READY_S
        while expected and time.monotonic() < until:
            shown = self.run("sinfo -h -N -o '%N %T'", user="root", environment={}).stdout
            states = dict(line.split()[:2] for line in shown.splitlines())
            if all(states.get(name, "").startswith(state) for name, state in expected.items()):
                return
            time.sleep(0.2)

    def _agents(self) -> list[dict[str, str]]:
        """Return the agents of nodes, as `spur status` tells of them."""
        rows = [json.loads(line) for line in self._spur("status", "--json").splitlines()]
        return [row for row in rows if row.get("role") == "agent"]

    def _silence(self) -> None:
        for name in sorted(SILENT_NODES):
            self.node(name, "down")

    def node(self, name: str, action: str) -> None:
        """Start or stop the agent of a node."""
        if action == "up":
            self._spur("up")
            self._silence()
            return
        for row in self._agents():
            if _node_of(row) == name and row.get("pid"):
                os.kill(int(row["pid"]), signal.SIGKILL)

    @contextmanager
    def unscheduled(self) -> Iterator[None]:
        """Let no job be started meanwhile."""
        pids = _schedulers(self._up_directory)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def count_up(self, number: int) -> None:
        """Let the next job have this number, unless the cluster is beyond it."""
        shown = self.run("squeue -h -a -t all -o %A", user="root", environment={}).stdout
        last = max(map(int, shown.split()), default=number)
        left_out = "sbatch --parsable -H -J left-out -o /dev/null --wrap true"
        for _ in range(last + 1, number):
            made = self.run(left_out, user="root", environment={}).stdout.strip()
            self.run(f"scancel {made}", user="root", environment={})

    # -- commands
    def take_turn(self) -> None:
        """Let a case begin: with commands that start in another way, if they take turns."""
        if self._entry is Entry.TURNS:
            self._bin = next(self._turns)

    @property
    def commands(self) -> frozenset[str]:
        """Which of Slurm's commands there are."""
        return frozenset(path.name for path in self._bin.iterdir())

    def home(self, user: str) -> Path:
        """Return the working directory of a user's commands."""
        found = self._account(user)
        if user in USERS and found is not None:
            return Path(found.pw_dir)
        return self._work

    def write(self, name: str, content: str, user: str, mode: str) -> None:
        """Write a file of a user."""
        path = self.home(user) / name
        path.write_text(content.replace("@DIR@", str(self.directory)), encoding="utf-8")
        path.chmod(int(mode, 8))
        account = self._account(user)
        if account is not None:
            os.chown(path, account.pw_uid, account.pw_gid)

    def run(
        self,
        command: str,
        *,
        user: str,
        environment: Mapping[str, str],
        stdin: str = "",
        timeout_s: float = COMMAND_S,
    ) -> Ran:
        """Run a command in a shell, as a user with these variables and the usual few."""
        home = str(self.home(user))
        variables = {
            "PATH": f"{self._bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "TZ": "UTC",
            "HOME": home,
            "USER": user,
            "LOGNAME": user,
            "SHELL": "/bin/bash",
            "SLURM_CONF": str(self._conf),
            **environment,
        }
        account = self._account(user)
        shown = command.replace("@DIR@", str(self.directory))
        with subprocess.Popen(
            ["bash", "-c", shown],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env=variables,
            start_new_session=True,
            preexec_fn=partial(_log_in, account) if account else None,
        ) as process:
            try:
                out, err = process.communicate(stdin.encode(), timeout=timeout_s)
                code: int | None = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                code = None
        if code is not None and code < 0:
            code = 128 - code
        return Ran(self._text(out), self._text(err), code)

    def _text(self, output: bytes) -> str:
        shown = output.decode("utf-8", "backslashreplace")
        for ours, recorded in (
            # The recorded cluster's commands were those of the system.
            *((f"{each}:", "") for each in self._bins.values()),
            (str(self._conf), "@DIR@/etc/slurm.conf"),
            (str(self.directory), "@DIR@"),
        ):
            shown = shown.replace(ours, recorded)
        # What finds the cluster stands in every environment: Slurm's commands have a default.
        shown = re.sub(r"(?m)^SPUR_SOCKET=.*\n", "", shown)
        # A cluster of ours takes ports that are free.
        shown = re.sub(r"(SLURM_WORKING_CLUSTER=\w+:[\d.]+):\d+:", rf"\1:{self._port}:", shown)
        # Its controller saw every command come from 127.0.0.1 and called that localhost.
        return re.sub(r"AllocNode:Sid=[^\s:(]+:", "AllocNode:Sid=localhost:", shown)

    def _account(self, user: str) -> pwd.struct_passwd | None:
        """Return whom commands run as; None for ourselves, which is all that others can do."""
        if os.geteuid():
            return None
        try:
            return pwd.getpwnam(user)
        except KeyError:
            return None


def _schedulers(directory: Path) -> list[int]:
    """Return the processes that plan for the cluster of a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode("utf-8", "replace").split("\0")
            if "spur.controller.scheduler" in words and any(
                word.startswith(f"{directory}/") for word in words
            ):
                found.append(int(path.parent.name))
    return found


_LIBC = ctypes.CDLL(None, use_errno=True)


def _log_in(account: pwd.struct_passwd) -> None:
    """Be on a host of that name, and then the user; runs in the child.

    Popen's own way to a user comes first, and no user may give a host another name.
    """
    if _LIBC.unshare(_CLONE_NEWUTS) == 0:
        _LIBC.sethostname(LOGIN_HOST.encode(), len(LOGIN_HOST))
    os.setgroups(os.getgrouplist(account.pw_name, account.pw_gid))
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
