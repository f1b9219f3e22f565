"""The birth of a cluster: directories that are complete, or nothing."""

from pathlib import Path

import pytest

from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.controller.birth import NewController, give_birth
from spur.controller.settings import load_settings
from spur.values.errors import OperatorFault


def new(directory: Path, number: int) -> NewController:
    return NewController(
        directory=directory / f"c{number}",
        raft_address=f"127.0.0.1:{1000 + number}",
        rpc_address=f"127.0.0.1:{2000 + number}",
    )


def test_birth_gives_every_controller_the_same_genesis(tmp_path: Path) -> None:
    """Three controllers are made; each knows its own number and address."""
    controllers = [new(tmp_path, number) for number in (1, 2, 3)]
    genesis = give_birth(controllers)
    for number, each in enumerate(controllers, 1):
        assert load_genesis(OsDisk(str(each.directory))) == genesis
        assert load_settings(each.directory).node_id == number


def test_birth_leaves_keys_to_their_owner(tmp_path: Path) -> None:
    """Another user of the host looks into the directory."""
    give_birth([new(tmp_path, 1)])
    for path in (tmp_path / "c1").rglob("*"):
        if path.suffix in (".key",) or path.name == "host.pem":
            assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "c1").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("count", [2, 4])
def test_birth_refuses_an_even_number(tmp_path: Path, count: int) -> None:
    """A half of the controllers must never be a majority."""
    with pytest.raises(OperatorFault, match="1, 3 or 5"):
        give_birth([new(tmp_path, number) for number in range(count)])
    assert list(tmp_path.iterdir()) == []


def test_birth_refuses_a_directory_in_use(tmp_path: Path) -> None:
    """One of the directories holds something already: none is touched."""
    controllers = [new(tmp_path, number) for number in (1, 2, 3)]
    controllers[2].directory.mkdir()
    (controllers[2].directory / "precious").touch()
    with pytest.raises(OperatorFault, match="is not empty"):
        give_birth(controllers)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c3"]
