"""`spur conf check`: what becomes of each parameter, before anything is sent anywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from spur_cli.main import main

CLUSTER = Path(__file__).parents[2] / "data" / "slurm" / "cluster"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a directory with a real cluster's files."""
    shutil.copytree(CLUSTER, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_every_parameter_is_shown_with_its_verdict(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Someone wonders what Spur would make of the site's files."""
    assert main(["spur", "conf", "check", str(site / "slurm.conf")]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0].split() == ["PLACE", "OF", "PARAMETER", "VALUE", "VERDICT", "NOTE"]
    assert lines[1].split() == ["slurm.conf:1", "ClusterName", "oracle", "honoured"]
    assert any(line.startswith("gres.conf:1") and "mi300x" in line for line in lines)
    assert any(line.startswith("topology.conf:7") for line in lines)
    assert shown.err.endswith("slurm.conf: no errors\n")


def test_rows_come_as_json_and_parsable_too(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script counts what is not yet honoured."""
    assert main(["spur", "conf", "check", str(site / "slurm.conf"), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[2] == {
        "place": "slurm.conf:3",
        "of": "",
        "parameter": "SlurmctldPort",
        "value": "26817",
        "verdict": "not yet honoured",
        "note": "",
    }
    assert main(["spur", "conf", "check", str(site / "slurm.conf"), "--parsable"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "slurm.conf:1||ClusterName|oracle|honoured|"


def test_errors_have_file_and_line_and_a_status(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The nodes stand in an included file; two slips are in it, one file is missing."""
    with (site / "slurm.conf").open("a") as file:
        file.write("Include more.conf\nInclude gone.conf\n")
    (site / "more.conf").write_text("NodeName=z1 CPUs=lots\nNodeNam=z2\n")
    assert main(["spur", "conf", "check", str(site / "slurm.conf")]) == 1
    shown = capsys.readouterr()
    assert "NodeName=z1" in shown.out
    assert "wrong value" in shown.out
    assert "unknown" in shown.out
    first, second, third, last = shown.err.splitlines()
    assert first == "more.conf:1: CPUs is 'lots': it takes a whole number from 1 to 65535"
    assert second == "more.conf:2: NodeNam is not known"
    assert third.endswith("the included file 'gone.conf' is not there")
    assert "3 errors; a cluster would refuse it" in last


def test_spur_toml_is_checked_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A site that began with Spur has no slurm.conf."""
    path = tmp_path / "spur.toml"
    path.write_text('[cluster]\nname = "hall"\n')
    assert main(["spur", "conf", "check", str(path)]) == 0
    path.write_text("[cluster]\nnam = 3\n")
    assert main(["spur", "conf", "check", str(path)]) == 1
    assert "spur.toml:2: cluster.nam is not known" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(None, "can't be read: No such file"), (b"A=1\nB=\xff\n", "slurm.conf:2: the file is no UTF")],
)
def test_a_file_that_is_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes | None, sentence: str
) -> None:
    """The wrong path, or a file that is no text."""
    path = tmp_path / "slurm.conf"
    if data is not None:
        path.write_bytes(data)
    assert main(["spur", "conf", "check", str(path)]) == 1
    assert sentence in capsys.readouterr().err


def test_files_that_are_too_big_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody names a disk image."""
    path = tmp_path / "slurm.conf"
    path.write_bytes(b"#" * (5 << 20))
    assert main(["spur", "conf", "check", str(path)]) == 1
    assert "more than 4194304 bytes" in capsys.readouterr().err
