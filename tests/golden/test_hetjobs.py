"""Heterogeneous jobs as a real Slurm 22.05 took them: options of components, and refusals."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from typing import TypeVar

import pytest

from spur.projections.hetjobs import components_of
from spur.slurm.columns.jobline import hosts
from spur.slurm.wording import SlurmError
from spur.testing.builders import Cluster, actor
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.wire.cluster import Reconfigure
from spur.wire.declare import Answer, Request
from spur_cli.commands.sbatch import submit
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals

CONFIGURED = Path(__file__).parent.parent / "data" / "slurm" / "cluster"

A = TypeVar("A", bound=Answer)


class Asking(Session):
    """A session of a user whose controller is in this process."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("sbatch", {})
        self.cluster = cluster

    def ask(
        self, request: Request, expected: type[A], *, held_with: Signals | None = None
    ) -> A | Rejection:
        answer = self.cluster.ask(request, actor(2001))
        assert isinstance(answer, (expected, Rejection))
        return answer


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Return the recorded cluster."""
    files = [
        ConfigFile(name, (CONFIGURED / name).read_text(encoding="utf-8"))
        for name in ("slurm.conf", "gres.conf", "topology.conf")
    ]
    cluster = Cluster(checked=False)
    answer = cluster.ask(Reconfigure(tuple(files)))
    assert not isinstance(answer, Rejection), answer
    return cluster


def shown(cluster: Cluster, job_id: int) -> list[str]:
    """Return name, minutes, nice, partition, CPUs a task, tasks, memory and nodes of components."""
    found = []
    for each in components_of(cluster.state, JobId(job_id)):
        spec = cluster.state.jobs[each].spec
        ask = spec.ask
        memory = "-" if ask.memory_is_default else str(ask.memory_mib)
        minutes = "-" if spec.time_limit_s is None else str(spec.time_limit_s // 60)
        found.append(
            f"{spec.name} {minutes} {spec.nice} {spec.partitions[0]} {ask.cpus_per_task} "
            f"{ask.tasks} {memory} {hosts(ask.nodes_required) or '-'} "
            f"{hosts(ask.nodes_excluded) or '-'}"
        )
    return found


SCRIPT = """\
#!/bin/bash
#SBATCH -n1
#SBATCH hetjob
#SBATCH -n2
#SBATCH hetjob
#SBATCH -n3
#SBATCH packjob
#SBATCH -n1 -t 3
true
"""

OLD = (
    'sbatch: Warning: the "packjob" component separator is being deprecated. '
    'Please, use "hetjob" instead.\n'
)


@pytest.mark.parametrize(
    ("options", "components"),
    [
        (
            "-p long -t 7 -c2 -x n3 --nice=5 -J nm --mem=77 : -n1",
            ["nm 7 5 long 2 1 77 - n3", "nm 7 5 debug 1 1 77 - n3"],
        ),
        (
            "-n1 : -n1 -t 3 --nice=7 --mem-per-cpu=9 -J x",
            ["x 3 7 debug 1 1 - - -", "x 3 7 debug 1 1 9 - -"],
        ),
        ("--mem-per-cpu=9 : -n1", ["wrap - 0 debug 1 1 9 - -", "wrap - 0 debug 1 1 - - -"]),
        ("-w n4 : -n1", ["wrap - 0 debug 1 1 - n4 -", "wrap - 0 debug 1 1 - - n4"]),
        ("-w n4 : -w n6", ["wrap - 0 debug 1 1 - n4 n6", "wrap - 0 debug 1 1 - n6 n4"]),
        ("-n1 : : -n2", [f"wrap - 0 debug 1 {tasks} - - -" for tasks in (1, 1, 2)]),
        (": -n1", ["wrap - 0 debug 1 1 - - -"] * 2),
    ],
)
def test_options_of_components(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    options: str,
    components: list[str],
) -> None:
    """Some options are each component's own; others go on, and back to the first one."""
    submit(Asking(cluster), ["-H", *shlex.split(options), "--wrap", "true"])
    assert shown(cluster, int(capsys.readouterr().out.split()[-1])) == components


@pytest.mark.parametrize(
    ("options", "components"),
    [
        (
            "-J base : -J second -c 2",
            ["base - 1 1", "second - 2 2", "second - 2 3", "second 3 2 1"],
        ),
        (
            "-n1 : -n1 : -n1 : -n1 : -n1 -J fifth",
            ["fifth - 1 1", "fifth - 1 1", "fifth - 1 1", "fifth 3 1 1", "fifth 3 1 1"],
        ),
    ],
)
def test_directives_and_command_line(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    components: list[str],
) -> None:
    """A script of four components is given options for fewer, and for more."""
    stdin = io.TextIOWrapper(io.BytesIO(SCRIPT.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    submit(Asking(cluster), ["-H", *shlex.split(options)])
    out, err = capsys.readouterr()
    found = [line.split() for line in shown(cluster, int(out.split()[-1]))]
    assert [f"{word[0]} {word[1]} {word[4]} {word[5]}" for word in found] == components
    assert err == OLD


FAILED = "sbatch: error: Batch job submission failed:"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-a 1-3 : -n1", [f"{FAILED} Invalid job array specification"]),
        ("-n1 : -a 1-3", [f"{FAILED} Invalid job array specification"]),
        ("-w n4 : -w n4", [f"{FAILED} Invalid node name specified"]),
        (
            "-n1 : -p nosuch",
            [
                "sbatch: error: invalid partition specified: nosuch",
                f"{FAILED} Invalid partition name specified",
            ],
        ),
        (
            "--mem=20 : --mem-per-cpu=10",
            ["sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."],
        ),
    ],
)
def test_what_is_refused(cluster: Cluster, options: str, says: list[str]) -> None:
    """One component alone makes the whole of it wrong, in Slurm's words."""
    with pytest.raises(SlurmError) as refused:
        submit(Asking(cluster), [*shlex.split(options), "--wrap", "true"])
    assert list(refused.value.lines) == says
