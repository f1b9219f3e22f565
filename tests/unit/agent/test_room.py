"""Room in a spool: low below its mark, and until a fourth more is free."""

from __future__ import annotations

import os

from spur.agent.room import MIB, Room


def test_a_spool_near_its_mark_is_not_low_again_and_again() -> None:
    """A disk fills up, gets a little room, fills up again, and is cleared."""
    free_mib = iter((64, 63, 79, 63, 80, 64))
    room = Room(lambda: next(free_mib) * MIB, 64)
    said = f"spool of {os.uname().nodename}: "
    assert [room.fault() for _ in range(6)] == [
        "",
        f"{said}63 MiB are free, below 64",
        f"{said}79 MiB are free, below 80",
        f"{said}63 MiB are free, below 64",
        "",
        "",
    ]


def test_without_a_mark_a_full_spool_is_not_low() -> None:
    """Somebody wants launches tried to the last byte."""
    assert Room(lambda: 0, 0).fault() == ""
