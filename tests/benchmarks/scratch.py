"""Where benchmarks put their data: a real disk, or the figures mean nothing."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.figures import file_system

__all__ = ["scratch_directory"]

_ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def scratch_directory(name: str) -> Iterator[Path]:
    """Give an empty directory inside the checkout, and remove it at the end.

    Raises: SystemExit where a sync would cost nothing.
    """
    directory = _ROOT / ".spur" / "bench" / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    if file_system(directory) in ("tmpfs", "ramfs"):
        raise SystemExit(
            f"bench: {directory} lies in memory, where a sync costs nothing;"
            " run from a checkout on a disk. Nothing was measured"
        )
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
