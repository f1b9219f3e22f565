"""Debian's etcd as a measured peer: three members on loopback, its own defaults."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.certificates import Certificates

__all__ = ["EtcdCluster", "etcd_version"]

_START_SECONDS_MAX = 30.0


def etcd_version() -> str:
    """Return the installed etcd's version. Raises: SystemExit when there is none."""
    program = shutil.which("etcd")
    if program is None:
        raise SystemExit("bench: no etcd here; run ops/peers first. Nothing was measured")
    out = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return out.stdout.split("\n", 1)[0].removeprefix("etcd Version: ")


class EtcdCluster:
    """Members 0..n-1; client ports base + 10 + i, peer ports base + i."""

    def __init__(
        self,
        directory: Path,
        *,
        base_port: int,
        certificates: Certificates | None = None,
        count: int = 3,
        pre_vote: bool = False,
        hosts: Sequence[str] = (),
        prefixes: Sequence[Sequence[str]] = (),
    ) -> None:
        """Prepare; with `hosts` each member listens on an address of its own.

        `prefixes` are the words that run a command on each of these.
        """
        self.count = count
        self._hosts = list(hosts) or ["127.0.0.1"] * count
        self._prefixes = list(prefixes) or [()] * count
        self._directory = directory
        self._base_port = base_port
        self._certificates = certificates
        self._pre_vote = pre_vote
        self._scheme = "http" if certificates is None else "https"
        self._tls = (
            None
            if certificates is None
            else ssl.create_default_context(cafile=certificates.authority)
        )
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self._tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=self._tls))
        self._opener = urllib.request.build_opener(*handlers)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def address(self, member: int) -> str:
        """Return where clients reach this member."""
        return f"{self._hosts[member]}:{self._base_port + 10 + member}"

    def url(self, member: int) -> str:
        """Return the same as a URL."""
        return f"{self._scheme}://{self.address(member)}"

    def start(self) -> None:
        """Start all members and wait for a leader."""
        for member in range(self.count):
            self.start_member(member)
        self.wait_leader()

    def start_member(self, member: int) -> None:
        """Start one member, on the data it has if any."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / f"member-{member}.log").open("ab") as log:
            self._processes[member] = subprocess.Popen(
                self._command(member), stdout=log, stderr=subprocess.STDOUT
            )

    def _command(self, member: int) -> list[str]:
        def peer(number: int) -> str:
            return f"{self._scheme}://{self._hosts[number]}:{self._base_port + number}"

        peers = ",".join(f"m{number}={peer(number)}" for number in range(self.count))
        command = [*self._prefixes[member], "etcd", "--name", f"m{member}"]
        command += ["--data-dir", str(self._directory / f"member-{member}")]
        command += ["--logger", "zap", "--log-level", "error"]
        command += ["--listen-client-urls", self.url(member)]
        command += ["--advertise-client-urls", self.url(member)]
        command += ["--listen-peer-urls", peer(member)]
        command += ["--initial-advertise-peer-urls", peer(member)]
        command += ["--initial-cluster", peers]
        if self._pre_vote:
            command.append("--pre-vote")
        if self._certificates is not None:
            files = self._certificates
            command += ["--cert-file", str(files.certificate), "--key-file", str(files.key)]
            command += ["--peer-cert-file", str(files.certificate)]
            command += ["--peer-key-file", str(files.key)]
            command += ["--peer-trusted-ca-file", str(files.authority), "--peer-client-cert-auth"]
        return command

    def leader(self) -> int | None:
        """Return the member that says it leads; None when none does."""
        for member, process in self._processes.items():
            if process.poll() is not None:
                continue
            try:
                status = self._post(member, "/v3/maintenance/status")
            except (OSError, urllib.error.URLError, json.JSONDecodeError):
                continue
            header = status.get("header")
            if isinstance(header, dict) and header.get("member_id") == status.get("leader"):
                return member
        return None

    def wait_leader(self) -> int:
        """Wait for a leader. Raises: TimeoutError."""
        end = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < end:
            leader = self.leader()
            if leader is not None:
                return leader
            time.sleep(0.05)
        raise TimeoutError(f"etcd has no leader after {_START_SECONDS_MAX:.0f} s")

    def revision(self, member: int) -> int:
        """Return how many changes the store has seen: it rises by one a put."""
        answer = self._post(member, "/v3/kv/range", {"key": "AA=="})
        header = answer["header"]
        if not isinstance(header, dict):
            raise TypeError(f"an etcd answer without a header: {answer}")
        return int(header["revision"])

    def _post(
        self, member: int, path: str, body: dict[str, str] | None = None
    ) -> dict[str, object]:
        request = urllib.request.Request(
            self.url(member) + path, data=json.dumps(body or {}).encode()
        )
        with self._opener.open(request, timeout=2) as answer:
            parsed: dict[str, object] = json.load(answer)
        return parsed

    def pids(self) -> dict[int, int]:
        """Return the process ids of the members that run."""
        return {member: process.pid for member, process in self._processes.items()}

    def kill(self, member: int) -> None:
        """End one member as a crash would (SIGKILL)."""
        process = self._processes.pop(member)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End all members and wait for them."""
        for member in list(self._processes):
            self.kill(member)
