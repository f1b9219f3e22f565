"""Hosts made of network namespaces, each with one cable to a router that can cut any direction.

    host 1 (10.213.1.2) ----- router ----- host 2 (10.213.2.2)
                                 |
                                 +-------- host 3 (10.213.3.2)

A cut is a rule of the router: what one host sends to another vanishes without a word to either, as
in a network that is broken in the middle. Names carry the process that made them; what is left of
processes that died is removed. Source: ip-netns(8), ip-rule(8).
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["Hosts", "can_make_hosts"]

_CLONE_NEWNET = 0x40000000
"""Source: setns(2)."""

_NAME = re.compile(r"spur-(\d+)-\w+")

_LIBC = ctypes.CDLL(None, use_errno=True)


def can_make_hosts() -> bool:
    """Whether this process may make network namespaces, with virtual cables between them."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"spur-{os.getpid()}-probe"
    try:
        _ip("netns", "add", name)
    except OSError:
        return False
    try:
        _ip(
            "link",
            "add",
            "one",
            "netns",
            name,
            "type",
            "veth",
            "peer",
            "name",
            "two",
            "netns",
            name,
        )
    except OSError:
        return False
    finally:
        _ip("netns", "del", name)
    return True


class Hosts:
    """Hosts that exist while this is entered; numbered from 1."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._cuts: set[tuple[int, int]] = set()

    def __enter__(self) -> Hosts:
        _remove_leftovers()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._remove()

    # -- who is who
    def address(self, number: int) -> str:
        """Return a host's address."""
        return f"10.213.{number}.2"

    def prefix(self, number: int) -> list[str]:
        """Return the words that run a command on a host."""
        return ["ip", "netns", "exec", self._name(number)]

    @contextmanager
    def inside(self, number: int) -> Iterator[None]:
        """Let this thread be on a host: sockets that it makes are there."""
        with (
            open("/proc/thread-self/ns/net", "rb") as home,
            open(f"/run/netns/{self._name(number)}", "rb") as there,
        ):
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    # -- what breaks
    def cut(self, sender: int, receiver: int) -> None:
        """Let nothing pass from one host to another; the other direction is not touched."""
        if (sender, receiver) not in self._cuts:
            self._rule("add", sender, receiver)
            self._cuts.add((sender, receiver))

    def cut_both(self, side: Sequence[int], other: Sequence[int]) -> None:
        """Let nothing pass between two groups of hosts."""
        for one in side:
            for two in other:
                self.cut(one, two)
                self.cut(two, one)

    def set_cuts(self, cuts: Set[tuple[int, int]]) -> None:
        """Let nothing pass where (sender, receiver) is among these, and everything elsewhere."""
        for sender, receiver in sorted(self._cuts - cuts):
            self._rule("del", sender, receiver)
            self._cuts.discard((sender, receiver))
        for sender, receiver in sorted(cuts):
            self.cut(sender, receiver)

    def heal(self) -> None:
        """Let everything pass."""
        for sender, receiver in sorted(self._cuts):
            self._rule("del", sender, receiver)
        self._cuts.clear()

    # -- inside
    def _name(self, number: int) -> str:
        return f"spur-{os.getpid()}-{number}"

    @property
    def _router(self) -> str:
        return f"spur-{os.getpid()}-router"

    def _rule(self, verb: str, sender: int, receiver: int) -> None:
        _ip(
            *("-n", self._router, "rule", verb, "from", self.address(sender)),
            *("to", self.address(receiver), "priority", "100", "blackhole"),
        )

    def _make(self) -> None:
        router = self._router
        _ip("netns", "add", router)
        _ip("-n", router, "link", "set", "lo", "up")
        subprocess.run(
            ["ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True
        )
        for number in range(1, self.count + 1):
            host, cable, gateway = self._name(number), f"host{number}", f"10.213.{number}.1"
            _ip("netns", "add", host)
            _ip("-n", host, "link", "set", "lo", "up")
            _ip(
                *("link", "add", "eth0", "netns", host),
                *("type", "veth", "peer", "name", cable, "netns", router),
            )
            _ip("-n", host, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            _ip("-n", host, "link", "set", "eth0", "up")
            _ip("-n", router, "addr", "add", f"{gateway}/24", "dev", cable)
            _ip("-n", router, "link", "set", cable, "up")
            _ip("-n", host, "route", "add", "default", "via", gateway)

    def _remove(self) -> None:
        self._cuts.clear()
        for name in _names():
            if name.startswith(f"spur-{os.getpid()}-"):
                _ip("netns", "del", name)


def _ip(*words: str) -> None:
    run = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if run.returncode:
        raise OSError(f"ip {' '.join(words)}: {run.stderr.strip()}")


def _names() -> list[str]:
    directory = Path("/run/netns")
    return sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []


def _remove_leftovers() -> None:
    """Remove hosts whose maker is gone."""
    for name in _names():
        match = _NAME.fullmatch(name)
        if match is not None and not Path(f"/proc/{match[1]}").exists():
            with suppress(OSError):
                _ip("netns", "del", name)


def _enter(descriptor: int) -> None:
    # The standard library has setns from Python 3.12 on.
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
