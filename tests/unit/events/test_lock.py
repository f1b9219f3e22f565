"""The lock of shapes: a released line never changes, and every version has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.events.declare import Event, EventType, Stored, event
from spur.events.lock import breaches, event_lines, shape_text
from spur.events.upcasts import Upcast, upcast
from spur.testing.schema_lock import LOCKS, main


class Lid(Stored, frozen=True):
    """A nested part."""

    colour: str


class WiderLid(Stored, frozen=True):
    """The nested part with a field more."""

    colour: str
    width: int


class Bought(Event, frozen=True):
    """The first version."""

    name: str
    lid: Lid


class BoughtWider(Event, frozen=True):
    """A change that lies one struct deeper."""

    name: str
    lid: WiderLid


class BoughtRenamed(Event, frozen=True):
    """The same bytes, read as something else."""

    title: str
    lid: Lid


def lines(cls: type[Event], version: int = 1, history: bool = False) -> list[str]:
    """Return the lines of one event, with or without its first version behind it."""
    events: dict[str, EventType] = {}
    event("pot.bought", version=version, registry=events)(cls)
    steps: dict[tuple[str, int], Upcast] = {}
    if history:
        upcast(
            "pot.bought", version=1, since=1, old=Bought, defaults={"width": 20}, registry=steps
        )(lambda old: BoughtWider(old.name, WiderLid(old.lid.colour, 20)))
    return event_lines(events, steps)


@pytest.mark.parametrize("changed", [BoughtWider, BoughtRenamed])
def test_a_changed_shape_is_caught_at_any_depth(changed: type[Event]) -> None:
    """Someone appends a field to a nested struct, or renames one, in a released version."""
    (breach,) = breaches(lines(Bought), lines(changed))
    assert "pot.bought 1 has changed" in breach


def test_a_new_version_needs_a_line_and_leaves_the_old_one() -> None:
    """Someone does it right: version 2, the old class kept, and the lock not yet written."""
    assert breaches(lines(Bought), lines(BoughtWider, 2, history=True)) == [
        "pot.bought 2 is not locked; run ops/schema-lock"
    ]


def test_a_new_version_keeps_the_default_that_it_gave() -> None:
    """The value given to old records can't change later, or replays would differ."""
    before = lines(BoughtWider, 2, history=True)
    assert before[1].endswith('defaults={"width":20}')
    after = [before[0], before[1].replace("20", "21")]
    assert "pot.bought 2 has changed" in breaches(before, after)[0]


def test_a_dropped_version_is_caught() -> None:
    """Someone declares version 2 and throws version 1 away."""
    found = breaches(lines(Bought), lines(BoughtWider, 2))
    assert found[0] == "pot.bought 1 was written by a release and can no longer be read"


def test_shapes_tell_enumerations_and_unions_apart() -> None:
    """A value more in an enumeration is something that an old reader can't read."""
    assert shape_text(int | None) == "int|none"
    assert shape_text(tuple[int, str]) != shape_text(tuple[int, ...])


def test_the_tool_writes_new_lines_and_refuses_changed_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A maintainer locks new events; a changed line needs the word --rewrite, in era 0 only."""
    for name in LOCKS:
        (tmp_path / name).parent.mkdir()
    assert main([], root=tmp_path) == 0
    lock = tmp_path / "events" / "schema.lock"
    written = lock.read_text()
    assert written.splitlines()[0] == "era 0"

    lock.write_text(written.replace("shape=", "shape=0", 1))
    assert main([], root=tmp_path) == 1
    assert "has changed" in capsys.readouterr().err
    assert main(["--rewrite"], root=tmp_path) == 0
    assert lock.read_text() == written

    released = written.replace("era 0", "era 1").replace("shape=", "shape=0", 1)
    lock.write_text(released)
    assert main(["--rewrite"], root=tmp_path) == 1
    assert lock.read_text() == released
