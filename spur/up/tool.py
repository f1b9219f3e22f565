"""The verbs: bring a cluster up on this machine, say how it is and how to reach it, end it.

Everything is found again from the directory, so each verb may be called at any time, by anybody's
script, as often as it likes: `up` starts what does not run and changes nothing else.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from spur.client.locate import ADDRESS_FILE
from spur.slurm.configfile import SLURM_FILE
from spur.up.agents import plan_agents, start_agents, wait_until_ready
from spur.up.cluster import (
    configure,
    count_controllers,
    make_controllers,
    plan_controllers,
    start_controllers,
)
from spur.up.conf import administrator, made_config
from spur.up.controllers import (
    bring_new,
    change_count,
    plan_one,
    remove_one,
    repair_one,
    require_directories,
)
from spur.up.layout import RELAY, Layout, Places, Wish, default_directory
from spur.up.processes import stop
from spur.up.remains import end_jobs
from spur.up.status import process_rows
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import OperatorFault
from spur.values.hostlist import format_hostlist

__all__ = [
    "add_controller",
    "down",
    "environment",
    "knows_controller",
    "remove_controller",
    "repair_controller",
    "status",
    "up",
]

Say = Callable[[str], None]


def up(
    directory: str,
    *,
    controllers: int | None = None,
    numbers: Mapping[str, int | str | None],
    files: Sequence[ConfigFile] = (),
    say: Say,
) -> None:
    """Make the cluster if there is none, and start what does not run.

    What is None stays as it is, or takes its default in a new cluster. `numbers` are fields of
    `Wish`; `files` are a site's own configuration instead.

    Raises: OperatorFault, saying how far it came.
    """
    places = _places(directory)
    places.make()
    with _alone(places):
        layout = places.read()
        before = Wish() if layout is None else layout.wish
        wish = _wish(before, has_conf=bool(files), numbers=numbers)
        if layout is None:
            count = count_controllers(files) if controllers is None else controllers
            layout = Layout(uid=os.geteuid(), controllers=plan_controllers(count), wish=wish)
        else:
            layout = _resized(places, layout, controllers, say)
        config = _files(msgspec.structs.replace(layout, wish=wish), files)
        if files or wish != before:
            layout = msgspec.structs.replace(layout, wish=wish, is_configured=False)
        places.write(layout)
        if make_controllers(places, layout):
            say(f"made a cluster of {len(layout.controllers)} in {places.directory}")
        for name in start_controllers(places, layout):
            say(f"started controller {name}")
        layout = bring_new(places, layout, say)
        if not layout.is_configured:
            layout = _hand_in(places, layout, config, say)
        _bring_agents(places, layout, say)
        require_directories(places, layout)


def add_controller(directory: str, name: str, say: Say) -> None:
    """Add a controller to the cluster, and wait until it votes.

    Raises: OperatorFault when there is no cluster, or it refuses.
    """
    _change(directory, lambda places, layout: bring_new(places, plan_one(layout, name), say), say)


def remove_controller(directory: str, name: str, *, given_up: Mapping[str, bool], say: Say) -> None:
    """Remove a controller, and set its directory aside. Raises: as `add_controller`."""

    def change(places: Places, layout: Layout) -> Layout:
        return remove_one(places, layout, name, given_up=given_up, say=say)

    _change(directory, change, say)


def repair_controller(directory: str, name: str, *, given_up: Mapping[str, bool], say: Say) -> None:
    """Give a controller an empty disk and another id. Raises: as `add_controller`."""

    def change(places: Places, layout: Layout) -> Layout:
        return repair_one(places, layout, name, given_up=given_up, say=say)

    _change(directory, change, say)


def knows_controller(directory: str, name: str) -> bool:
    """Tell whether a cluster of this machine has a controller of this name."""
    layout = _places(directory).read()
    return layout is not None and any(place.name == name for place in layout.controllers)


def _change(directory: str, change: Callable[[Places, Layout], Layout], say: Say) -> None:
    """Change the controllers of a running cluster, then tell its agents and configuration."""
    places = _places(directory)
    with _alone(places):
        before = _known(places)
        for name in start_controllers(places, before):
            say(f"started controller {name}")
        layout = change(places, before)
        layout = _told(places, before, layout)
        if not layout.is_configured:
            layout = _hand_in(places, layout, _files(layout, ()), say)
        _bring_agents(places, layout, say)


def _resized(places: Places, layout: Layout, controllers: int | None, say: Say) -> Layout:
    """Return the layout for another number of controllers, if one is wished for."""
    if controllers is None or controllers == len(layout.controllers):
        return layout
    for name in start_controllers(places, layout):
        say(f"started controller {name}")
    return _told(places, layout, change_count(places, layout, controllers, say))


def _told(places: Places, before: Layout, layout: Layout) -> Layout:
    """Let agents start anew, and a made configuration be handed in, when controllers changed."""
    if before.controllers == layout.controllers:
        return layout
    stop(places, [place.key for place in layout.agents])
    layout = msgspec.structs.replace(
        layout, is_configured=layout.is_configured and layout.wish.has_conf
    )
    places.write(layout)
    return layout


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


def down(directory: str, *, keeps_jobs: bool = False) -> tuple[list[str], int]:
    """End every process of the cluster; return the names of those that ran, and how many jobs did.

    With `keeps_jobs` these go on, and the next `up` finds them.

    Raises: OperatorFault when there is no cluster.
    """
    places = _places(directory)
    layout = _known(places)
    with _alone(places):
        controllers = [place.name for place in layout.controllers]
        ended = stop(places, [*controllers, *(place.key for place in layout.agents)])
        return ended, 0 if keeps_jobs else end_jobs(places, layout)


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


def _wish(before: Wish, *, has_conf: bool, numbers: Mapping[str, int | str | None]) -> Wish:
    """Return what is wished for now: files of a site's own, or the numbers that were given."""
    if has_conf:
        return Wish(has_conf=True)
    given = {key: value for key, value in numbers.items() if value is not None}
    return msgspec.structs.replace(before, has_conf=False, **given) if given else before


def _files(layout: Layout, files: Sequence[ConfigFile]) -> tuple[ConfigFile, ...]:
    """Return what is to be handed in: the site's files, or made ones; and whose cluster it is."""
    wish = layout.wish
    names = [place.name for place in layout.controllers]
    given = tuple(files) or made_config(
        names,
        nodes=wish.nodes,
        nodes_per_agent=wish.nodes_per_agent,
        cpus=wish.cpus,
        gpus=wish.gpus,
    )
    if layout.uid == 0 or any(file.name == CONFIG_FILE for file in given):
        return given
    return (*given, administrator(layout.uid))


def _hand_in(places: Places, layout: Layout, config: Sequence[ConfigFile], say: Say) -> Layout:
    """Have the files in force, keep them beside, and only then remember that it was done."""
    changes = configure(places, layout, config)
    for file in config:
        # Included files may have names with directories; whatever leads out of ours is not kept.
        target = (places.conf / file.name).resolve()
        if target.is_relative_to(places.conf.resolve()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.text, encoding="utf-8")
    (places.conf / ADDRESS_FILE).write_text(f"unix:{places.socket(RELAY)}\n", encoding="utf-8")
    say(f"the configuration is in force, with {changes} changes")
    done = msgspec.structs.replace(layout, is_configured=True)
    places.write(done)
    return done


def _bring_agents(places: Places, layout: Layout, say: Say) -> None:
    """Have an agent for each host of the configuration in force, whoever handed that in."""
    agents = plan_agents(places, layout)
    others = [place.key for place in layout.agents if place not in agents]
    for name in stop(places, others):
        say(f"ended agent {name}, whose nodes are others now")
    if agents != layout.agents:
        layout = msgspec.structs.replace(layout, agents=agents)
        places.write(layout)
    started = start_agents(places, layout)
    if started:
        say(f"started agents {format_hostlist(started)}")
        missing = wait_until_ready(places, layout)
        if missing:
            say(f"not there yet: {format_hostlist(missing)}; see {places.log('NAME')}")


@contextmanager
def _alone(places: Places) -> Iterator[None]:
    """Let one such command at a time into a directory."""
    descriptor = os.open(places.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
