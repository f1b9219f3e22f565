"""One node and one need: how many tasks fit on what is free, and which CPUs and GPUs they get.

Cores are given whole, and tasks may meet on a core; cores are taken from the sockets in turn, so
many at a time as a task has CPUs. Source: select/cons_tres of Slurm 22.05, by what it answered.
"""

from __future__ import annotations

from typing import NamedTuple

from spur.projections.resources import NodeUse
from spur.scheduling.need import ALL_MEMORY, Need
from spur.scheduling.sites import Kind, Site
from spur.values.tres import NodeShare, Per, cpu_set

__all__ = ["Part", "could_take", "room_on", "share_of"]


class Part(NamedTuple):
    """What a job gets of one node."""

    tasks: int
    gpus: int
    """Of those that are asked for the whole job."""


NOTHING = Part(0, 0)


def room_on(site: Site, need: Need) -> Part:
    """Return the most tasks, and GPUs for the whole job, that fit on what is free of a node."""
    kind = site.kind
    if need.is_whole and site.use.jobs:
        return NOTHING
    if need.is_shared and site.use.shared_mask:
        cores = site.shareable(need.jobs_per_cpu_max).bit_count() // kind.threads
    else:
        cores = site.cores_free
    if not cores:
        return NOTHING
    if need.cpus_max and site.use.jobs and not need.is_shared:
        left = need.cpus_max - site.cpus_in(need.partition)
        cores = min(cores, max(left, 0) // kind.threads)
        if not cores:
            return NOTHING
    return _room(need, kind, cores, site.memory_free, site.use)


def could_take(kind: Kind, need: Need) -> Part:
    """Return the most that would fit on an idle node of a kind."""
    return _room(need, kind, kind.cores, kind.memory_mib, _IDLE)


_IDLE = NodeUse(0, 0, 0, 0, {})


def _room(need: Need, kind: Kind, cores: int, memory_mib: int, use: NodeUse) -> Part:
    """Return what fits on so many cores and so much memory."""
    threads = min(kind.threads, need.threads) if need.threads else kind.threads
    if need.cpus_max:
        cores = min(cores, need.cpus_max // kind.threads)
    gpus_of_node, gpus_of_task, gpus_of_job = 0, 0, 0
    tasks = 1 << 31
    for gres in need.gpus:
        free = (kind.gpus.get(gres.kind, 0) & ~use.gpus).bit_count()
        if gres.per is Per.TASK:
            tasks = min(tasks, free // gres.count)
            gpus_of_task += gres.count
        elif gres.per is Per.JOB:
            if not free:
                return NOTHING
            gpus_of_job = min(free, gres.count)
        else:
            count = gres.count * _sockets_used(need, kind) if gres.per is Per.SOCKET else gres.count
            if free < count:
                return NOTHING
            gpus_of_node += count
    if need.memory_mib == ALL_MEMORY:
        if use.memory_mib:
            return NOTHING
    elif need.memory_per is Per.CPU:
        cores = min(cores, memory_mib // (need.memory_mib * threads))
    elif need.memory_per is Per.NODE:
        if need.memory_mib > memory_mib:
            return NOTHING
    else:
        left = memory_mib - need.memory_mib * gpus_of_node
        if left < 0:
            return NOTHING
        if gpus_of_task:
            tasks = min(tasks, left // (need.memory_mib * gpus_of_task))
        gpus_of_job = min(gpus_of_job, left // need.memory_mib)
    cpus = cores * threads
    if cpus < max(1, need.cpus_min) or cpus < gpus_of_node * need.cpus_per_gpu:
        return NOTHING
    if need.cpus_per_gpu:
        gpus_of_job = min(gpus_of_job, cpus // need.cpus_per_gpu)
    if _asks_for_job(need) and not gpus_of_job:
        return NOTHING
    if not need.overcommits:
        tasks = min(tasks, cpus // need.cpus_per_task)
        if need.tasks_per_core:
            tasks = min(tasks, cores * need.tasks_per_core)
    if need.tasks_per_node_max:
        tasks = min(tasks, need.tasks_per_node_max)
    if need.is_whole:
        # A limit of memory or of the partition would leave some of a node that is taken whole.
        if cores < kind.cores or (
            need.memory_per is Per.GPU and need.memory_mib * kind.block.gpus > memory_mib
        ):
            return NOTHING
    if tasks < need.tasks_per_node_min:
        return NOTHING
    return Part(tasks, gpus_of_job) if tasks else NOTHING


def _asks_for_job(need: Need) -> bool:
    return any(gres.per is Per.JOB for gres in need.gpus)


def _sockets_used(need: Need, kind: Kind) -> int:
    """Return on how many sockets GPUs per socket are counted."""
    return min(need.ask.sockets_per_node or 1, len(kind.sockets))


def share_of(site: Site, need: Need, part: Part) -> NodeShare:
    """Return the share for so many tasks; it must fit, as `room_on` says."""
    kind = site.kind
    threads = min(kind.threads, need.threads) if need.threads else kind.threads
    gpus = _gpus(site, need, part)
    if need.is_whole:
        mask = kind.cpus
        gpus = kind.gpus[""]
    else:
        cpus = 1 if need.overcommits else part.tasks * need.cpus_per_task
        cpus = max(cpus, need.cpus_min, gpus.bit_count() * need.cpus_per_gpu)
        cores = -(-cpus // threads)
        if need.tasks_per_core and not need.overcommits:
            cores = max(cores, -(-part.tasks // need.tasks_per_core))
        mask = _cores(site, need, cores)
    return NodeShare(
        site.name,
        mask.bit_count(),
        _memory(site, need, mask.bit_count() // kind.threads * threads, gpus.bit_count()),
        gpus,
        cpu_set(mask),
        need.is_shared,
    )


def _memory(site: Site, need: Need, cpus: int, gpus: int) -> int:
    if need.memory_mib == ALL_MEMORY:
        return site.kind.memory_mib
    if need.memory_per is Per.NODE:
        return need.memory_mib
    return need.memory_mib * (cpus if need.memory_per is Per.CPU else gpus)


def _gpus(site: Site, need: Need, part: Part) -> int:
    """Return the GPUs: those of the lowest indexes of each kind asked."""
    mask = 0
    for gres in need.gpus:
        if gres.per is Per.TASK:
            count = gres.count * part.tasks
        elif gres.per is Per.JOB:
            count = part.gpus
        elif gres.per is Per.SOCKET:
            count = gres.count * _sockets_used(need, site.kind)
        else:
            count = gres.count
        mask |= _lowest(site.gpus_free(gres.kind) & ~mask, count)
    return mask


def _lowest(mask: int, count: int) -> int:
    """Return the lowest bits of a mask, so many."""
    taken = 0
    for _ in range(count):
        bit = mask & -mask
        taken |= bit
        mask ^= bit
    return taken


def _cores(site: Site, need: Need, cores: int) -> int:
    """Return the CPUs of so many free cores, from the sockets in turn."""
    kind = site.kind
    threads = kind.threads
    free = site.cpus_free
    wanted = cores
    if need.is_shared and free.bit_count() // threads < cores:
        free = site.shareable(need.jobs_per_cpu_max)
    core = (1 << threads) - 1
    chosen = 0
    left = [socket & free for socket in kind.sockets]
    turn = max(1, need.cpus_per_task)
    if free == (1 << free.bit_length()) - 1 and len(left) == 1:
        return (1 << wanted * threads) - 1
    while wanted:
        for place, socket in enumerate(left):
            for _ in range(min(turn, wanted)):
                if not socket:
                    break
                lowest = socket & -socket
                taken = core << lowest.bit_length() - 1
                chosen |= taken
                socket &= ~taken
                wanted -= 1
            left[place] = socket
            if not wanted:
                break
        if not any(left) and wanted:
            raise ValueError(f"node {site.name} has {wanted} cores less than it said")
    return chosen
