"""Real files: two processes on one directory, a full disk, a failing fsync, what is left behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from spur.consensus.blobs import BlobStore, blob_digest
from spur.consensus.disk import OsDisk, OsFile
from spur.consensus.faults import DirectoryBusy, DiskFault
from spur.consensus.ledger import Ledger
from spur.consensus.wal import Wal
from spur.testing.storage import GENESIS, IDENTITY, make_entries, make_entry
from spur.values.errors import InvariantBroken

SEGMENT = 64 * 1024


def _created(where: Path) -> OsDisk:
    disk = OsDisk(str(where))
    Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT)
    return disk


def test_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    """Somebody starts spurctld by hand while the service runs; the lock falls with its process."""
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from spur.consensus.disk import OsDisk; "
            "lock = OsDisk(sys.argv[1]).lock(); print('locked', flush=True); sys.stdin.read()",
            str(tmp_path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(DirectoryBusy) as caught:
            OsDisk(str(tmp_path)).lock()
        assert str(caught.value) == (
            f"{tmp_path} is in use by another process (pid {holder.pid}); nothing was touched"
        )
    finally:
        holder.kill()
        holder.communicate()
    OsDisk(str(tmp_path)).lock().release()


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Scripts and environments of all users lie here, whatever the umask of the service."""
    before = os.umask(0)
    try:
        disk = _created(tmp_path)
        store = BlobStore.open(disk)
        store.put([b"0123456789abcdef secret"])
        store.close()
        ledger = Ledger.open(disk, GENESIS, covered_from=1)
        ledger.append(make_entries(1, 3))
        ledger.close()
    finally:
        os.umask(before)
    found = {
        path.relative_to(tmp_path): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")
    }
    directories = {path for path in found if (tmp_path / path).is_dir()}
    assert {found[path] for path in directories} == {0o700}
    assert {found[path] for path in found.keys() - directories} == {0o600}


def test_erasing_gives_the_space_back(tmp_path: Path) -> None:
    """The pack keeps its length, and the blocks of a large blob go back to the file system."""
    disk = OsDisk(str(tmp_path))
    store = BlobStore.open(disk)
    large = os.urandom(1 << 20)
    store.put([large, b"0123456789abcdef small"])
    store.sync()
    pack = tmp_path / "blobs" / "000001.pack"
    before = pack.stat()
    store.erase([blob_digest(large)])
    after = pack.stat()
    store.close()
    assert after.st_size == before.st_size
    assert after.st_blocks < before.st_blocks // 2
    assert large[:64] not in pack.read_bytes()


def test_read_only_disk_writes_nothing(tmp_path: Path) -> None:
    """A tool opened the directory for reading: even a mistake of ours can't change a byte."""
    _created(tmp_path)
    disk = OsDisk(str(tmp_path), read_only=True)
    file = disk.open("genesis")
    with pytest.raises(DiskFault, match="refused to write genesis: Bad file descriptor"):
        file.write_at(0, b"x")
    file.close()


class _FailingSyncs(OsDisk):
    """A disk on which a file's sync fails when it is told to."""

    is_failing = False

    def open(self, name: str, *, create: bool = False) -> OsFile:
        file = super().open(name, create=create)
        file.__class__ = _FailingFile
        file.disk = self  # type: ignore[attr-defined]  # the line before made it one that has this
        return file


class _FailingFile(OsFile):
    disk: _FailingSyncs

    def sync(self) -> None:
        if self.disk.is_failing:
            raise DiskFault("sync", "a file", errno.EIO)
        super().sync()


def test_failing_fsync_ends_the_log_and_loses_nothing(tmp_path: Path) -> None:
    """The device reports an error once: nothing is written any more, and a start finds the rest."""
    _created(tmp_path)
    failing = _FailingSyncs(str(tmp_path))
    wal, _ = Wal.open(failing, IDENTITY, segment_bytes=SEGMENT)
    wal.write_group(None, 2, make_entries(2, 9), 1)
    failing.is_failing = True
    with pytest.raises(DiskFault, match="refused to sync"):
        wal.write_group(None, 10, make_entries(10, 12), 9)
    failing.is_failing = False
    with pytest.raises(InvariantBroken, match="failed before"):
        wal.write_group(None, 13, make_entries(13, 13), 9)
    wal.close()
    wal, found = Wal.open(OsDisk(str(tmp_path)), IDENTITY, segment_bytes=SEGMENT)
    wal.close()
    assert found.entries[1:] == make_entries(2, found.last)
    assert found.last in (9, 12)


def test_recycling_runs_beside_writing(tmp_path: Path) -> None:
    """One thread writes groups while another lets old segments go, as in a controller."""
    wal, _ = Wal.open(_created(tmp_path), IDENTITY, segment_bytes=SEGMENT)
    wal.recycle(0)
    with ThreadPoolExecutor(1) as other:
        running = other.submit(wal.recycle, 0)
        for index in range(2, 600):
            wal.write_group(None, index, [make_entry(index, body=bytes(1000))], index)
            if running.done():
                running.result()
                running = other.submit(wal.recycle, index - 20)
        running.result()
    assert wal.size_bytes < 8 * SEGMENT
    wal.close()
    wal, found = Wal.open(OsDisk(str(tmp_path)), IDENTITY, segment_bytes=SEGMENT)
    wal.close()
    assert found.last == 599
    assert found.first <= 580


@contextmanager
def _small_disk(where: Path, size: str) -> Iterator[None]:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "spur-test", str(where)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk can't be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(where)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_full_disk_refuses_in_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    """The disk fills up under a running replica; after room was made it starts with everything."""
    with _small_disk(tmp_path, "1m"):
        disk = _created(tmp_path)
        wal, _ = Wal.open(disk, IDENTITY, segment_bytes=SEGMENT)
        ledger = Ledger.open(disk, GENESIS, covered_from=1)
        ledger.append([make_entry(1)])
        blobs = BlobStore.open(disk)
        acknowledged = [1]

        def fill() -> None:
            while True:
                index = acknowledged[-1] + 1
                entry = make_entry(index, body=os.urandom(500), blobs=(os.urandom(900),))
                wal.write_group(None, index, [entry], index - 1)
                blobs.put(entry.blobs)
                ledger.append([entry])
                acknowledged.append(index)

        with pytest.raises(DiskFault, match="No space left on device") as caught:
            fill()
        assert caught.value.is_full
        for store in (wal, ledger, blobs):
            store.close()
        subprocess.run(["mount", "-o", "remount,size=4m", str(tmp_path)], check=True)
        wal, found = Wal.open(disk, IDENTITY, segment_bytes=SEGMENT)
        ledger = Ledger.open(disk, GENESIS, covered_from=found.first)
        blobs = BlobStore.open(disk)
        blobs.put(blob for entry in found.entries for blob in entry.blobs)
        assert found.last >= acknowledged[-1]
        assert ledger.last >= acknowledged[-1] - 1
        assert ledger.verify().first == 1
        assert blobs.verify() == []
        assert len(blobs.held()) == found.last - 1
        for store in (wal, ledger, blobs):
            store.close()
