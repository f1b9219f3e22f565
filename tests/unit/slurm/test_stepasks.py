"""What srun's options ask of an allocation, and the variables of its tasks."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.projections.stepdispatch import LaunchStep
from spur.projections.steporders import step_order
from spur.slurm.getopt import parse_arguments
from spur.slurm.layers import Layer, environment_layer, layer_of
from spur.slurm.options import OPTIONS
from spur.slurm.stepasks import options_inside, step_wish
from spur.slurm.stepenv import allocation_environment, step_environment, task_environment
from spur.slurm.wording import SlurmError
from spur.testing.hall import STEP, Hall
from spur.values.steps import Dealing
from spur.values.tres import GresAsk, Per
from spur.wire.agents import LaunchStepOrder
from spur.wire.steps import StepAsk

NOTHING = replace(STEP, tasks=0)


def line_of(text: str) -> Layer:
    """Read a command line."""
    given, _ = parse_arguments(text.split(), OPTIONS["srun"], program="srun", stops_at_word=True)
    return layer_of(given, "srun")


def asked(text: str, nodes_held: int = 4, **environment: str) -> StepAsk:
    """Return what a command line asks inside of a job."""
    variables = environment_layer(environment, OPTIONS["srun"], "srun")
    return step_wish(options_inside(variables, line_of(text)), nodes_held).ask


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("hostname", {}),
        ("-n3 -c2 true", {"tasks": 3, "cpus_per_task": 2}),
        ("-N2-3 true", {"nodes_min": 2, "nodes_max": 3}),
        ("--ntasks-per-node=2 -N2 true", {"tasks_per_node": 2, "nodes_min": 2, "nodes_max": 2}),
        ("-w n[1-2] true", {"nodes_required": "n[1-2]", "nodes_min": 2, "nodes_max": 2}),
        ("-x n1 -r 1 true", {"nodes_excluded": "n1", "relative": 1}),
        ("-m cyclic:block true", {"dealing": Dealing.CYCLIC}),
        ("-m plane=3 true", {"dealing": Dealing.PLANE, "plane": 3}),
        ("-m arbitrary -n1 -w n2 true", {"arbitrary": True, "nodes_required": "n2", "tasks": 1}),
        ("--exact true", {"exact": True}),
        ("--exclusive true", {"exact": True}),
        ("--overlap true", {"overlaps": True}),
        ("-O -n9 true", {"overcommits": True, "tasks": 9}),
        ("--mem=100 true", {"memory_mib": 100}),
        ("--mem-per-cpu=1G true", {"memory_mib": 1024, "memory_per": Per.CPU}),
        ("--gres=gpu:2 true", {"gres": (GresAsk("gpu", "", 2, Per.NODE),)}),
        ("--gres=none true", {"gres": ()}),
    ],
)
def test_options_become_an_ask(text: str, changes: dict[str, Any]) -> None:
    """Srun is called in all ways inside of a job of four nodes."""
    assert asked(text) == replace(NOTHING, **changes)


def test_what_was_asked_for_the_job_is_not_asked_again_for_a_step() -> None:
    """The batch script has its own memory and GPUs in its environment; its tasks count."""
    ask = asked(
        "true", SLURM_MEM_PER_NODE="4000", SLURM_GPUS="2", SLURM_NTASKS="3", SLURM_NNODES="2"
    )
    assert ask == replace(NOTHING, tasks=3, nodes_min=2, nodes_max=2)
    assert asked("--mem=5 true", SLURM_MEM_PER_CPU="500").memory_per is Per.NODE
    assert asked("true", SLURM_MEM_PER_CPU="500").memory_mib == 500


def test_fewer_tasks_than_nodes_are_warned_of() -> None:
    """A script on two nodes calls srun -n1."""
    wish = step_wish({"nodes": (2, 2), "tasks": 1}, 2)
    assert wish.warnings == (
        "srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1",
    )
    assert (wish.ask.nodes_min, wish.ask.nodes_max) == (1, 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("-N3 true", "srun: error: Only allocated 2 nodes asked for 3"),
        (
            "-r 2 -N1 true",
            "srun: error: --relative and --nodes option incompatible with count of allocated "
            "nodes (2+1>2)",
        ),
    ],
)
def test_more_nodes_than_there_are_is_refused_before_asking(text: str, sentence: str) -> None:
    """The job has two nodes."""
    with pytest.raises(SlurmError) as caught:
        asked(text, nodes_held=2)
    assert caught.value.lines == tuple(sentence.split("\n"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("-n0 true", 'srun: error: Invalid numeric value "0" for --ntasks.'),
        ("--jobid=abc true", 'srun: error: Invalid numeric value "abc" for --jobid.'),
        ("-K2 true", 'srun: error: Invalid numeric value "2" for --kill-on-bad-exit.'),
        ("-r -1 true", 'srun: error: Invalid numeric value "-1" for --relative.'),
        ("-m silly true", "srun: error: Invalid --distribution specification"),
        (
            "--async true",
            "srun: error: --async is not honoured yet: srun stays with its step; nothing was done",
        ),
        (
            "--mpi=pmi2 true",
            "srun: error: Couldn't find the specified plugin name for mpi/pmi2 looking at all "
            "files\nsrun: error: cannot find mpi plugin for mpi/pmi2\n"
            "srun: error: MPI: Cannot create context for mpi/pmi2\n"
            "srun: error: MPI: Unable to load any plugin\n"
            "srun: error: Invalid MPI type 'pmi2', --mpi=list for acceptable types",
        ),
    ],
)
def test_values_that_are_none_are_refused(text: str, sentence: str) -> None:
    """Every one is said as Slurm says it, before anything is asked."""
    with pytest.raises(SlurmError) as caught:
        line_of(text)
    assert caught.value.lines == tuple(sentence.split("\n"))


def test_tasks_find_out_who_they_are() -> None:
    """The third of four tasks on two nodes, dealt out in turn."""
    hall = Hall(checked=False)
    shares = hall.share("n1", cpus=2), hall.share("n2", cpus=2)
    job_id = hall.start(hall.submit(), *shares)
    hall.start_step(job_id, replace(STEP, tasks=4, dealing=Dealing.CYCLIC, nodes_min=2))
    effect = next(e for e in hall.cluster.effects if isinstance(e, LaunchStep) and e.node == "n1")
    order = step_order(hall.state, effect, 9)
    assert isinstance(order, LaunchStepOrder)
    found = task_environment(order, 2, user="ada")
    assert found[b"SLURM_PROCID"] == b"2"
    assert found[b"SLURM_LOCALID"] == b"1"
    assert found[b"SLURM_NODEID"] == b"0"
    assert found[b"SLURM_GTIDS"] == b"0,2"
    assert found[b"SLURM_CPUS_ON_NODE"] == b"2"
    assert (found[b"SLURMD_NODENAME"], found[b"SLURM_JOB_USER"]) == (b"n1", b"ada")
    common = step_environment(hall.steps(job_id)[0], {"distribution": "cyclic"})
    assert common["SLURM_STEP_TASKS_PER_NODE"] == "2(x2)"
    assert common["SLURM_STEP_NODELIST"] == "n[1-2]"
    assert common["SLURM_DISTRIBUTION"] == "cyclic"
    job = allocation_environment(hall.view(job_id))
    assert (job["SLURM_JOB_CPUS_PER_NODE"], job["SLURM_JOB_NUM_NODES"]) == ("2(x2)", "2")
