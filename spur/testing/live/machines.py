"""Machines that are set up from nothing: hosts of their own, with directories of their own.

Each is a network namespace (`hosts.py`) with its own host name, and in its own mount namespace its
own /etc, /home, /opt, /root, /run, /usr/local/bin, /var/lib and /var/log. What is typed there
touches nothing of the machine that plays them. `ssh` between them works by name.

What they lack: systemd, and an index of Python packages. `python3 -m venv` therefore makes an
environment that sees the packages of this one, and pip installs no dependencies.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from spur.testing.live.hosts import Hosts, can_make_hosts
from spur.values.errors import SpurError

__all__ = ["Machines", "can_make_machines"]

OWN = ("home", "opt", "run", "usr/local/bin", "var/lib", "var/log")
"""Directories that a machine begins with empty."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PATIENCE_S = 120.0

TOOLS = ("unshare", "nsenter", "mount", "useradd", "runuser", "setpriv", "tar")

_PYTHON = """\
#!/bin/sh
{python} "$@" || exit
if [ "$1 $2" = "-m venv" ]; then
    echo {packages} > "$3"/lib/python{version}/site-packages/borrowed.pth
fi
"""

_SSH = """\
#!/bin/sh
host=$1
shift
exec nsenter -t "$(cat {pids}/"$host")" -m -n -u -- {clean} sh -c "cd /root; $*"
"""


def can_make_machines() -> bool:
    """Whether this process may make such machines."""
    return can_make_hosts() and all(shutil.which(tool) for tool in TOOLS)


class Machines:
    """Machines that exist while this is entered, called h1, h2 and so on."""

    def __init__(self, directory: Path, count: int) -> None:
        self.directory = directory
        self.names = tuple(f"h{number}" for number in range(1, count + 1))
        self._hosts = Hosts(count)
        self._holders: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Machines:
        self._hosts.__enter__()
        try:
            (self.directory / "pids").mkdir()
            for number, name in enumerate(self.names, 1):
                self._make(number, name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for name, holder in self._holders.items():
            self._end_all(name)
            holder.kill()
            holder.communicate()
        self._hosts.__exit__(*error)

    def files(self, name: str) -> Path:
        """Return where the own directories of a machine lie, as seen from here."""
        return self.directory / name

    def type(self, name: str, script: str) -> str:
        """Let root type something on a machine, in its home; return what is shown.

        Raises: SpurError when a command fails.
        """
        done = subprocess.run(
            [*self._enter(name), *_clean(), "sh", "-ec", f"cd /root\n{script}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode:
            raise SpurError(f"on {name}: {script}{done.stdout}ended with {done.returncode}")
        return done.stdout

    # -- inside

    def _enter(self, name: str) -> list[str]:
        return ["nsenter", "-t", str(self._holders[name].pid), "-m", "-n", "-u", "--"]

    def _make(self, number: int, name: str) -> None:
        """Make the machine's directories, and a process that holds its namespaces."""
        own = self.files(name)
        for path in OWN:
            (own / path).mkdir(parents=True)
        shutil.copytree("/etc", own / "etc", symlinks=True)
        lines = [f"{self._hosts.address(place)} {each}" for place, each in self._numbered()]
        (own / "etc" / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        (own / "etc" / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        self._write_tools(own)
        mounts = [f"mount --bind {own / path} /{path}" for path in (*OWN, "etc")]
        script = [f"hostname {name}", *_opened(own), *mounts, "echo ready", "exec sleep infinity"]
        holder = subprocess.Popen(
            [
                *self._hosts.prefix(number),
                *("unshare", "-m", "-u", "--propagation", "private"),
                *("sh", "-ec", "\n".join(script)),
            ],
            stdout=subprocess.PIPE,
        )
        self._holders[name] = holder
        (self.directory / "pids" / name).write_text(f"{holder.pid}\n")
        if holder.stdout is None or holder.stdout.readline() != b"ready\n":
            raise SpurError(f"machine {name} could not be made")

    def _numbered(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.names, 1)

    def _write_tools(self, own: Path) -> None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        python = Path(sys.base_prefix) / "bin" / f"python{version}"
        packages = sysconfig.get_path("purelib")
        tools = {
            "python3": _PYTHON.format(python=python, packages=packages, version=version),
            "ssh": _SSH.format(pids=self.directory / "pids", clean=shlex.join(_clean())),
        }
        for tool, text in tools.items():
            path = own / "usr/local/bin" / tool
            path.write_text(text)
            path.chmod(0o755)

    def _end_all(self, name: str) -> None:
        """End whatever was started on a machine: it is in the machine's mount namespace."""
        own = _mounts_of(self._holders[name].pid)
        end_s = time.monotonic() + PATIENCE_S
        number = signal.SIGTERM
        while time.monotonic() < end_s and (found := [*_others_in(own, self._holders[name].pid)]):
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.5)
            number = signal.SIGKILL


def _clean() -> list[str]:
    """Return the words that give a command the environment of root who has just logged in."""
    pip = [f"PIP_{word}=1" for word in ("NO_DEPS", "NO_INDEX", "NO_COMPILE")]
    pip.append("PIP_DISABLE_PIP_VERSION_CHECK=1")
    return ["env", "-i", f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8", *pip]


def _opened(own: Path) -> list[str]:
    """Return what makes the machine's /root, and lets every user reach this Python from there.

    A Python below a directory that only root may enter is shown again in an open one.
    """
    needed = {Path(sys.base_prefix).resolve(), Path(sysconfig.get_path("purelib")).resolve()}
    closed: dict[Path, list[Path]] = {Path("/root"): []}
    for path in needed:
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & 0o001:
                closed.setdefault(folder, []).append(path)
                break
    lines = []
    for number, (folder, paths) in enumerate(sorted(closed.items())):
        shown = own / f"open{number}"
        for path in paths:
            inner = shown / path.relative_to(folder)
            lines += [f"mkdir -p {inner}", f"mount --bind {path} {inner}"]
        lines += [f"mkdir -p {shown}", f"mount --rbind {shown} {folder}"]
    return lines


def _mounts_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def _others_in(mounts: str, holder: int) -> Sequence[int]:
    """Return the processes in a mount namespace, but the one that holds it."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids if pid != holder and mounts and _mounts_of(pid) == mounts]
