"""What options of a submission need from the host where they are typed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spur.slurm.wording import SlurmError
from spur_cli.slurm.submitting import here, with_node_files


def refused(values: dict[str, object]) -> SlurmError:
    """Return how the options are refused."""
    with pytest.raises(SlurmError) as caught:
        with_node_files(values, "sbatch")
    return caught.value


@pytest.mark.parametrize("field", ["nodes_required", "nodes_excluded", "nodefile"])
def test_nodes_may_stand_in_a_file(tmp_path: Path, field: str) -> None:
    """Someone keeps the nodes of their group in a file."""
    path = tmp_path / "nodes.txt"
    path.write_text("n1\nn[2-3] n5\n\n")
    found = with_node_files({field: str(path), "tasks": 2}, "sbatch")
    wanted = "nodes_required" if field == "nodefile" else field
    assert found == {wanted: "n1,n[2-3],n5", "tasks": 2}


def test_a_host_list_is_no_file() -> None:
    """The usual case."""
    assert with_node_files({"nodes_required": "n[1-2]"}, "sbatch") == {"nodes_required": "n[1-2]"}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Someone submits from another directory than the file's."""
    path = tmp_path / "nosuch"
    missing = f"slurm_allocate_resources error opening file {path}, No such file or directory"
    error = refused({"nodefile": str(path)})
    assert error.lines == (
        f"sbatch: error: {missing}",
        "sbatch: error: Invalid --nodefile node file",
    )
    assert error.status == 255
    assert refused({"nodes_required": str(path)}).lines == (f"sbatch: error: {missing}",)


@pytest.mark.parametrize("content", [b"n[1-", b"\xff\xfe"])
def test_a_file_without_nodes_is_refused(tmp_path: Path, content: bytes) -> None:
    """The file is something else."""
    path = tmp_path / "nodes"
    path.write_bytes(content)
    assert "has no list of nodes" in refused({"nodefile": str(path)}).lines[0]


@pytest.mark.parametrize(
    ("name", "lines", "status"),
    [
        ("uid", ("sbatch: error: --uid only permitted by root user",), 255),
        ("gid", ("sbatch: error: --gid only permitted by root user",), 255),
        (
            "reboot",
            (
                "sbatch: error: rebooting of nodes is only allowed for admins",
                "sbatch: error: Batch job submission failed: Access/permission denied",
            ),
            1,
        ),
    ],
)
def test_what_takes_root_is_refused_to_others(
    monkeypatch: pytest.MonkeyPatch, name: str, lines: tuple[str, ...], status: int
) -> None:
    """A user tries to submit as another one; root hears that it is not there yet."""
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    error = refused({name: "u2"})
    assert (error.lines, error.status) == (lines, status)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "not honoured yet" in refused({name: "u2"}).lines[0]


def test_here_is_this_host_and_session() -> None:
    """A job remembers where it was submitted."""
    assert here().session_id == os.getsid(0)
    assert here().host == os.uname().nodename.partition(".")[0].encode()
