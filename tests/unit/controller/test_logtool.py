"""`spur log` on a controller's directory: what it shows, what it refuses, what it leaves alone."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from spur.consensus.blobs import BlobStore
from spur.consensus.disk import OsDisk
from spur.consensus.genesis import Genesis, genesis_chain, store_genesis
from spur.consensus.ledger import Ledger
from spur.consensus.membership import Member, Membership
from spur.events.envelope import EntryKind, chain_next
from spur.projections.digest import state_digest
from spur.projections.state import new_state
from spur.testing.builders import CLUSTER, SMALL_CONFIG, Cluster, actor
from spur.testing.hall import submission
from spur.values.config import ConfigFile
from spur.wire.cluster import AddHost, Checkpoint, Reconfigure
from spur.wire.declare import Attachment
from spur_cli.main import main

GENESIS = Genesis(
    cluster_id=b"\x0c" * 16,
    membership=Membership((Member(1, b"\x01" * 16, True, "c1:6821", "c1:6816"),)).encode(),
    segment_entries=8,
)

SECRET = b"#!/bin/sh\nexport TOKEN=hunter2\n"


def story() -> Cluster:
    """Return a cluster that was configured, got hosts and a job with a secret in its script."""
    cluster = Cluster()
    cluster.entries.clear()
    cluster.state = new_state(GENESIS.encoded, cluster_id=GENESIS.cluster_id, incarnation=0)
    cluster.append(EntryKind.MEMBERSHIP, GENESIS.membership)
    cluster.ask(Reconfigure(files=(ConfigFile("spur.toml", SMALL_CONFIG),)))
    cluster.append(EntryKind.NOOP, b"", term=2)
    for number in range(1, 16):
        cluster.ask(AddHost(f"login{number}", "login"))
    job, user = submission(), actor(1001, host_role="controller")
    script = Attachment("script", SECRET)
    cluster.ask(msgspec.structs.replace(job, attachments=(script, *job.attachments[1:])), user)
    cluster.ask(Checkpoint(), CLUSTER)
    return cluster


def write_directory(where: Path, cluster: Cluster) -> None:
    """Write the log as a controller leaves it: genesis, ledger and blobs."""
    disk = OsDisk(str(where))
    store_genesis(disk, GENESIS)
    ledger = Ledger.open(disk, GENESIS, covered_from=1)
    ledger.append(cluster.entries)
    ledger.sync()
    while ledger.seal():
        pass
    ledger.close()
    blobs = BlobStore.open(disk)
    blobs.put([bytes(16) + SECRET])
    blobs.sync()
    blobs.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Cluster]:
    where = tmp_path_factory.mktemp("controller")
    cluster = story()
    write_directory(where, cluster)
    return where, cluster


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Spur = Callable[..., Ran]


@pytest.fixture
def spur(capsys: pytest.CaptureFixture[str]) -> Spur:
    """Return what runs a command line and gives back what it wrote."""

    def run(*arguments: str | Path) -> Ran:
        status = main(["spur", *map(str, arguments)])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


def snapshot_of(where: Path) -> dict[str, bytes]:
    """Return every file under a directory with its bytes."""
    files = sorted(path for path in where.rglob("*") if path.is_file())
    return {str(path.relative_to(where)): path.read_bytes() for path in files}


def test_show_lists_entries_oldest_first(written: tuple[Path, Cluster], spur: Spur) -> None:
    """An administrator reads what happened, one line an entry."""
    where, cluster = written
    ran = spur("log", "show", where)
    assert (ran.status, ran.err) == (0, "")
    header, *lines = ran.out.splitlines()
    assert header.split() == ["INDEX", "TERM", "TIME", "COMMAND", "ACTOR", "EVENTS", "ATTACHMENTS"]
    assert len(lines) == len(cluster.entries)
    assert lines[0].split()[:4] == ["1", "1", "-", "membership"]
    assert lines[2].split()[:4] == ["3", "2", "-", "no-op"]
    assert "job.submitted" in lines[-2]
    assert "uid 1001 on controller host 0 (socket)" in lines[-2]
    assert f"script ({len(SECRET)} B)" in lines[-2]


def test_show_takes_a_range_and_a_tail(written: tuple[Path, Cluster], spur: Spur) -> None:
    """A script wants a part of the log, across the border of two segments."""
    where, _ = written
    ran = spur("log", "show", where, "--first", "7", "--last", "10", "--json")
    assert [row["index"] for row in ran.rows] == [7, 8, 9, 10]
    ran = spur("log", "show", where, "--tail", "2", "--parsable")
    assert [line.split("|")[0] for line in ran.out.splitlines()] == ["INDEX", "19", "20"]
    assert spur("log", "show", where, "--first", "99").out == "no entries\n"


def test_show_events_gives_their_fields(written: tuple[Path, Cluster], spur: Spur) -> None:
    """Someone wants to see what an event says."""
    where, _ = written
    (row,) = spur("log", "show", where, "--events", "--first", "19", "--last", "19", "--json").rows
    assert (row["index"], row["position"], row["event"]) == (19, 0, "job.submitted")
    assert row["fields"]["spec"]["name"] == "train"
    assert row["fields"]["hold"] == "none"


def test_nothing_private_is_ever_shown(written: tuple[Path, Cluster], spur: Spur) -> None:
    """A script holds a token: no form of the tool prints it."""
    where, _ = written
    shown = [
        spur("log", "show", where),
        spur("log", "show", where, "--events", "--json"),
        spur("log", "export", where),
    ]
    assert all(ran.status == 0 for ran in shown)
    assert all("hunter2" not in ran.out and SECRET.hex() not in ran.out for ran in shown)
    attachments = shown[-1].rows[18]["attachments"]
    assert [(ref["name"], ref["content"]) for ref in attachments] == [
        ("script", "(redacted)"),
        ("environment", "(redacted)"),
        ("text", "(redacted)"),
    ]


def test_erased_attachment_is_exported_as_erased(tmp_path: Path, spur: Spur) -> None:
    """A user's script was erased: the export says so and has its digest still."""
    write_directory(tmp_path, story())
    digest = hashlib.sha256(bytes(16) + SECRET).digest()
    blobs = BlobStore.open(OsDisk(str(tmp_path)))
    blobs.erase([digest])
    blobs.close()
    script = spur("log", "export", tmp_path, "--first", "19").rows[0]["attachments"][0]
    assert (script["content"], script["digest"]) == ("(erased)", digest.hex())


def test_head_is_the_chain_of_the_last_entry(written: tuple[Path, Cluster], spur: Spur) -> None:
    """An auditor writes the head down, to compare it next year."""
    where, cluster = written
    (ran, last) = spur("log", "head", where, "--json"), cluster.state
    head = json.loads(ran.out)
    assert head["index"] == last.index == 20
    assert head["term"] == 2
    assert head["chain"] == last.chain.hex()
    assert head["cluster"] == "0c" * 16
    assert head["time"] == "2026-09-21T14:13:20.000018000Z"


def test_export_repeats_the_chain(written: tuple[Path, Cluster], spur: Spur) -> None:
    """Someone else recomputes the chain from an export; a part of it has the same values."""
    where, cluster = written
    rows = spur("log", "export", where).rows
    chain = genesis_chain(GENESIS)
    for row, entry in zip(rows, cluster.entries, strict=True):
        chain = chain_next(chain, entry)
        assert (row["index"], row["chain"]) == (entry.index, chain.hex())
    assert spur("log", "export", where, "--first", "12").rows == rows[11:]


def test_export_writes_a_new_private_file_only(
    written: tuple[Path, Cluster], tmp_path: Path, spur: Spur
) -> None:
    """Someone exports to a file twice: the second time nothing is overwritten."""
    where, _ = written
    target = tmp_path / "log.jsonl"
    ran = spur("log", "export", where, "--output", target)
    assert (ran.status, ran.out) == (0, "")
    assert ran.err == f"20 entries were exported to {target}\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    before = target.read_bytes()
    ran = spur("log", "export", where, "--output", target)
    assert ran.status == 1
    assert ran.err == (
        f"spur log export: {str(target)!r} can't be made: File exists; name a new file;"
        " nothing was exported\n"
    )
    assert target.read_bytes() == before


def test_verify_says_what_is_whole(written: tuple[Path, Cluster], spur: Spur) -> None:
    """An administrator checks a log after a night with a bad disk."""
    where, cluster = written
    report = json.loads(spur("log", "verify", where, "--json").out)
    assert report == {
        "cluster": "0c" * 16,
        "first": 1,
        "index": 20,
        "chain": cluster.state.chain.hex(),
        "segments": 3,
        "entries": 20,
        "missing": [],
        "torn": None,
        "attachments": 1,
        "attachments_missing": 2,
    }


def test_verify_replay_rebuilds_the_state(written: tuple[Path, Cluster], spur: Spur) -> None:
    """An auditor wants to know that the log gives the state that the cluster had."""
    where, cluster = written
    report = json.loads(spur("log", "verify", where, "--replay", "--json").out)
    assert report["state"] == state_digest(cluster.state).hex()


@pytest.mark.parametrize("file", ["000000000001.sealed", "000000000003.raw"])
def test_verify_names_the_place_of_a_flipped_bit(tmp_path: Path, spur: Spur, file: str) -> None:
    """One bit of the ledger flips, in a sealed segment or in the growing one."""
    write_directory(tmp_path, story())
    damaged = tmp_path / "ledger" / file
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 0x10
    damaged.write_bytes(data)
    ran = spur("log", "verify", tmp_path)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("spur log verify: ledger segment ")
    assert "is damaged at byte" in ran.err


def test_verify_names_a_damaged_attachment(tmp_path: Path, spur: Spur) -> None:
    """A script's blob is damaged: the ledger is whole, the script is not."""
    write_directory(tmp_path, story())
    (pack,) = (tmp_path / "blobs").iterdir()
    data = bytearray(pack.read_bytes())
    data[data.index(SECRET)] ^= 1
    pack.write_bytes(data)
    ran = spur("log", "verify", tmp_path)
    assert ran.status == 1
    digest = hashlib.sha256(bytes(16) + SECRET).hexdigest()
    assert ran.err == (
        f"spur log verify: 1 attachments are damaged, the first with digest {digest};"
        " a running controller finds and fetches them from its peers\n"
    )


def test_tool_changes_nothing(written: tuple[Path, Cluster], spur: Spur) -> None:
    """A controller is running on the directory: reading it leaves every byte alone."""
    where, _ = written
    lock = OsDisk(str(where)).lock()
    before = snapshot_of(where)
    try:
        for verb in ("show", "head", "verify", "export"):
            assert spur("log", verb, where).status == 0
    finally:
        lock.release()
    assert snapshot_of(where) == before


@pytest.mark.parametrize("verb", ["show", "head", "verify", "export"])
def test_directory_without_a_log_is_refused(tmp_path: Path, spur: Spur, verb: str) -> None:
    """Someone names the wrong directory, or one that is not there."""
    ran = spur("log", verb, tmp_path)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"spur log {verb}: the directory holds no log")
    ran = spur("log", verb, tmp_path / "gone")
    assert (
        ran.err
        == f"spur log {verb}: {str(tmp_path / 'gone')!r} is no directory; nothing was read\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_bad_range_is_refused(written: tuple[Path, Cluster], spur: Spur) -> None:
    """Someone asks for entry 0, or for a word."""
    where, _ = written
    for text in ("0", "-1", "ten"):
        ran = spur("log", "show", where, f"--first={text}")
        assert ran.status == 2
        assert f"{text!r} is no index; indexes are 1, 2, 3 ..." in ran.err


def test_log_without_a_verb_says_which_there_are(spur: Spur) -> None:
    """Someone types `spur log` and nothing else."""
    ran = spur("log")
    assert ran.status == 2
    assert ran.err == (
        "spur: log needs one more word\nhint: one of: log show, log head, log verify, log export\n"
    )
