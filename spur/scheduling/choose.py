"""Which nodes a job gets: the first that have room, in the order of weight and configuration.

With a range of nodes as many are taken as there are. When the first nodes with room are too small
for a job of limited nodes, those with the most room are taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.scheduling.fit import Part, room_on, share_of
from spur.scheduling.need import Need
from spur.scheduling.sites import Site
from spur.values.features import ANY_NODE, Alternative, has_features
from spur.values.tres import NodeShare, Per

__all__ = ["Chosen", "choose", "gpus_of_job", "shares_of"]

Chosen = list[tuple[Site, Part]]
"""Nodes and the room on each."""


def choose(need: Need, candidates: Sequence[Site]) -> Chosen | None:
    """Return nodes with room for a job, in the order of configuration; None when there are none.

    The candidates come in the order in which they are to be tried.
    """
    is_simple = not need.required and not need.ask.contiguous
    for way in need.ways:
        rooms: Chosen = []
        is_plain = is_simple and not way.some
        tests_features = way.every != ANY_NODE
        for site in candidates:
            if tests_features and not has_features(site.kind.features, way.every):
                continue
            room = room_on(site, need)
            if room.tasks:
                rooms.append((site, room))
                if is_plain and _is_enough(need, rooms):
                    break
        found = _pick(need, way, rooms)
        if found is not None:
            found.sort(key=lambda pair: pair[0].order)
            return found
    return None


def gpus_of_job(need: Need) -> int:
    """Return how many GPUs are asked for the whole job."""
    return sum(gres.count for gres in need.gpus if gres.per is Per.JOB)


def _is_enough(need: Need, rooms: Chosen) -> bool:
    """Whether these nodes, the first that were found, are all that the job needs."""
    count = len(rooms)
    if count < (need.nodes_wanted or need.nodes_min):
        return False
    gpus = gpus_of_job(need)
    if need.nodes_max == 1:
        room = rooms[-1][1]
        return room.tasks >= need.tasks and room.gpus >= gpus
    if need.nodes_max and count > need.nodes_max:
        return False
    tasks = sum(room.tasks for _, room in rooms)
    return tasks >= max(need.tasks, count) and sum(room.gpus for _, room in rooms) >= gpus


def _pick(need: Need, way: Alternative, rooms: Chosen) -> Chosen | None:
    """Return which of the nodes with room are taken; None when they are not enough."""
    if need.ask.contiguous:
        return _contiguous(need, way, sorted(rooms, key=lambda pair: pair[0].order))
    names = set(need.required)
    picked = [pair for pair in rooms if pair[0].name in names]
    if len(picked) < len(names):
        return None
    others = [pair for pair in rooms if pair[0].name not in names]
    for test, wanted in way.some:
        matching = [pair for pair in others if has_features(pair[0].kind.features, test)]
        here = sum(has_features(site.kind.features, test) for site, _ in picked) if names else 0
        if len(matching) < wanted - here:
            return None
        taken = matching[: max(0, wanted - here)]
        picked += taken
        others = [pair for pair in others if pair not in taken]
    return _filled(need, picked, others)


def _filled(need: Need, picked: Chosen, others: Chosen) -> Chosen | None:
    """Return the picked nodes with as many others as it takes; None when those are not enough."""
    most = need.nodes_max or len(picked) + len(others)
    first = _first_that_do(need, picked, others, most)
    if first is not None:
        return first
    largest = sorted(others, key=lambda pair: (-pair[1].tasks, -pair[1].gpus, pair[0].order))
    return _first_that_do(need, picked, largest, most)


def _first_that_do(need: Need, picked: Chosen, others: Chosen, most: int) -> Chosen | None:
    gpus = gpus_of_job(need)
    wanted = min(need.nodes_wanted or need.nodes_min, most)
    taken = list(picked)
    tasks = sum(room.tasks for _, room in taken)
    found_gpus = sum(room.gpus for _, room in taken)
    for pair in others:
        enough = tasks >= max(need.tasks, len(taken)) and found_gpus >= gpus
        if len(taken) >= wanted and enough:
            break
        if len(taken) >= most:
            break
        if most == 1 and not (pair[1].tasks >= need.tasks and pair[1].gpus >= gpus):
            continue
        taken.append(pair)
        tasks += pair[1].tasks
        found_gpus += pair[1].gpus
    enough = tasks >= max(need.tasks, len(taken)) and found_gpus >= gpus
    return taken if need.nodes_min <= len(taken) <= most and enough else None


def _contiguous(need: Need, way: Alternative, rooms: Chosen) -> Chosen | None:
    """Return the first run of neighbours in the node table that does."""
    for first in range(len(rooms)):
        last = first
        while last + 1 < len(rooms) and rooms[last + 1][0].order == rooms[last][0].order + 1:
            last += 1
        run = rooms[first : last + 1]
        most = need.nodes_max or len(run)
        for count in range(need.nodes_min, min(most, len(run)) + 1):
            names = {site.name for site, _ in run[:count]}
            has_all = set(need.required) <= names and all(
                sum(has_features(site.kind.features, test) for site, _ in run[:count]) >= wanted
                for test, wanted in way.some
            )
            if has_all and _first_that_do(need, run[:count], [], count) is not None:
                return run[:count]
    return None


def shares_of(need: Need, chosen: Sequence[tuple[Site, Part]]) -> tuple[NodeShare, ...]:
    """Return what a job gets of its nodes: tasks and GPUs go to the first as far as they fit.

    For each later node that it must have a task is kept back, and on cores of several threads a
    core's worth. Where nodes beyond those were taken, tasks are dealt out in turn to what is left.
    """
    tasks, gpus = max(need.tasks, len(chosen)), gpus_of_job(need)
    core = max(1, (need.threads or chosen[0][0].kind.threads) // max(1, need.cpus_per_task))
    kept = [min(core, room.tasks) for _, room in chosen]
    if sum(kept) > tasks:
        kept = [1] * len(chosen)
    later_gpus = len(chosen) if gpus else 0
    most = []
    left = tasks
    for place, (_, room) in enumerate(chosen):
        later = sum(kept[place + 1 : max(need.nodes_min, place + 1)])
        here = max(min(room.tasks, left - later), 1)
        most.append(here)
        left -= min(here, left)
    shares = []
    for (site, room), here in zip(chosen, _dealt(tasks, most), strict=True):
        gpus_here = 0
        if gpus:
            later_gpus -= 1
            gpus_here = min(room.gpus, max(0, gpus - later_gpus))
        gpus -= gpus_here
        shares.append(share_of(site, need, Part(here, gpus_here)))
    return tuple(shares)


def _dealt(tasks: int, most: Sequence[int]) -> Sequence[int]:
    """Return how many tasks each node gets, of which it takes at most so many."""
    if sum(most) <= tasks:
        return most
    dealt = [1] * len(most)
    left = tasks - len(most)
    while left > 0:
        for place, limit in enumerate(most):
            if dealt[place] < limit and left > 0:
                dealt[place] += 1
                left -= 1
    return dealt
