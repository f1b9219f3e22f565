"""A real controller, and a site's own files handed to it by command line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.controllers import Controllers
from spur.wire.cluster import ConfigInfo, ShowConfig
from spur.wire.partitions import ListPartitions, PartitionList

CLUSTER = Path(__file__).parents[1] / "data" / "slurm" / "cluster"
SPUR = "import sys; from spur_cli.main import main; sys.exit(main())"


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    """Return a cluster of one controller that runs."""
    cluster = Controllers.create(tmp_path / "hosts", 1, first_port=24060)
    cluster.start()
    try:
        asyncio.run(cluster.leader())
        yield cluster
    finally:
        cluster.stop()


def spur(
    controllers: Controllers, *words: str, slurm_conf: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command beside the controller, perhaps on a host with such a slurm.conf."""
    socket = controllers.members[0].directory / "spurctld.sock"
    return subprocess.run(
        [sys.executable, "-c", SPUR, *words],
        env={**os.environ, "SPUR_SOCKET": str(socket), "SLURM_CONF": str(slurm_conf or "")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def present(controllers: Controllers) -> tuple[ConfigInfo, PartitionList]:
    """Return what is in force."""

    async def ask() -> tuple[object, object]:
        async with controllers.local(controllers.members[0]) as client:
            return (
                await client.ask(ShowConfig(), ConfigInfo),
                await client.ask(ListPartitions(), PartitionList),
            )

    config, partitions = asyncio.run(ask())
    assert isinstance(config, ConfigInfo)
    assert isinstance(partitions, PartitionList)
    return config, partitions


def test_a_site_hands_in_its_files(controllers: Controllers, tmp_path: Path) -> None:
    """It takes them, then a change of them; a slip is refused; at a restart no file is read."""
    site = tmp_path / "site"
    shutil.copytree(CLUSTER, site)
    path = site / "slurm.conf"
    first = spur(controllers, "reconfigure", str(path))
    assert first.returncode == 0, first.stderr
    assert "nodes n5" in first.stdout
    assert "topology switch core" in first.stdout
    config, partitions = present(controllers)
    assert config.settings is not None
    assert config.settings.name == "oracle"
    assert [row.name for row in partitions.partitions][:3] == ["debug", "long", "gpu"]

    text = path.read_text()
    path.write_text(text.replace("KillWait=5", "KillWait=7") + "Include more.conf\n")
    (site / "more.conf").write_text("NodeName=z[1-2] CPUs=2\n")
    second = spur(controllers, "reconfigure", str(path), "--json")
    assert second.returncode == 0, second.stderr
    rows = [json.loads(line) for line in second.stdout.splitlines()]
    assert [row["what"] for row in rows] == ["cluster.kill_wait_s", "nodes z[1-2]"]
    assert rows[0] == {"what": "cluster.kill_wait_s", "before": "5", "after": "7"}
    before = present(controllers)

    (site / "more.conf").write_text("NodeName=z[1-2] CPUs=2\nNodeName=z2 Weigth=4\n")
    bad = spur(controllers, "reconfigure", str(path))
    assert bad.returncode == 1
    assert bad.stdout == ""
    assert "more.conf:2: Weigth is not known; did you mean Weight?" in bad.stderr
    assert "more.conf:2: nodes z2 are configured twice" in bad.stderr
    assert bad.stderr.rstrip().endswith("nothing was changed")
    assert present(controllers) == before

    controllers.stop()
    shutil.rmtree(site)
    controllers.start()
    asyncio.run(controllers.leader())
    assert present(controllers) == before


def test_reconfigure_without_a_controller_says_whom_it_asked(tmp_path: Path) -> None:
    """Somebody types the command on a host that runs no controller."""
    path = tmp_path / "spur.toml"
    path.write_text('[cluster]\nname = "hall"\n')
    words = [sys.executable, "-c", SPUR, "reconfigure", str(path)]
    environment = {name: text for name, text in os.environ.items() if name != "SPUR_SOCKET"}
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "no controller took the request" in done.stderr
    assert "unix:/run/spur/spur.sock: No such file or directory" in done.stderr


def test_scontrol_hands_in_the_file_of_this_host(controllers: Controllers, tmp_path: Path) -> None:
    """An administrator of Slurm edits slurm.conf and types what they always typed."""
    path = tmp_path / "slurm.conf"
    shutil.copytree(CLUSTER, tmp_path, dirs_exist_ok=True)
    taken = spur(controllers, "scontrol", "reconfigure", slurm_conf=path)
    assert (taken.returncode, taken.stdout, taken.stderr) == (0, "", "")
    config, _ = present(controllers)
    assert config.settings is not None
    assert config.settings.kill_wait_s == 5
    path.write_text(path.read_text() + "KillWeight=5\n")
    refused = spur(controllers, "scontrol", "reconfigure", slurm_conf=path)
    assert refused.returncode == 1
    assert refused.stderr.startswith("slurm_reconfigure error: ")
    assert f"slurm.conf:{len(path.read_text().splitlines())}" in refused.stderr
    missing = spur(controllers, "scontrol", "reconfigure", slurm_conf=tmp_path / "none")
    assert missing.returncode == 1
    assert "can't be read" in missing.stderr
