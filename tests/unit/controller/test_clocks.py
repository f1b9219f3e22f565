"""The clocks that a controller reads, and the test aid that steps one under it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from spur.controller.clocks import OFFSET_BYTES, MachineClocks
from spur.values.errors import OperatorFault

HOUR_NS = 3_600_000_000_000


def written(path: Path, off_ns: int) -> None:
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(off_ns.to_bytes(OFFSET_BYTES, "little", signed=True))


def test_clock_is_stepped_while_it_is_read(tmp_path: Path) -> None:
    """Somebody sets the clock an hour forward and a minute back; the boot-time clock runs on."""
    path = tmp_path / "offset"
    written(path, 0)
    clocks = MachineClocks(5_000_000_000, path)

    def off_s() -> int:
        return round((clocks.wall_ns() - time.time_ns()) / 1e9)

    assert off_s() == 5
    before_ns = clocks.mono_ns()
    written(path, HOUR_NS)
    assert off_s() == 3_605
    written(path, -60_000_000_000)
    assert off_s() == -55
    assert 0 <= clocks.mono_ns() - before_ns < HOUR_NS


def test_file_without_an_offset_is_refused(tmp_path: Path) -> None:
    """The file is not there, or is empty."""
    with pytest.raises(OperatorFault, match="does not hold 8 bytes"):
        MachineClocks(offset_file=tmp_path / "nowhere")
    (tmp_path / "empty").touch()
    with pytest.raises(OperatorFault, match="nothing was started"):
        MachineClocks(offset_file=tmp_path / "empty")
