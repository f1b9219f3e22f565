"""Directories that are mixed up: the controller says whose files they are and changes nothing."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import jobs
from spur.testing.past import Past
from spur.values.errors import OperatorFault

REFUSED = 78


def cluster_of(member: ControllerProcess) -> str:
    """Return the id of a controller's cluster."""
    return load_genesis(OsDisk(str(member.directory))).cluster_id.hex()


def refusal(member: ControllerProcess) -> str:
    """Start a controller that is to refuse; return the one sentence that it says."""
    member.start()
    assert member.wait() == REFUSED
    [line] = member.words().splitlines()
    return line.partition("spurctld: ")[2]


def fingerprint(directory: Path) -> dict[str, bytes]:
    """Return digests of all files but what every start writes."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).digest()
        for path in directory.rglob("*")
        if path.is_file() and path.name not in ("lock", "log")
    }


def put(source: Path, target: Path) -> None:
    """Put a file or directory in another's place."""
    if source.is_dir():
        shutil.rmtree(target)
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


@pytest.mark.parametrize("what", ["genesis", "wal", "ledger", "snapshots"])
def test_files_of_another_cluster_are_refused(
    lone_past: Past, past: Past, tmp_path: Path, what: str
) -> None:
    """A backup was put back into the wrong machine, in part."""
    [member] = lone_past.copy(tmp_path).controllers.members
    other = past.controllers.members[0]
    put(other.directory / what, member.directory / what)
    before = fingerprint(member.directory)
    sentence = refusal(member)
    assert "belongs to cluster" in sentence
    assert sentence.endswith("nothing was changed")
    assert cluster_of(other) in sentence
    if what in ("genesis", "wal"):
        assert fingerprint(member.directory) == before


def test_certificate_of_another_cluster_is_refused(
    lone_past: Past, past: Past, tmp_path: Path
) -> None:
    """The keys of the wrong cluster were put here: nobody would speak with this controller."""
    [member] = lone_past.copy(tmp_path).controllers.members
    other = past.controllers.members[0]
    put(other.directory / "tls", member.directory / "tls")
    assert refusal(member).endswith(
        f"the certificate is of cluster {cluster_of(other)}; this is {cluster_of(member)};"
        " nothing was started"
    )


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (2, "belongs to disk"),
        (5, "was not founded with a member 5"),
    ],
)
def test_wrong_node_id_is_refused(past: Past, tmp_path: Path, number: int, what: str) -> None:
    """Two directories were mixed up, or the settings name a member that never was."""
    member = past.copy(tmp_path).controllers.members[0]
    settings = member.directory / "spurctld.toml"
    settings.write_text(settings.read_text().replace("node_id = 1", f"node_id = {number}"))
    before = fingerprint(member.directory)
    sentence = refusal(member)
    assert what in sentence
    assert sentence.endswith("nothing was changed")
    assert fingerprint(member.directory) == before


def test_directory_in_use_is_refused(lone_past: Past, tmp_path: Path) -> None:
    """A second controller is started in the directory of one that runs, which goes on."""
    past = lone_past.copy(tmp_path)
    [member] = past.controllers.members
    past.controllers.start()
    try:
        with past.controllers.blocking() as client:
            assert jobs(client) == past.jobs
            second = ControllerProcess(member.directory, member.raft_address, member.rpc_address)
            second.start()
            assert second.wait() == REFUSED
            assert (
                f"{member.directory} is in use by another process (pid {member.pid});"
                " nothing was touched\n"
            ) in member.words()
            assert jobs(client) == past.jobs
    finally:
        assert member.stop() == 0


def test_address_in_use_is_refused(lone_past: Past, tmp_path: Path) -> None:
    """A copy of the directory is started beside the original: its addresses are taken."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = lone_past.copy(tmp_path / "a"), lone_past.copy(tmp_path / "b")
    first.controllers.start()
    try:
        with first.controllers.blocking() as client:
            assert jobs(client) == first.jobs
        assert "cannot listen for replicas on 127." in refusal(second.controllers.members[0])
    finally:
        first.controllers.stop()


def test_empty_directory_is_refused(tmp_path: Path) -> None:
    """The disk is not mounted."""
    empty = ControllerProcess(tmp_path, "127.0.0.1:24000", "127.0.0.1:24001")
    assert refusal(empty) == (
        f"{tmp_path} holds no controller (it has no spurctld.toml); make one with `spurctld create`"
    )
    assert not (tmp_path / "wal").exists()


def test_directory_that_holds_a_controller_is_not_made_anew(lone_past: Past) -> None:
    """`spurctld create` is given a directory in use by mistake."""
    before = fingerprint(lone_past.controllers.members[0].directory)
    with pytest.raises(OperatorFault, match="is not empty; a new controller needs an"):
        Controllers.create(lone_past.controllers.members[0].directory.parent, 1, first_port=24000)
    assert fingerprint(lone_past.controllers.members[0].directory) == before
