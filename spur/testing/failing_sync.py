"""A disk whose syncs fail on command: a library put before the C library's own.

The controller is the real one, and so are its files; only fsync and fdatasync fail, with EIO, from
the moment a flag file appears. That is what a kernel says once when it could not write.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

__all__ = ["FailingSync"]

_SOURCE = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int call(const char *name, int descriptor) {
    const char *flag = getenv("SPUR_FAILING_SYNC");
    if (flag != NULL && access(flag, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, name);
    return real(descriptor);
}

int fsync(int descriptor) { return call("fsync", descriptor); }
int fdatasync(int descriptor) { return call("fdatasync", descriptor); }
"""


class FailingSync:
    """The library and its flag."""

    def __init__(self, directory: Path) -> None:
        """Compile the library. Raises: subprocess.CalledProcessError."""
        self._flag = directory / "syncs-fail"
        self._library = directory / "failing_sync.so"
        source = directory / "failing_sync.c"
        source.write_text(_SOURCE)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", str(self._library), str(source), "-ldl"], check=True
        )

    @staticmethod
    def is_possible() -> bool:
        """Whether this machine has a compiler."""
        return shutil.which("cc") is not None

    @property
    def environment(self) -> dict[str, str]:
        """What a controller needs in its environment to be on this disk."""
        return {"LD_PRELOAD": str(self._library), "SPUR_FAILING_SYNC": str(self._flag)}

    def begin(self) -> None:
        """Let every sync fail from now on."""
        self._flag.touch()

    def end(self) -> None:
        """Let syncs succeed again."""
        self._flag.unlink()
