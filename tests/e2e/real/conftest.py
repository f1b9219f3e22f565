"""Scripts and commands as people of other sites have them, on real nodes, with Slurm's answers.

- test_directives: spellings of directives, blank and comment lines among them, comments behind
  them, several on a line, DOS line ends, ones that are none, #PBS; script, environment, line.
- test_scripts: here-documents, --wrap, arguments; output files, exported variables, directories.
- test_arrays: throttle, lines of a file, the site's limit, variables, parts that are cancelled.
- test_hetjobs: components by directives, what the script knows of them, their end as a whole.
- test_dependencies: a join, tasks after their counterparts, singletons, what can never hold.
- test_gpus: counts and kinds. test_endings: exit codes, signals. test_time_limits: spellings, and
  a job at its limit.
- test_limits_and_updates: limits of the shell, changed texts, forecasts.
- test_polling: squeue of one and of several, sacct's final states, a key of scontrol's records,
  sinfo's summary. test_bad_places: files that can't be opened, a user who vanished.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster

SITE = """\
ClusterName=demo
SlurmctldHost=ctl(127.0.0.1)
SlurmdTimeout=60
KillWait=2
MinJobAge=300
MaxArraySize=1001
ReturnToService=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
GresTypes=gpu
NodeName=c[01-02] CPUs=16 RealMemory=64000 Feature=intel,rack1 State=UNKNOWN
NodeName=c[03-04] CPUs=16 RealMemory=64000 Feature=amd,rack2 State=UNKNOWN
NodeName=g[01-02] CPUs=64 RealMemory=512000 Feature=a100,nvlink,rack1 Gres=gpu:a100:4 State=UNKNOWN
NodeName=g[03-04] CPUs=64 RealMemory=512000 Feature=v100,rack2 Gres=gpu:v100:2 State=UNKNOWN
PartitionName=cpu Nodes=c[01-04] Default=YES MaxTime=2-00:00:00 State=UP
PartitionName=gpu Nodes=g[01-04] MaxTime=UNLIMITED State=UP
"""
"""A small site: a partition of CPUs in two racks, and one of GPUs of two kinds."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[MachineCluster]:
    """Yield the small site, where every user can reach it."""
    with tempfile.TemporaryDirectory(prefix="spur-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "slurm.conf").write_text(SITE)
        made = MachineCluster(directory / "up")
        made.up("--conf", str(directory / "slurm.conf"))
        yield made
        made.run("down")


@pytest.fixture(scope="session", autouse=True)
def limited(
    cluster: MachineCluster, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, Path]:
    """Return two jobs that outlive their limit of a minute, and the output of the first.

    The first hears TERM and goes on, the second ends by it. They are submitted before all others,
    whose time their minute is.
    """
    folder = tmp_path_factory.mktemp("limited")
    (folder / "job.sh").write_text(
        "#!/bin/bash\ntrap 'echo term' TERM\nsleep 300 & wait\nsleep 300\n"
    )
    submit = "sbatch --parsable -w c04 -t 1 -o"
    said = cluster.shell(
        f"{submit} lim.log job.sh; {submit} /dev/null --wrap='sleep 300'", cwd=folder
    )
    deaf, mortal = said.split()
    return deaf, mortal, folder / "lim.log"


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which tests failed."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def _left_to_nobody(
    cluster: MachineCluster, limited: tuple[str, str, Path], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Let the jobs that a failing test leaves behind fail no others."""
    yield
    if request.node.stash.get(_FAILED, False):
        deaf, mortal, _ = limited
        left = f"squeue -h -o %A | grep -vxE '{deaf}|{mortal}'"
        cluster.shell(f"for job in $({left}); do scancel $job 2> /dev/null; done; true")
