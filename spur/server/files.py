"""Files that a daemon keeps besides what it is told."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees a part of it, not even after a crash.

    Raises: OSError when it can't be written; what was there is still there then.
    """
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    with scratch.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
