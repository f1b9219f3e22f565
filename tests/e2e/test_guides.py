"""The guides as their readers use them: every command block is run, in order, on real clusters.

A block that begins with ```sh is run by a shell of its own, in one directory for each page. What
differs between a site and a test (directories, addresses) is replaced, and daemons that stay in the
foreground are started beside the shell. Nothing else is changed.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.machine import ENVIRONMENT, MachineCluster
from spur_cli.commands.link import make_names

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"

PORTS = {"ctl:6821": 24_030, "ctl:6816": 24_031, "n1:6818": 24_032}

DAEMONS = {"spurctld": "spur.controller.main", "spurd": "spur.agent.main"}

SOCKETS = {"spurctld": "spurctld.sock", "spurd": "spurd.sock"}

PATIENCE_S = 60.0


def blocks_of(page: str) -> list[str]:
    """Return the command blocks of a guide."""
    return re.findall(r"^```sh\n(.*?)^```$", (GUIDES / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineCluster]:
    """Yield a cluster as README's five minutes make it."""
    made = MachineCluster(tmp_path_factory.mktemp("guides") / "up")
    made.up("--nodes", "4", "--gpus", "gfx942:8")
    yield made
    made.run("down")


def test_researcher_s_commands_work(cluster: MachineCluster, tmp_path: Path) -> None:
    """A researcher reads the guide from its first line to its last, and types all of it."""
    shown = [
        cluster.shell(f"exec 2>&1\n{block}", cwd=tmp_path) for block in blocks_of("researcher.md")
    ]
    text = "".join(shown)
    assert len(shown) >= 9
    assert "kept" in text
    assert "\n10\n20\n30\n40\n50\n60\n" in f"\n{text}"
    assert "ROCR_VISIBLE_DEVICES=0,1" in text
    assert "(Resources)" in text
    assert (tmp_path / "steps.out").read_text().count("n1") == 2
    assert re.fullmatch(r"job 1 on .+ with 2 tasks\n", (tmp_path / "train-1.out").read_text())


def test_auditor_s_commands_work(cluster: MachineCluster, tmp_path: Path) -> None:
    """An auditor checks the log of a cluster that ran a job."""
    cluster.shell("sbatch --wait --output=/dev/null --wrap true")
    directory = str(cluster.directory / "controllers" / "c1")
    shown = [
        cluster.shell("exec 2>&1\n" + block.replace("/var/lib/spur/ctl", directory), cwd=tmp_path)
        for block in blocks_of("auditor.md")
    ]
    assert len(shown) >= 5
    chains = re.findall(r"^chain +(\w{64})$", shown[1], re.MULTILINE)
    exported = (tmp_path / "log.jsonl").read_text()
    assert len(chains) == 3
    assert [chain for chain in chains if f'"chain":"{chain}"' not in exported] == []
    assert shown[2].startswith('{"index":3,')
    assert shown[2] in exported
    assert "job.submitted" in shown[4]


class Site:
    """One machine that stands for all hosts of a site."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        names = directory / "bin"
        make_names(str(names), "spur")
        for name, module in DAEMONS.items():
            launcher = names / name
            launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
            launcher.chmod(0o755)
        self._environment = {**ENVIRONMENT, "PATH": f"{names}:/usr/bin:/bin"}
        self._environment.pop("SPUR_SOCKET", None)
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._replaced = {
            "/var/lib/spur": str(directory / "lib"),
            "/run/spur": str(directory / "run"),
            "/tmp/hall": str(directory / "hall"),
            "/usr/local/bin": str(directory / "links"),
            **{name: f"127.0.0.1:{port}" for name, port in PORTS.items()},
        }

    def run(self, block: str) -> str:
        """Run a block; return what it prints. Lines that run a daemon return when it serves."""
        for name, here in self._replaced.items():
            block = block.replace(name, here)
        shown = ""
        *parts, last = re.split(r"^(spurc?t?l?d run .*\n)", block, flags=re.MULTILINE)
        kept = "".join(line for line in block.splitlines(True) if line.startswith("export "))
        for script, daemon in zip(parts[::2], parts[1::2], strict=True):
            shown += self._shell(script)
            self._start(shlex.split(daemon))
        return shown + self._shell(kept + last)

    def _shell(self, script: str) -> str:
        done = subprocess.run(
            ["sh", "-ec", script],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{script}{done.stdout}{done.stderr}"
        return done.stdout

    def _start(self, words: list[str]) -> None:
        name, directory = words[0], Path(words[-1])
        with (self._directory / f"{directory.name}.log").open("wb") as log:
            process = subprocess.Popen(
                words, cwd=self._directory, env=self._environment, stdout=log, stderr=log
            )
        self._daemons.append(process)
        settings = directory / f"{name}.toml"
        named = re.search(r'^socket = "(.+)"$', settings.read_text(), re.MULTILINE)
        socket = Path(named[1]) if named else directory / SOCKETS[name]
        end_s = time.monotonic() + PATIENCE_S
        while not socket.exists():
            assert process.poll() is None, f"{name} of {directory} ended"
            assert time.monotonic() < end_s, f"{name} of {directory} does not serve"
            time.sleep(0.05)

    def end(self) -> None:
        """End the daemons, the newest first."""
        for process in reversed(self._daemons):
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, as an administrator is")
def test_administrator_s_commands_work(tmp_path: Path) -> None:
    """An administrator makes a cluster of hosts by hand, and looks after it."""
    site = Site(tmp_path)
    try:
        shown = [site.run(block) for block in blocks_of("admin.md")]
    finally:
        site.end()
    text = "".join(shown)
    assert len(shown) >= 9
    assert "not yet" not in shown[0]
    assert re.search(r"^train.sh +works ", shown[2], re.MULTILINE)
    assert re.search(r"^spurd-n1 +agent +running", shown[3], re.MULTILINE)
    assert re.search(r"^gpu\* +up 1-00:00:00 +1 +idle n1$", shown[6], re.MULTILINE)
    assert "host login2 joined as login host" in shown[7]
    assert "new disk" in shown[8]
    assert "172800" in shown[8]
    assert re.search(r"^attachments_missing +0$", text, re.MULTILINE)
