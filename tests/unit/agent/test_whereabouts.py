"""Where an agent looks for controllers: what it was told, and what it was set up with."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from spur.agent.whereabouts import CONTROLLERS_FILE, Whereabouts
from spur.client.client import Client
from spur.wire.controllers import ControllersFound

SETTINGS = ("unix:/run/spur/spurctld.sock", "h1:6816")


def take(directory: Path, *addresses: str, is_led: bool = True) -> Whereabouts:
    """Let an agent of this directory hear of controllers."""

    async def heard() -> Whereabouts:
        whereabouts = Whereabouts(directory, SETTINGS)
        async with Client(whereabouts.addresses) as client:
            await whereabouts.take(ControllersFound(addresses, is_led=is_led), client)
        return whereabouts

    return asyncio.run(heard())


def test_what_was_heard_is_known_at_the_next_start(tmp_path: Path) -> None:
    """All controllers were replaced; those of the settings are asked last."""
    heard = take(tmp_path, "h1:6816", "h4:6816")
    assert heard.addresses == ("h1:6816", "h4:6816", SETTINGS[0])
    assert Whereabouts(tmp_path, SETTINGS).addresses == heard.addresses
    again = take(tmp_path, "h4:6816", "h5:6816")
    assert Whereabouts(tmp_path, SETTINGS).addresses == again.addresses
    assert again.addresses == ("h4:6816", "h5:6816", *SETTINGS)


def test_controller_that_was_left_behind_is_not_believed(tmp_path: Path) -> None:
    """It was removed while it was cut off, and still thinks that the others are who they were."""
    assert take(tmp_path, "h2:6816", is_led=False).addresses == SETTINGS
    assert not (tmp_path / CONTROLLERS_FILE).exists()


@pytest.mark.parametrize("kept", [b"h4:6816\nh5", b"\xff\xfe", b"h4:6816\n\nh5:6816\n"])
def test_damaged_list_is_as_good_as_none(
    tmp_path: Path, kept: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody edited the file, or a disk did."""
    (tmp_path / CONTROLLERS_FILE).write_bytes(kept)
    with caplog.at_level(logging.WARNING):
        assert Whereabouts(tmp_path, SETTINGS).addresses == SETTINGS
    assert "can't be used" in caplog.text


def test_list_that_can_not_be_kept_is_used_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent's disk is gone; it goes on with what it has heard."""
    heard = take(tmp_path / "gone", "h4:6816")
    assert heard.addresses == ("h4:6816", *SETTINGS)
    assert "can't be written" in caplog.text
