"""`spur link`: make Slurm's names in a directory, for whoever puts it on their PATH.

Each is a small launcher: it starts the interpreter without looking round for packages, since these
commands are called many times and lie in known places.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from spur.values.errors import OperatorFault
from spur_cli.arguments import parser_of
from spur_cli.registry import COMMANDS, Command
from spur_cli.warm.knock import WORDS

__all__ = ["closed_to_others", "make_names", "run"]

MARK = "# Made by `spur link`."

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
    directory = os.path.abspath(parser.parse_args(arguments).directory)
    names = make_names(directory)
    sys.stderr.write(
        f'{", ".join(names)} are in {directory}\nhint: export PATH="{directory}:$PATH"\n'
    )
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


def make_names(directory: str, *others: str) -> list[str]:
    """Make Slurm's names in a directory, and other ones that we are called by; return them.

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
        for name in names:
            _write(os.path.join(directory, name))
    except OSError as error:
        raise OperatorFault(f"{directory}: {error.strerror}; nothing more was made") from error
    return names


def _aliases() -> set[str]:
    return {row.alias for row in COMMANDS if row.alias}


def _is_foreign(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return MARK.encode() not in file.read(512)
    except FileNotFoundError:
        return False


def _write(path: str) -> None:
    """Write one launcher, so that a command that starts meanwhile finds the old or the new one."""
    name = os.path.basename(path)
    text = _LAUNCHER.format(
        python=sys.executable,
        mark=MARK,
        paths=_paths(),
        lighter=_LIGHTER if name in _aliases() else "",
        warm=_WARM if name in WORDS else "",
        leave=_LEAVE.format(leaving=_LEAVING) if name in WORDS else "",
    )
    scratch = f"{path}.{os.getpid()}"
    with open(scratch, "w", encoding="utf-8") as file:
        file.write(text)
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
