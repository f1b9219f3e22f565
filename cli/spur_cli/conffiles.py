"""Configuration files from a disk: the file that is named, what it includes, and what lies beside.

The parser reads no disk, so what it may ask for is gathered here: of slurm.conf the included files,
and gres.conf, topology.conf and spur.toml of the same directory.
"""

from __future__ import annotations

import os

from spur.slurm.configfile import GRES_FILE, SLURM_FILE, TOPOLOGY_FILE, includes_of
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import OperatorFault

__all__ = ["CONFIG_BYTES_MAX", "read_config_files"]

CONFIG_BYTES_MAX = 4 << 20
"""Bytes of all files of a configuration together."""

_BESIDE = (GRES_FILE, TOPOLOGY_FILE, CONFIG_FILE)


def read_config_files(path: str) -> tuple[ConfigFile, ...]:
    """Return a file with all that belongs to it; each under the name that the others call it by.

    A file that is included and can't be read is left out: the parser says where it is asked for.

    Raises: OperatorFault when the file itself can't be read, or they are too big.
    """
    name = os.path.basename(path)
    if name.endswith(".toml"):
        return (ConfigFile(CONFIG_FILE, _read(path)),)
    directory = os.path.dirname(os.path.abspath(path))
    name = name if name not in _BESIDE else SLURM_FILE
    found = {name: _read(path)}
    waiting = includes_of(found[name])
    for beside in _BESIDE:
        if os.path.exists(os.path.join(directory, beside)):
            found[beside] = _read(os.path.join(directory, beside))
            waiting.extend(includes_of(found[beside]))
    size = sum(map(len, found.values()))
    while waiting:
        wanted = waiting.pop(0)
        place = os.path.join(directory, wanted)
        if wanted in found or not os.path.isfile(place):
            continue
        found[wanted] = _read(place)
        waiting.extend(includes_of(found[wanted]))
        size += len(found[wanted])
        if size > CONFIG_BYTES_MAX:
            break
    if size > CONFIG_BYTES_MAX:
        raise OperatorFault(
            f"{path!r} and its files have more than {CONFIG_BYTES_MAX} bytes; nothing was read"
        )
    return tuple(ConfigFile(name, text) for name, text in found.items())


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(CONFIG_BYTES_MAX + 1)
    except OSError as error:
        raise OperatorFault(f"{path!r} can't be read: {error.strerror}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise OperatorFault(f"{path}:{line}: the file is no UTF-8 text") from error
