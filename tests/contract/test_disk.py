"""One suite over both disks: the operating system's, and the simulated one."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from spur.consensus.disk import Disk, OsDisk
from spur.consensus.faults import DirectoryBusy, DiskFault
from spur.testing.disk import SimDisk


@pytest.fixture(params=["os", "sim"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    """Return an empty disk of each kind."""
    return OsDisk(str(tmp_path)) if request.param == "os" else SimDisk()


def test_file_gives_back_what_was_written(disk: Disk) -> None:
    """Bytes written at two places are read from there, and the gap between reads as zeros."""
    file = disk.open("a", create=True)
    file.write_at(3, b"xyz")
    file.write_at(10, bytearray(b"end"))
    assert file.read_at(0, 100) == b"\0\0\0xyz\0\0\0\0end"
    assert file.read_at(4, 2) == b"yz"
    assert file.read_at(50, 2) == b""
    assert file.size() == 13
    file.sync()
    file.close()
    file.close()


def test_file_opened_again_holds_the_same(disk: Disk) -> None:
    """A file written, closed and opened by name has what was written."""
    file = disk.open("a", create=True)
    file.write_at(0, memoryview(b"abc"))
    file.close()
    again = disk.open("a")
    assert again.read_at(0, 3) == b"abc"
    again.close()


def test_creating_a_file_twice_is_refused(disk: Disk) -> None:
    """Nothing that is there already is emptied by creating it."""
    disk.open("a", create=True).close()
    with pytest.raises(DiskFault) as caught:
        disk.open("a", create=True)
    assert caught.value.errno == errno.EEXIST


def test_opening_a_missing_file_is_refused(disk: Disk) -> None:
    """A file that is not there is not made by opening it, and the sentence names it."""
    with pytest.raises(DiskFault, match=r"refused to open sub/nothing: No such file"):
        disk.open("sub/nothing")
    assert not disk.exists("sub/nothing")


def test_truncating_sets_the_size_both_ways(disk: Disk) -> None:
    """What is cut off is gone when the file grows again."""
    file = disk.open("a", create=True)
    file.write_at(0, b"abcdef")
    file.truncate(2)
    file.truncate(4)
    assert file.read_at(0, 10) == b"ab\0\0"
    file.close()


def test_zeroing_overwrites_and_extends(disk: Disk) -> None:
    """Zeros cover what was there and reach beyond the end."""
    file = disk.open("a", create=True)
    file.write_at(0, b"abcdef")
    file.zero(4, (1 << 20) + 8)
    assert file.size() == (1 << 20) + 12
    assert file.read_at(0, 8) == b"abcd\0\0\0\0"
    file.close()


def test_punching_leaves_zeros_and_the_size(disk: Disk) -> None:
    """A hole reads as zeros and the file keeps its length."""
    file = disk.open("a", create=True)
    file.write_at(0, b"x" * 20_000)
    file.punch(4096, 8192)
    file.punch(0, 0)
    assert file.size() == 20_000
    assert file.read_at(4096, 8192) == bytes(8192)
    assert file.read_at(0, 4096) == b"x" * 4096
    assert file.read_at(12_288, 10) == b"x" * 10
    file.close()


def test_names_are_sorted_and_of_one_directory(disk: Disk) -> None:
    """Listing shows the files and directories inside, and nothing for a missing directory."""
    disk.make_dir("sub")
    disk.make_dir("sub")
    for name in ("b", "a", "sub/c"):
        disk.open(name, create=True).close()
    disk.sync_dir("")
    disk.sync_dir("sub")
    assert disk.names("") == ["a", "b", "sub"]
    assert disk.names("sub") == ["c"]
    assert disk.names("missing") == []
    assert disk.exists("sub")
    assert disk.exists("sub/c")
    assert not disk.exists("c")


def test_renaming_replaces_a_file(disk: Disk) -> None:
    """The new name stands for the renamed file; an open file stays usable."""
    for name in ("old", "new"):
        file = disk.open(name, create=True)
        file.write_at(0, name.encode())
        file.close()
    kept = disk.open("old")
    disk.rename("old", "new")
    kept.write_at(0, b"O")
    kept.close()
    assert disk.names("") == ["new"]
    again = disk.open("new")
    assert again.read_at(0, 3) == b"Old"
    again.close()


def test_renaming_a_directory_takes_its_files_along(disk: Disk) -> None:
    """A snapshot's directory gets its final name with all that is inside."""
    disk.make_dir("snap.new")
    disk.open("snap.new/chunk", create=True).close()
    disk.rename("snap.new", "snap")
    assert disk.names("snap") == ["chunk"]
    assert not disk.exists("snap.new")


def test_renaming_across_directories_is_refused(disk: Disk) -> None:
    """No store needs it, and it can't be made durable in one step."""
    disk.make_dir("sub")
    disk.open("a", create=True).close()
    with pytest.raises(ValueError, match="not in one directory"):
        disk.rename("a", "sub/a")


@pytest.mark.parametrize("what", ["rename", "remove", "sync_dir"])
def test_missing_names_are_refused(disk: Disk, what: str) -> None:
    """Each operation on a name that is not there fails with one sentence."""
    work: dict[str, Callable[[], None]] = {
        "rename": lambda: disk.rename("x", "y"),
        "remove": lambda: disk.remove("x"),
        "sync_dir": lambda: disk.sync_dir("x"),
    }
    with pytest.raises(DiskFault) as caught:
        work[what]()
    assert caught.value.errno == errno.ENOENT


def test_removing_takes_files_and_empty_directories(disk: Disk) -> None:
    """A directory with a file in it stays."""
    disk.make_dir("sub")
    disk.open("sub/a", create=True).close()
    with pytest.raises(DiskFault) as caught:
        disk.remove("sub")
    assert caught.value.errno == errno.ENOTEMPTY
    disk.remove("sub/a")
    disk.remove("sub")
    assert disk.names("") == []


def test_second_lock_is_refused_until_the_first_is_released(disk: Disk) -> None:
    """Two processes can't work on one directory."""
    lock = disk.lock()
    with pytest.raises(DirectoryBusy, match=r"in use by another process \(pid \d+\)"):
        disk.lock()
    lock.release()
    lock.release()
    disk.lock().release()


def test_free_space_is_positive(disk: Disk) -> None:
    """There is room on an empty disk."""
    assert disk.free_bytes() > 0
