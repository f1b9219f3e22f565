"""How a command finds its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.client.locate import ADDRESS_FILE, DEFAULT_SOCKET, locate
from spur.values.errors import OperatorFault


def test_socket_of_the_environment_comes_first(tmp_path: Path) -> None:
    """Someone's shell points at a cluster of their own."""
    (tmp_path / ADDRESS_FILE).write_text("unix:/elsewhere\n")
    environment = {"SPUR_SOCKET": "/run/mine.sock", "SLURM_CONF": str(tmp_path / "slurm.conf")}
    assert locate(environment) == ("unix:/run/mine.sock",)


def test_file_beside_slurm_conf_says_where(tmp_path: Path) -> None:
    """A site's profile sets SLURM_CONF, as it did for Slurm."""
    (tmp_path / ADDRESS_FILE).write_text("# ours\n\nunix:/run/a.sock # first\nctl:6816\n")
    environment = {"SPUR_SOCKET": "", "SLURM_CONF": str(tmp_path / "slurm.conf")}
    assert locate(environment) == ("unix:/run/a.sock", "ctl:6816")


@pytest.mark.parametrize("text", [None, "", "# nothing\n"])
def test_default_socket_is_asked_when_nothing_is_said(tmp_path: Path, text: str | None) -> None:
    """Someone logs in on a node where everything lies where it does by default."""
    if text is not None:
        (tmp_path / ADDRESS_FILE).write_text(text)
    assert locate({"SLURM_CONF": str(tmp_path / "slurm.conf")}) == (f"unix:{DEFAULT_SOCKET}",)
    assert locate({}) == (f"unix:{DEFAULT_SOCKET}",)


@pytest.mark.parametrize("content", [b"nowhere\n", b"unix:relative\n", b"\xff\xfe\n"])
def test_file_that_says_nonsense_is_refused(tmp_path: Path, content: bytes) -> None:
    """Someone edits the file and makes a mistake."""
    (tmp_path / ADDRESS_FILE).write_bytes(content)
    with pytest.raises(OperatorFault, match="nobody was asked"):
        locate({"SLURM_CONF": str(tmp_path / "slurm.conf")})
