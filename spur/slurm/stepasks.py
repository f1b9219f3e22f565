"""What srun asks for a step: from its options to a request.

Variables that a job's environment has of its own submission (its memory, its GPUs) ask for the
allocation and not for each of its steps: they are passed over inside of one.

Source: srun(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError, error_line
from spur.values.hostlist import parse_hostlist
from spur.values.jobspec import Sharing
from spur.values.steps import Dealing
from spur.values.tres import GresAsk, Per
from spur.wire.steps import StepAsk

__all__ = ["StepWish", "options_inside", "step_wish"]

_OF_THE_JOB = (
    "gpus",
    "gpus_per_node",
    "gpus_per_socket",
    "gpus_per_task",
    "gres",
    "memory_per_node",
    "name",
    "sharing",
    "time_limit_s",
)
"""Fields that inside of a job count only when the command line gives them."""


_GRES = ("gres", "gpus", "gpus_per_node", "gpus_per_socket", "gpus_per_task")


class StepWish(NamedTuple):
    """What is asked, and what is said about it."""

    ask: StepAsk
    warnings: tuple[str, ...]


def options_inside(environment: Layer, line: Layer) -> dict[str, Any]:
    """Return the fields that count for a step inside of a job."""
    kept = {name: v for name, v in environment.values.items() if name not in _OF_THE_JOB}
    if any(name.startswith("memory_") for name in line.values):
        kept = {name: v for name, v in kept.items() if not name.startswith("memory_")}
    return {**kept, **line.values}


def step_wish(
    values: Mapping[str, Any],
    nodes_held: int,
    *,
    plane_size: str = "",
    nodes_from: str = "--nodes",
) -> StepWish:
    """Return what a step asks of an allocation of so many nodes.

    `plane_size` is the value of SLURM_DIST_PLANESIZE, `nodes_from` what asked for nodes.

    Raises: SlurmError for what cannot be.
    """
    warnings: list[str] = []
    required = values.get("nodes_required", "")
    nodes_min, nodes_max = values.get("nodes", (0, 0))
    tasks: int = values.get("tasks", 0)
    if tasks and tasks < nodes_min:
        warnings.append(
            f"srun: Warning: can't run {tasks} processes on {nodes_min} nodes, "
            f"setting nnodes to {tasks}"
        )
        nodes_min = nodes_max = tasks
    if nodes_min > nodes_held:
        raise SlurmError(
            error_line("srun", f"Only allocated {nodes_held} nodes asked for {nodes_min}")
        )
    relative: int | None = values.get("relative")
    if relative is not None:
        _refuse_beyond(relative, max(nodes_min, 1), nodes_held, nodes_from)
    if required and not tasks and not nodes_min:
        nodes_min = len(set(parse_hostlist(required)))
        nodes_max = nodes_min
    dealing, plane, arbitrary = _dealing(values.get("distribution", ""), plane_size)
    per = Per.CPU if "memory_per_cpu" in values else Per.NODE
    memory_mib = values.get("memory_per_cpu", values.get("memory_per_node", 0))
    ask = StepAsk(
        nodes_min=nodes_min,
        nodes_max=nodes_max,
        tasks=tasks,
        tasks_per_node=values.get("tasks_per_node", 0),
        cpus_per_task=values.get("cpus_per_task", 0),
        memory_mib=memory_mib,
        memory_per=per,
        gres=_gres(values),
        nodes_required=required,
        nodes_excluded=values.get("nodes_excluded", ""),
        relative=relative,
        dealing=dealing,
        plane=plane,
        arbitrary=arbitrary,
        exact=bool(values.get("exact")) or values.get("sharing") is Sharing.EXCLUSIVE,
        overlaps=bool(values.get("overlap")) or values.get("sharing") is Sharing.OVERSUBSCRIBE,
        overcommits=bool(values.get("overcommit")),
    )
    return StepWish(ask, tuple(warnings))


def _refuse_beyond(relative: int, count: int, nodes_held: int, nodes_from: str) -> None:
    """Raises: SlurmError where nodes from one on are more than there are."""
    if relative + count > nodes_held:
        raise SlurmError(
            error_line(
                "srun",
                f"--relative and {nodes_from} option incompatible with count of allocated nodes "
                f"({relative}+{count}>{nodes_held})",
            )
        )


def _dealing(text: str, plane_size: str) -> tuple[Dealing, int, bool]:
    """Return how tasks are dealt out, the size of planes, and whether a list of nodes says so."""
    method = text.partition(",")[0].partition(":")[0]
    word, _, size = method.partition("=")
    if word == "plane":
        digits = size or plane_size
        return Dealing.PLANE, int(digits) if digits.isdigit() and int(digits) else 1, False
    if word == "cyclic":
        return Dealing.CYCLIC, 1, False
    return Dealing.BLOCK, 1, word == "arbitrary"


def _gres(values: Mapping[str, Any]) -> tuple[GresAsk, ...] | None:
    """Return what is asked of generic resources; None when nothing is said of them."""
    if not any(field in values for field in _GRES):
        return None
    asks: tuple[GresAsk, ...] = sum((values.get(field, ()) for field in _GRES), ())
    return asks
