"""A host is enrolled on the controller's machine, and its agent's directory carried to it."""

from __future__ import annotations

import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spur.client.tls import credentials_in, validity_of
from spur.controller.birth import TLS_DIRECTORY
from spur.controller.enrol import AGENT_SETTINGS_FILE
from spur.controller.main import main
from spur.server.credentials import verify_certificate
from spur.testing.controllers import Controllers
from spur.wire.cluster import ClusterInfo, ShowCluster
from spur.wire.hello import HostName


def test_host_is_enrolled_once_and_certified_as_often_as_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator enrols a node's host, and later does so again because the disk was lost."""
    controllers = Controllers.create(tmp_path, 1, first_port=23200, settings="tick_ms = 15\n")
    [member] = controllers.members
    agent = tmp_path / "a"
    words = ["issue", "--dir", str(member.directory), "--host", "h1", "--role", "compute"]
    words += ["--node", "n1", "--node", "n2", "--out", str(agent), "--set", "gpus=2"]
    controllers.start()
    try:
        with controllers.blocking() as client:
            shown = client.ask(ShowCluster(), ClusterInfo)
            assert isinstance(shown, ClusterInfo)
            for _ in range(2):
                assert main(words) == 0
            hosts = client.ask(ShowCluster(), ClusterInfo)
            assert isinstance(hosts, ClusterInfo)
        [host] = hosts.hosts
        assert (host.name, host.role) == ("h1", "compute")
        said = capsys.readouterr().out.splitlines()
        assert (
            said
            == [f"host h1 is compute host {host.host_id}; its agent's directory is {agent}"] * 2
        )
        files = credentials_in(agent / TLS_DIRECTORY)
        name = verify_certificate(
            files.authority.read_bytes(),
            files.host.read_bytes(),
            shown.cluster_id,
            datetime.fromtimestamp(time.time(), UTC),
        )
        ends_s = validity_of(files.host.read_text("ascii"))[1]
        assert host.ends_ns == ends_s * 1_000_000_000
        assert name == HostName(cluster_id=shown.cluster_id, role="compute", id=host.host_id)
        assert tomllib.loads((agent / AGENT_SETTINGS_FILE).read_text()) == {
            "cluster_id": shown.cluster_id.hex(),
            "controllers": [member.rpc_address],
            "nodes": ["n1", "n2"],
            "address": "",
            "gpus": 2,
        }
        assert main([*words[:5], "--role", "login", *words[7:]]) == 78
        assert main([*words, "--set", "gpu=2"]) == 78
    finally:
        assert member.stop() == 0


def test_host_is_enrolled_from_a_controller_that_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator is logged in on whichever of three controllers: any of them finds the leader."""
    controllers = Controllers.create(tmp_path, 3, first_port=23240, settings="tick_ms = 15\n")
    controllers.start()
    try:
        for member in controllers.members:
            words = ["issue", "--dir", str(member.directory), "--host", "h1", "--role", "compute"]
            assert main([*words, "--out", str(tmp_path / "a")]) == 0
        assert len(set(capsys.readouterr().out.splitlines())) == 1
    finally:
        controllers.stop()
