"""Controllers of this machine's cluster that come and go after its birth.

A new one is admitted, started, and waited for until it votes; one after the other, so that each
step leaves a cluster that decides. A directory that is of no use any more is set aside, never
deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from spur.client.blocking import BlockingClient
from spur.controller.admission import admit
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY, SIZES
from spur.controller.settings import SETTINGS_FILE
from spur.up.cluster import CONTROLLER, administering, whole_controllers
from spur.up.layout import ControllerPlace, Layout, Places, free_ports
from spur.up.processes import find, require_running, start, stop
from spur.values.errors import OperatorFault, Rejection, SpurError
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.controllers import ControllerInfo, ControllerList, RemoveController, ShowControllers

__all__ = [
    "bring_new",
    "change_count",
    "plan_one",
    "remove_one",
    "repair_one",
    "require_directories",
]

Say = Callable[[str], None]

LEVEL_S = 120.0
"""How long a new controller may take until it votes."""

_LOOK_S = 0.1

NOTHING: Mapping[str, bool] = MappingProxyType({})
"""What may be lost when a controller is removed, as fields of `RemoveController`: nothing."""

ANSWER_S = 1.0
"""How long a controller that nothing is wrong with may take to answer for itself."""


def require_directories(places: Places, layout: Layout) -> None:
    """See that no controller lost its directory. Raises: OperatorFault that says what to do."""
    whole = whole_controllers(places, layout)
    for place in layout.controllers:
        if place.is_made and place.name not in whole:
            raise OperatorFault(
                f"controller {place.name} has lost its directory {places.controller(place.name)}:"
                " under its old id it can't come back\n"
                f"hint: `spur controller repair {place.name}` removes it and adds it anew"
            )


def change_count(places: Places, layout: Layout, count: int, say: Say) -> Layout:
    """Return the layout for so many controllers; those that are too many are removed.

    Raises: OperatorFault for a number that can't be, or when the cluster refuses.
    """
    if count not in SIZES:
        raise OperatorFault(
            f"{count} controllers; a cluster has 1, 3 or 5 (--controllers); nothing was changed"
        )
    while len(layout.controllers) > count:
        layout = remove_one(places, layout, layout.controllers[-1].name, say=say)
    while len(layout.controllers) < count:
        layout = plan_one(layout, "")
    places.write(layout)
    return layout


def plan_one(layout: Layout, name: str) -> Layout:
    """Return the layout with one more controller, which is still to be made.

    Raises: OperatorFault when there is one of this name.
    """
    names = {place.name for place in layout.controllers}
    if name in names:
        raise OperatorFault(f"there is a controller {name} already; nothing was changed")
    chosen = name or next(f"c{number}" for number in range(1, 1000) if f"c{number}" not in names)
    ports = free_ports()
    place = ControllerPlace(
        name=chosen, raft_address=next(ports), rpc_address=next(ports), is_made=False
    )
    return replace(layout, controllers=(*layout.controllers, place))


def bring_new(places: Places, layout: Layout, say: Say) -> Layout:
    """Admit, start and wait for each controller that was planned and not made yet.

    Interrupted, it goes on where it stopped.

    Raises: OperatorFault when the cluster refuses, or one does not come to vote in time.
    """
    for place in layout.controllers:
        if not place.is_made:
            layout = _bring(places, layout, place, say)
    return layout


def _bring(places: Places, layout: Layout, place: ControllerPlace, say: Say) -> Layout:
    directory = places.controller(place.name)
    with administering(places, layout) as client:
        number = admit(
            client,
            _authority(places, layout),
            directory=directory,
            name=place.name,
            raft_address=place.raft_address,
            rpc_address=place.rpc_address,
        )
    with (directory / SETTINGS_FILE).open("a") as file:
        file.write(f'socket = "{places.socket(place.name)}"\n')
    made = tuple(
        replace(each, is_made=True) if each.name == place.name else each
        for each in layout.controllers
    )
    layout = replace(layout, controllers=made)
    places.write(layout)
    if find(places, place.name) is None:
        start(places, place.name, CONTROLLER, ["run", "--dir", str(directory)])
    say(f"added controller {place.name} as {number}; it learns")
    _wait_until_votes(places, layout, place.name)
    say(f"controller {place.name} votes")
    return layout


def _wait_until_votes(places: Places, layout: Layout, name: str) -> None:
    end_s = time.monotonic() + LEVEL_S
    while True:
        found = _info(places, layout, name)
        # With the authority as well the others could be removed.
        if found is not None and found.voter and found.has_authority:
            return
        require_running(places, [name])
        if time.monotonic() > end_s:
            lag = "" if found is None else f"; it lacks {found.lag} entries"
            raise OperatorFault(
                f"controller {name} does not vote yet{lag}; it goes on learning\n"
                f"hint: `spur controller list` shows how far it is; its log is {places.log(name)}"
            )
        time.sleep(_LOOK_S)


def remove_one(
    places: Places, layout: Layout, name: str, *, given_up: Mapping[str, bool] = NOTHING, say: Say
) -> Layout:
    """Remove a controller, end its process and set its directory aside; return the layout.

    Raises: OperatorFault when there is none of this name, or the cluster refuses.
    """
    if all(place.name != name for place in layout.controllers):
        names = ", ".join(place.name for place in layout.controllers)
        raise OperatorFault(f"no controller is {name!r}; there are {names}; nothing was changed")
    found = _info(places, layout, name)
    others = tuple(place for place in layout.controllers if place.name != name)
    if found is not None:
        # Who stays is asked: the certificate of who goes ends to be worth anything.
        with administering(places, replace(layout, controllers=others or layout.controllers)) as of:
            answer = of.do(RemoveController(str(found.node_id), **given_up))
        if isinstance(answer, Rejection):
            hint = f"\nhint: {answer.hint}" if answer.hint else ""
            raise OperatorFault(f"controller {name} was not removed: {answer.text}{hint}")
    stop(places, [name])
    directory = places.controller(name)
    if directory.exists():
        number = found.node_id if found is not None else 0
        directory.rename(places.controllers / f"removed-{name}-{number}-{time.time_ns()}")
    layout = replace(layout, controllers=others)
    places.write(layout)
    say(f"removed controller {name}")
    return layout


def repair_one(
    places: Places, layout: Layout, name: str, *, given_up: Mapping[str, bool] = NOTHING, say: Say
) -> Layout:
    """Remove a controller and add it anew, with an empty disk and under another id.

    Raises: OperatorFault as `remove_one` and `bring_new`, and for one that nothing is wrong with.
    """
    found = _info(places, layout, name)
    is_whole = name in whole_controllers(places, layout)
    if is_whole and found is not None and found.voter and _answers(places, name):
        raise OperatorFault(
            f"controller {name} has its directory, and takes part; nothing was changed\n"
            "hint: `spur controller remove` and `add` replace one that works"
        )
    former = next((place for place in layout.controllers if place.name == name), None)
    layout = remove_one(places, layout, name, given_up=given_up, say=say)
    if former is not None:
        again = replace(former, is_made=False)
        layout = replace(layout, controllers=(*layout.controllers, again))
        places.write(layout)
    return bring_new(places, layout, say)


def _answers(places: Places, name: str) -> bool:
    """Whether a controller serves: one that lost its log or its disk does not."""
    try:
        with BlockingClient([f"unix:{places.socket(name)}"], deadline_s=ANSWER_S) as client:
            return isinstance(client.ask(ShowReplica(), ReplicaInfo), ReplicaInfo)
    except SpurError:
        return False


def _info(places: Places, layout: Layout, name: str) -> ControllerInfo | None:
    """Return what the controllers know of one; None when it is no member."""
    with administering(places, layout) as client:
        answer = client.ask(ShowControllers(), ControllerList)
    if isinstance(answer, Rejection):
        raise OperatorFault(f"the controllers can't be seen: {answer.text}")
    return next((info for info in answer.controllers if info.name == name), None)


def _authority(places: Places, layout: Layout) -> Authority:
    homes: Sequence[str] = [place.name for place in layout.controllers]
    for name in homes:
        if (places.controller(name) / AUTHORITY_DIRECTORY).exists():
            return Authority.open(places.controller(name) / AUTHORITY_DIRECTORY)
    raise OperatorFault(f"no controller in {places.controllers} has the cluster's authority")
