"""What systemd hears of a daemon."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from spur.server.notify import Notifier


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_hears_of_it(tmp_path: Path, *, is_abstract: bool) -> None:
    """Systemd gives a path, or a name in the abstract namespace; what is started gets neither."""
    name = f"@spur-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(name.replace("@", "\0"))
        environment = {"NOTIFY_SOCKET": name, "HOME": "/"}
        notifier = Notifier(environment)
        notifier.tell("READY=1", "STATUS=serves")
        assert systemd.recv(100) == b"READY=1\nSTATUS=serves"
        assert environment == {"HOME": "/"}


def test_without_systemd_nothing_is_told(tmp_path: Path) -> None:
    """A daemon runs in the foreground, or systemd went away."""
    Notifier({}).tell("READY=1")
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell("READY=1")
