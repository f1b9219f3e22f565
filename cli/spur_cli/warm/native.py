"""Building launchers that need no interpreter: launcher.c, compiled once, a name written in.

Without a C compiler there are none, and launchers in Python do the same, some milliseconds later.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from spur_cli.warm.knock import WORDS, words_of_door

__all__ = ["compiled", "native_launcher"]

SOURCE = Path(__file__).with_name("launcher.c")

COMPILERS = ("cc", "gcc", "clang")

PLACE = b"@spur-launcher-config@"
"""Where the configuration begins in what was compiled."""

CONFIG_BYTES = 16384

COMPILE_S = 120.0


def native_launcher(
    name: str, *, entry: str, install: list[str], mark: str, python: str = sys.executable
) -> bytes | None:
    """Return the launcher of a command that may run warm; None when there can't be one.

    `entry` is the launcher in Python that it becomes when no worker serves it.
    """
    template = compiled()
    if template is None or name not in WORDS:
        return None
    fields = (mark, name, str(int(WORDS[name])), python, entry)
    config = b"".join(os.fsencode(field) + b"\0" for field in fields)
    config += words_of_door(install) + b"\0"
    if len(config) > CONFIG_BYTES or template.count(PLACE) != 1:
        return None
    at = template.index(PLACE)
    return template[:at] + config.ljust(CONFIG_BYTES, b"\0") + template[at + CONFIG_BYTES :]


@cache
def compiled() -> bytes | None:
    """Return what launcher.c compiles to; None without a compiler that can.

    It is kept beside the source, where that can be written.
    """
    digest = hashlib.sha256(SOURCE.read_bytes() + platform.machine().encode()).hexdigest()[:16]
    kept = SOURCE.with_name(f"launcher-{digest}.bin")
    with contextlib.suppress(OSError):
        return kept.read_bytes()
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory(prefix="spur-launcher-") as scratch:
        made = Path(scratch) / "launcher"
        try:
            subprocess.run(
                [compiler, "-O2", "-s", "-o", str(made), str(SOURCE)],
                check=True,
                capture_output=True,
                timeout=COMPILE_S,
            )
            built = made.read_bytes()
        except (OSError, subprocess.SubprocessError):
            return None
    with contextlib.suppress(OSError):
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        draft.write_bytes(built)
        draft.replace(kept)
    return built


if __name__ == "__main__":
    sys.exit(compiled() is None)
