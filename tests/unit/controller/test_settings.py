"""A controller's settings file, read before anything is started."""

from pathlib import Path

import pytest

from spur.controller.settings import SETTINGS_FILE, load_settings
from spur.values.errors import OperatorFault

GOOD = 'node_id = 1\nrpc_address = "127.0.0.1:1"\nraft_address = "127.0.0.1:2"\n'


def refusal(directory: Path, text: str) -> str:
    (directory / SETTINGS_FILE).write_text(text)
    with pytest.raises(OperatorFault) as found:
        load_settings(directory)
    return str(found.value)


def test_settings_have_defaults(tmp_path: Path) -> None:
    """A file that names only what has no default."""
    (tmp_path / SETTINGS_FILE).write_text(GOOD)
    assert load_settings(tmp_path).tick_ms == 30


def test_directory_without_settings_names_the_command_that_makes_one(tmp_path: Path) -> None:
    """Somebody starts a controller on an empty directory."""
    with pytest.raises(OperatorFault, match="spurctld create"):
        load_settings(tmp_path)


def test_unknown_key_is_refused_with_the_nearest(tmp_path: Path) -> None:
    """A key is misspelt."""
    assert "did you mean 'tick_ms'?" in refusal(tmp_path, GOOD + "tick_m = 5\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tick_ms = 1", "tick_ms is 1; it must be 5 to 10000"),
        ('tick_ms = "fast"', "Expected `int`"),
        ("tick_ms = ", "cannot be read"),
        ("disk_second_mark_mib = 2048", "the second mark is the lower one"),
    ],
)
def test_bad_value_is_refused(tmp_path: Path, line: str, expected: str) -> None:
    """A value of the wrong type, outside its range, or against another one."""
    text = refusal(tmp_path, GOOD + line + "\n")
    assert expected in text
    assert "nothing was started" in text


def test_missing_key_is_named(tmp_path: Path) -> None:
    """The file lacks an address."""
    assert "rpc_address" in refusal(tmp_path, 'node_id = 1\nraft_address = "127.0.0.1:2"\n')
