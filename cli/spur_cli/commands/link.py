"""`spur link`: make Slurm's names in a directory, for whoever puts it on their PATH.

Each is a small launcher: it starts the interpreter without looking round for packages, since these
commands are called many times and lie in known places. Where there is a C compiler, those that a
warm worker runs start no interpreter, and become their launcher in Python when none serves them.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from spur.values.errors import OperatorFault
from spur_cli.arguments import parser_of
from spur_cli.registry import COMMANDS, Command
from spur_cli.warm.knock import WORDS
from spur_cli.warm.native import compiled, native_launcher

__all__ = ["closed_to_others", "make_names", "run"]

MARK = "# Made by `spur link`."

ENTRIES = ".entries"
"""Directory beside the names, for the launchers in Python of those that are native."""

_LOOKED_AT = 1 << 20
"""Bytes of a file in which the mark must be; a native launcher has some thirty thousand."""

_LAUNCHER = """\
#!{python} -IS
{mark}
import sys

paths = {paths!r}
sys.path += paths
{warm}
import gc
import os

# What a command makes is wanted until it ends, so there is nothing to collect.
gc.disable()
{lighter}
from spur_cli.main import main

status = main()
sys.stdout.flush()
sys.stderr.flush()
{leave}
# Taking the interpreter apart piece by piece takes a sixth of a short command's time.
os._exit(status)
"""

_WARM = """\
from spur_cli.warm.knock import LEAVE, knock

# If a warm worker runs the command, this does not return.
how = knock(sys.argv, paths)
"""

_LEAVE = """\
if how == LEAVE:
    from {leaving} import leave

    leave(paths)
"""

_LEAVING = "spur_cli.warm.leaving"

_LIGHTER = """\
# msgspec takes typing's own names where this package is missing: a third less to import.
sys.modules["typing_extensions"] = None
"""


def run(arguments: list[str], command: Command) -> int:
    """Make the launchers anew. Raises: OperatorFault when a foreign file has one of the names."""
    parser = parser_of(command)
    parser.add_argument("directory", help="where the names are made; put it on PATH")
    parser.add_argument(
        "--python", action="store_true", help="no native launchers, though there is a C compiler"
    )
    options = parser.parse_args(arguments)
    directory = os.path.abspath(options.directory)
    names = make_names(directory, native=not options.python)
    sys.stderr.write(
        f'{", ".join(names)} are in {directory}\nhint: export PATH="{directory}:$PATH"\n'
    )
    if not options.python and compiled() is None:
        sys.stderr.write("no C compiler is here: each command takes some 10 ms longer to start\n")
    closed = closed_to_others()
    if closed:
        sys.stderr.write(f"{closed}\n")
    return 0


def closed_to_others() -> str:
    """Return why other users than root can't run these commands, and what helps; else nothing.

    Whoever is not root makes names for themselves.
    """
    if os.geteuid() != 0:
        return ""
    for path in (os.path.realpath(sys.executable), *_paths()):
        folder = path
        while folder != "/":
            if not os.stat(folder).st_mode & 0o001:
                return (
                    f"warning: only root can run these commands: {folder} lets nobody else in, and"
                    f" {path} lies in it\nhint: install Spur and its Python where every user may"
                    " read, such as /opt/spur, and give the same command from there"
                )
            folder = os.path.dirname(folder)
    return ""


def make_names(directory: str, *others: str, native: bool = True) -> list[str]:
    """Make Slurm's names in a directory, and other ones that we are called by; return them.

    Without `native` all of them are launchers in Python.

    Raises: OperatorFault when a file of another make has one of them, or it can't be written.
    """
    names = sorted({*_aliases(), *others})
    try:
        os.makedirs(directory, exist_ok=True)
        foreign = [name for name in names if _is_foreign(os.path.join(directory, name))]
        if foreign:
            raise OperatorFault(
                f"{directory} has {', '.join(foreign)} of another make; name another directory;"
                " nothing was made"
            )
        entries = os.path.join(directory, ENTRIES)
        os.makedirs(entries, exist_ok=True)
        for name in names:
            entry = os.path.join(entries, name)
            launcher = _native(name, entry) if native else None
            if launcher is None:
                _write(os.path.join(directory, name), _in_python(name))
            else:
                _write(entry, _in_python(name))
                _write(os.path.join(directory, name), launcher)
    except OSError as error:
        raise OperatorFault(f"{directory}: {error.strerror}; nothing more was made") from error
    return names


def _aliases() -> set[str]:
    return {row.alias for row in COMMANDS if row.alias}


def _is_foreign(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return MARK.encode() not in file.read(_LOOKED_AT)
    except FileNotFoundError:
        return False


def _native(name: str, entry: str) -> bytes | None:
    return native_launcher(name, entry=entry, install=_paths(), mark=MARK)


def _in_python(name: str) -> bytes:
    text = _LAUNCHER.format(
        python=sys.executable,
        mark=MARK,
        paths=_paths(),
        lighter=_LIGHTER if name in _aliases() else "",
        warm=_WARM if name in WORDS else "",
        leave=_LEAVE.format(leaving=_LEAVING) if name in WORDS else "",
    )
    return text.encode()


def _write(path: str, data: bytes) -> None:
    """Write one launcher, so that a command that starts meanwhile finds the old or the new one."""
    scratch = f"{path}.{os.getpid()}"
    with open(scratch, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), 0o755)
    os.replace(scratch, path)


def _paths() -> list[str]:
    """Return where the packages lie that these commands import, or daemons that they start."""
    found: list[str] = []
    for package in ("spur", "spur_cli", "spur_migrations", "msgspec"):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise OperatorFault(f"package {package} is not installed; nothing was made")
        folder = os.path.dirname(os.path.dirname(os.path.abspath(spec.origin)))
        if folder not in found:
            found.append(folder)
    return found
