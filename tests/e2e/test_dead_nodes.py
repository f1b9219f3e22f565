"""Nodes that died: what an operator types, on a real controller."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import Controllers
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.wire.cluster import Configured, Reconfigure

SPUR = "import sys; from spur_cli.main import main; sys.exit(main())"


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    """A configured cluster of one controller."""
    directory = tmp_path_factory.mktemp("hosts")
    cluster = Controllers.create(directory, 1, first_port=25110)
    cluster.start()

    async def prepare() -> None:
        async with cluster.client() as client:
            files = (ConfigFile(CONFIG_FILE, SMALL_CONFIG),)
            assert isinstance(await client.ask(Reconfigure(files), Configured), Configured)

    try:
        asyncio.run(prepare())
        yield cluster
    finally:
        cluster.stop()


def spur(controllers: Controllers, *words: str) -> subprocess.CompletedProcess[str]:
    socket = controllers.members[0].directory / "spurctld.sock"
    return subprocess.run(
        [sys.executable, "-c", SPUR, *words],
        env={**os.environ, "SPUR_SOCKET": str(socket)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ("n9", "there is no node 'n9'; nothing was changed"),
        ("n[1-", "brackets do not match in host list"),
        ("n2", "node 'n2' is heard; nothing was changed; to end its jobs, set it down"),
    ],
)
def test_only_a_lost_node_is_dead(controllers: Controllers, nodes: str, says: str) -> None:
    """A name is mistyped, or the node is not lost at all."""
    told = spur(controllers, "node", "confirm-dead", nodes)
    assert told.returncode == 1
    assert says in told.stderr
