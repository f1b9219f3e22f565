"""The verbs: bring a cluster up on this machine, say how it is and how to reach it, end it.

Everything is found again from the directory, so each verb may be called at any time, by anybody's
script, as often as it likes: `up` starts what does not run and changes nothing else.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from spur.client.locate import ADDRESS_FILE
from spur.slurm.configfile import SLURM_FILE
from spur.up.cluster import (
    configure,
    count_controllers,
    make_controllers,
    plan_controllers,
    start_controllers,
)
from spur.up.conf import administrator, made_config
from spur.up.layout import Layout, Places, Wish, default_directory
from spur.up.processes import stop
from spur.up.status import process_rows
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import OperatorFault

__all__ = ["down", "environment", "status", "up"]

Say = Callable[[str], None]


def up(
    directory: str,
    *,
    controllers: int | None,
    nodes: int | None,
    cpus: int | None,
    gpus: str | None,
    files: Sequence[ConfigFile],
    say: Say,
) -> None:
    """Make the cluster if there is none, and start what does not run.

    What is None stays as it is, or takes its default in a new cluster. `files` are a site's own
    configuration; empty for one that follows from the numbers.

    Raises: OperatorFault, saying how far it came.
    """
    places = _places(directory)
    places.make()
    with _alone(places):
        layout = places.read()
        before = Wish() if layout is None else layout.wish
        wish = _wish(before, nodes=nodes, cpus=cpus, gpus=gpus, has_conf=bool(files))
        if layout is None:
            count = count_controllers(files) if controllers is None else controllers
            layout = Layout(uid=os.geteuid(), controllers=plan_controllers(count), wish=wish)
        elif controllers not in (None, len(layout.controllers)):
            raise OperatorFault(
                f"the cluster in {places.directory} was born with {len(layout.controllers)}"
                f" controllers; name another directory for one of {controllers}; nothing was"
                " changed"
            )
        config = _files(msgspec.structs.replace(layout, wish=wish), files)
        if files or wish != before:
            layout = msgspec.structs.replace(layout, wish=wish, is_configured=False)
        places.write(layout)
        if make_controllers(places, layout):
            say(f"made a cluster of {len(layout.controllers)} in {places.directory}")
        for name in start_controllers(places, layout):
            say(f"started controller {name}")
        if not layout.is_configured:
            _hand_in(places, layout, config, say)


def environment(directory: str) -> dict[str, str]:
    """Return the variables by which commands find the cluster, and its Slurm names.

    Raises: OperatorFault when there is no cluster.
    """
    places = _places(directory)
    _known(places)
    return {
        "SPUR_UP_DIR": str(places.directory),
        "SLURM_CONF": str(places.conf / SLURM_FILE),
        "PATH": str(places.bin),
    }


def status(directory: str) -> list[dict[str, str | int | bool]]:
    """Return one row for each process of the cluster, whether it runs or not.

    Raises: OperatorFault when there is no cluster.
    """
    places = _places(directory)
    return process_rows(places, _known(places))


def down(directory: str) -> list[str]:
    """End every process of the cluster; return the names of those that ran.

    Raises: OperatorFault when there is no cluster.
    """
    places = _places(directory)
    layout = _known(places)
    with _alone(places):
        return stop(places, [place.name for place in layout.controllers])


def _places(directory: str) -> Places:
    found = Path(directory) if directory else default_directory(dict(os.environ))
    return Places(found.absolute())


def _known(places: Places) -> Layout:
    layout = places.read()
    if layout is None:
        raise OperatorFault(
            f"there is no cluster in {places.directory}; `spur up` makes one, --dir names another"
        )
    return layout


def _wish(
    before: Wish, *, nodes: int | None, cpus: int | None, gpus: str | None, has_conf: bool
) -> Wish:
    if has_conf:
        return Wish(has_conf=True)
    if before.has_conf and nodes is None and cpus is None and gpus is None:
        return before
    return Wish(
        nodes=before.nodes if nodes is None else nodes,
        cpus=before.cpus if cpus is None else cpus,
        gpus=before.gpus if gpus is None else gpus,
    )


def _files(layout: Layout, files: Sequence[ConfigFile]) -> tuple[ConfigFile, ...]:
    """Return what is to be handed in: the site's files, or made ones; and whose cluster it is."""
    wish = layout.wish
    names = [place.name for place in layout.controllers]
    given = tuple(files) or made_config(names, nodes=wish.nodes, cpus=wish.cpus, gpus=wish.gpus)
    if layout.uid == 0 or any(file.name == CONFIG_FILE for file in given):
        return given
    return (*given, administrator(layout.uid))


def _hand_in(places: Places, layout: Layout, config: Sequence[ConfigFile], say: Say) -> None:
    """Have the files in force, keep them beside, and only then remember that it was asked for."""
    changes = configure(places, layout, config)
    for file in config:
        # Included files may have names with directories; whatever leads out of ours is not kept.
        target = (places.conf / file.name).resolve()
        if target.is_relative_to(places.conf.resolve()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.text, encoding="utf-8")
    addresses = "".join(f"unix:{places.socket(place.name)}\n" for place in layout.controllers)
    (places.conf / ADDRESS_FILE).write_text(addresses, encoding="utf-8")
    places.write(msgspec.structs.replace(layout, is_configured=True))
    say(f"the configuration is in force, with {changes} changes")


@contextmanager
def _alone(places: Places) -> Iterator[None]:
    """Let one such command at a time into a directory."""
    descriptor = os.open(places.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
