"""Commands as other users, in homes of their own that are empty.

A checkout in somebody's home with mode 0700, or an interpreter there, can't be read by the users
whose commands are replayed. In a mount namespace of our own such a home is an empty directory
that everybody may enter, with just what is needed mounted back into it; and the users' homes are
new, so that what others do there does not matter. Nothing of the machine changes, and it ends with
the process.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

__all__ = ["enter", "is_needed"]

INSIDE = "SPUR_CONFORMANCE_INSIDE"


def _needed() -> list[Path]:
    """Return what commands read of us."""
    # By name: commands are run by this kit, and known to nothing below them.
    found = (find_spec(name) for name in ("spur", "spur_cli", "msgspec"))
    files = [Path(spec.origin) for spec in found if spec is not None and spec.origin]
    places = [file.resolve().parent.parent for file in files]
    return [Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable).parent, *places]


def _closed(places: Iterable[Path]) -> list[Path]:
    """Return the highest directories on the way there that others may not enter."""
    found: set[Path] = set()
    for place in places:
        for directory in (*reversed(place.parents), place):
            if not directory.stat().st_mode & stat.S_IXOTH:
                found.add(directory)
                break
    return sorted(found)


def is_needed() -> bool:
    """Whether we are root, and not yet in a namespace of our own."""
    return os.geteuid() == 0 and INSIDE not in os.environ


def enter(arguments: Sequence[str], scratch: Path, users: Iterable[str]) -> int:
    """Run this program again where all may read it; return its exit status."""
    script = ["set -e"]
    needed = _needed()
    for number, closed in enumerate(_closed(needed)):
        hidden = scratch / f"hidden{number}"
        script += [f"mkdir -p {hidden}", f"mount --bind {closed} {hidden}"]
        script.append(f"mount -t tmpfs -o mode=755 tmpfs {closed}")
        for place in dict.fromkeys(place for place in needed if place.is_relative_to(closed)):
            source = hidden / place.relative_to(closed)
            script += [f"mkdir -p {place}", f"mount --bind {source} {place}"]
    for account in map(pwd.getpwnam, users):
        owner = f"mode=755,uid={account.pw_uid},gid={account.pw_gid}"
        script.append(f"mkdir -p {account.pw_dir}")
        script.append(f"mount -t tmpfs -o {owner} tmpfs {account.pw_dir}")
    script.append('exec "$@"')
    environment = {**os.environ, INSIDE: "1"}
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(script)]
    again = [sys.executable, "-m", "spur.testing.conformance.main", *arguments]
    return subprocess.run([*command, "sh", *again], env=environment, check=False).returncode
