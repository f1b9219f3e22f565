"""Slurm's commands as processes, on a real controller: what people's scripts call and read."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.controllers import Controllers
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.wire.cluster import Configured, Reconfigure
from spur_cli.main import main

CONFIG = """\
[cluster]
name = "demo"

[[nodes]]
names = "n[1-4]"
cpus = 4
memory_mib = 8000

[[nodes]]
names = "g[1-2]"
cpus = 16
memory_mib = 64000
gpus = "mi300x:8"

[[partitions]]
name = "debug"
nodes = "n[1-4]"
default = true
default_time_s = 600
max_time_s = 1800

[[partitions]]
name = "gpu"
nodes = "g[1-2]"
default_time_s = 3600

[[partitions]]
name = "drainp"
nodes = "n1"
state = "DRAIN"
"""

HEADER = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"


class Shell:
    """A person's shell: a working directory, and the commands on PATH."""

    def __init__(self, directory: Path, socket: Path, bin_directory: Path) -> None:
        self.directory = directory
        self.environment = {
            "PATH": f"{bin_directory}:/usr/bin:/bin",
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "SPUR_SOCKET": str(socket),
        }

    def run(
        self, *argv: str, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd=self.directory,
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def submit(self, *argv: str, stdin: str = "", **environment: str) -> str:
        """Submit and return the job's number."""
        done = self.run("sbatch", *argv, stdin=stdin, **environment)
        match = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
        assert match, done.stderr
        assert done.returncode == 0
        return match[1]

    def queue(self, job_id: str, form: str) -> str:
        """Return what squeue shows of one job."""
        done = self.run("squeue", "-h", "-j", job_id, "-o", form)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.rstrip("\n")

    def script(self, text: str, name: str = "job.sh") -> str:
        (self.directory / name).write_text(text)
        return name


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """One controller that is configured, and a directory with Slurm's names."""
    directory = tmp_path_factory.mktemp("cluster")
    controllers = Controllers.create(directory, 1, first_port=24510)
    controllers.start()

    async def configure() -> object:
        async with controllers.client() as client:
            return await client.ask(Reconfigure((ConfigFile(CONFIG_FILE, CONFIG),)), Configured)

    try:
        assert isinstance(asyncio.run(configure()), Configured)
        assert main(["spur", "link", str(directory / "bin")]) == 0
        yield Path(controllers.members[0].socket.removeprefix("unix:")), directory / "bin"
    finally:
        controllers.stop()


@pytest.fixture
def shell(cluster: tuple[Path, Path], tmp_path: Path) -> Shell:
    return Shell(tmp_path, *cluster)


def test_wrapped_command_is_submitted_and_shown(shell: Shell) -> None:
    """Someone submits a command, to be released later, and looks for it."""
    job_id = shell.submit("-H", "-n1", "--wrap=hostname")
    user = shell.queue(job_id, "%u")
    shown = shell.run("squeue", "-j", job_id).stdout
    assert shown == (
        f"{HEADER}{job_id:>18}     debug     wrap {user:>8} PD       0:00      1 (JobHeldUser)\n"
    )
    assert shell.run("squeue", "--me", "-h", "-o", "%i", "-S", "-i").stdout.split()[0] == job_id


def test_directives_environment_and_line_are_layered(shell: Shell) -> None:
    """A script says ten minutes, the environment twenty, the line three CPUs for a task."""
    script = shell.script("#!/bin/bash\n#SBATCH -t 10 -c 2 # two\n#SBATCH -J 'my job'\ntrue\n")
    job_id = shell.submit("-c", "3", script, "--mem=1G", SBATCH_TIMELIMIT="20")
    assert shell.queue(job_id, "%l|%C|%j|%m") == "20:00|3|my job|0"


def test_script_from_a_pipe_is_named_sbatch(shell: Shell) -> None:
    """Someone pipes a here-document."""
    job_id = shell.submit(stdin="#!/bin/bash\n#SBATCH -t 1\necho\n")
    assert shell.queue(job_id, "%j %l") == "sbatch 1:00"


def test_array_is_one_line_until_it_is_spread(shell: Shell) -> None:
    """Someone submits a throttled array in held state."""
    job_id = shell.submit("-H", "-a", "1-10:3%2", "--wrap=true")
    assert shell.queue(job_id, "%i|%K|%r|%Q") == (f"{job_id}_[1,4,7,10%2]|1,4,7,10%2|JobHeldUser|0")
    spread = shell.run("squeue", "-h", "-r", "-j", job_id, "-o", "%i").stdout.split()
    assert spread == [f"{job_id}_{task}" for task in (1, 4, 7, 10)]
    one = shell.run("squeue", "-h", "-r", "-j", f"{job_id}_4", "-o", "%i").stdout.split()
    assert one == [f"{job_id}_4"]


def test_gpus_and_a_deferred_start_are_shown(shell: Shell) -> None:
    """Someone asks for two GPUs of a kind, an hour from now."""
    job_id = shell.submit("-p", "gpu", "--gres=gpu:mi300x:2", "-b", "now+1hour", "--wrap=true")
    shown = shell.queue(job_id, "%b|%r|%P|%l|%S")
    assert shown.startswith("gres:gpu:mi300x:2|BeginTime|gpu|1:00:00|20")


def test_one_unknown_job_is_an_error_and_several_are_not(shell: Shell) -> None:
    """A workflow tool polls for jobs that are long gone."""
    job_id = shell.submit("--wrap=true")
    one = shell.run("squeue", "-h", "-j", "999999")
    assert (one.returncode, one.stdout) == (1, "")
    assert one.stderr == "slurm_load_jobs error: Invalid job id specified\n"
    two = shell.run("squeue", "-h", "-o", "%i %T", "-j", f"{job_id},999999")
    assert (two.returncode, two.stdout, two.stderr) == (0, f"{job_id} PENDING\n", "")


def test_parsable_prints_the_number_alone(shell: Shell) -> None:
    """A script keeps the number in a variable."""
    assert shell.run("sbatch", "--parsable", "--wrap=true").stdout.strip().isdigit()


REFUSED = [
    (["-p", "nosuch"], "invalid partition specified: nosuch", "Invalid partition name specified"),
    (["-p", "drainp"], None, "Required partition not available (inactive or drain)"),
    (["-a", "1-99999"], None, "Invalid job array specification"),
]


@pytest.mark.parametrize(("argv", "first", "last"), REFUSED)
def test_refusal_is_told_in_slurms_words(
    shell: Shell, argv: list[str], first: str | None, last: str
) -> None:
    """Someone asks for what this cluster does not have."""
    done = shell.run("sbatch", *argv, "--wrap=true")
    lines = [f"sbatch: error: {first}"] if first else []
    lines.append(f"sbatch: error: Batch job submission failed: {last}")
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (1, "", lines)


BAD_SCRIPTS = [
    ("", "sbatch: error: Batch script is empty!", 1),
    ("true\n", "sbatch: error: This does not look like a batch script.  The first", 1),
    ("#!/bin/sh\r\n", "sbatch: error: Batch script contains DOS line breaks (\\r\\n)", 1),
    ("#!/bin/sh\n#SBATCH -t abc\n", "sbatch: error: Invalid --time specification", 255),
    ("#!/bin/sh\n#SBATCH --gpu-count=2\n", "sbatch: unrecognized option '--gpu-count=2'", 255),
    ("#!/bin/sh\n#SBATCH x\n", "sbatch: error: Invalid directive found in batch script: x", 255),
]


@pytest.mark.parametrize(("text", "sentence", "status"), BAD_SCRIPTS)
def test_bad_script_is_refused_before_anything_is_asked(
    shell: Shell, text: str, sentence: str, status: int
) -> None:
    """Someone hands in a script that is none, or has a directive that is none."""
    script = shell.directory / "job.sh"
    script.write_bytes(text.encode())
    done = shell.run("sbatch", "job.sh", SPUR_SOCKET="/nowhere/at/all")
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.splitlines()[0] == sentence


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nosuch.sh", "Unable to open file nosuch.sh"),
        ("-", "Unable to open file -"),
        ("./folder", "Batch script is empty!"),
    ],
)
def test_script_that_cannot_be_read_is_said(shell: Shell, name: str, sentence: str) -> None:
    """Someone mistypes the name of their script."""
    (shell.directory / "folder").mkdir()
    done = shell.run("sbatch", name)
    assert (done.returncode, done.stderr) == (1, f"sbatch: error: {sentence}\n")


def test_no_controller_is_said_in_slurms_words(shell: Shell) -> None:
    """The controllers are down."""
    squeue = shell.run("squeue", SPUR_SOCKET="/nowhere/at/all")
    words = "Unable to contact slurm controller (connect failure)"
    assert squeue.returncode == 1
    assert squeue.stderr.startswith(f"slurm_load_jobs error: {words}\nhint: no controller took")
    sbatch = shell.run("sbatch", "--wrap=true", SPUR_SOCKET="/nowhere/at/all")
    assert (sbatch.returncode, sbatch.stdout) == (1, "")
    assert sbatch.stderr.startswith(f"sbatch: error: Batch job submission failed: {words}\n")


@pytest.mark.parametrize(
    ("argv", "status", "sentence"),
    [
        (["extra", "args"], 1, "squeue: error: Unrecognized option: extra"),
        (["-S", "q"], 1, "squeue: error: Invalid sort specification: q"),
        (["-j", "abc"], 1, "squeue: error: Invalid job id: abc"),
        (["-w", "nosuch"], 1, "squeue: error: Invalid node name nosuch"),
        (["-u", "no such user"], 0, "squeue: error: Invalid user: no such user"),
        (["-t", "XX"], 1, "squeue: error: Invalid job state specified: XX"),
        (["-o"], 1, "squeue: option requires an argument -- 'o'"),
        (["-O", "nosuch,jobid:5"], 0, "squeue: error: Invalid job format specification: nosuch"),
        (["-i", "0"], 1, "squeue: error: --iterate=0"),
        (["-i", "abc"], 1, "squeue: error: --iterate=abc"),
        (["-M", "nosuch"], 1, "squeue: error: No cluster 'nosuch' known by database."),
    ],
)
def test_squeue_says_what_it_does_not_take(
    shell: Shell, argv: list[str], status: int, sentence: str
) -> None:
    """Someone mistypes what they want to see."""
    done = shell.run("squeue", *argv)
    assert (done.returncode, done.stderr.splitlines()[0]) == (status, sentence)


@pytest.mark.parametrize("argv", [["-M", "demo"], ["--clusters=all"], ["-M", "demo,nosuch"]])
def test_own_cluster_may_be_named(shell: Shell, argv: list[str]) -> None:
    """A script of a site with several clusters names the one that it means."""
    done = shell.run("squeue", *argv, "-u", "root", "-n", "nosuch")
    assert (done.stdout, done.returncode) == (f"CLUSTER: demo\n{HEADER}", 0)
    told = "squeue: error: No cluster 'nosuch' known by database.\n"
    assert done.stderr == (told if "nosuch" in argv[-1] else "")
    job_id = shell.submit("--hold", "--wrap", "true")
    named = shell.run("squeue", "-h", "-M", "demo", "-j", job_id, "-O", "jobid:6,cluster:5")
    assert named.stdout == f"{job_id:<6}demo \n"


def test_the_queue_is_shown_again_and_again(shell: Shell) -> None:
    """Somebody leaves squeue running in a window."""
    argv = ["squeue", "-i", "1", "-n", "nosuch"]
    with subprocess.Popen(
        argv, env=shell.environment, cwd=shell.directory, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        process.kill()
    assert [lines[1], lines[2], lines[4], lines[5]] == [HEADER, "\n", HEADER, "\n"]
    assert all(re.fullmatch(r"\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\n", lines[at]) for at in (0, 3))
    bare = ["squeue", "-h", *argv[1:]]
    with subprocess.Popen(
        bare, env=shell.environment, cwd=shell.directory, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        process.kill()


def test_filters_narrow_the_queue(shell: Shell) -> None:
    """Someone looks for some of their jobs."""
    names = {name: shell.submit("-H", "-J", name, "-A", "astro", "--wrap=true") for name in "xy"}
    other = shell.submit("-J", "z", "-q", "high", "-p", "gpu", "--wrap=true")

    def ids(*argv: str, **environment: str) -> set[str]:
        done = shell.run("squeue", "-h", "-o", "%i", *argv, **environment)
        assert done.returncode == 0, done.stderr
        return set(done.stdout.split())

    assert ids("-n", "x,z", "-A", "astro") == {names["x"]}
    assert ids("-A", "astro") == set(names.values())
    assert ids("-q", "high") == {other}
    assert ids("--name=z", SQUEUE_PARTITION="gpu") == {other}
    assert ids("-u", str(os.getuid()), "-t", "RUNNING") == set()
    assert ids("-t", "all", "-n", "y") == {names["y"]}
    assert ids("-t", "") == set()


def states(shell: Shell, job_id: str) -> list[str]:
    """Return id and state of a job and its tasks, ended ones too."""
    done = shell.run("squeue", "-h", "-t", "all", "-r", "-j", job_id, "-o", "%i %T", "-S", "i")
    return done.stdout.splitlines()


def test_cancelling_ends_what_waits(shell: Shell) -> None:
    """Someone cancels a job, and again, and one that never was."""
    job_id = shell.submit("-H", "--wrap=true")
    for _ in range(2):
        done = shell.run("scancel", job_id, "4000000")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert states(shell, job_id) == [f"{job_id} CANCELLED"]
    assert shell.run("squeue", "-h", "-j", job_id).stdout == ""
    told = shell.run("scancel", "-v", job_id, "4000000")
    assert told.returncode == 0
    assert told.stderr.splitlines() == [
        f"scancel: Terminating job {job_id}",
        f"scancel: error: Kill job error on job id {job_id}: "
        "Job/step already completing or completed",
        "scancel: Terminating job 4000000",
        "scancel: error: Kill job error on job id 4000000: Invalid job id specified",
    ]


@pytest.mark.parametrize(
    ("tail", "left"),
    [("_2", [1, 3, 4, 5]), ("_[2-4]", [1, 5]), ("_[1,5]", [2, 3, 4]), ("_9", [1, 2, 3, 4, 5])],
)
def test_tasks_are_cancelled_alone(shell: Shell, tail: str, left: list[int]) -> None:
    """Someone cancels some tasks of an array."""
    job_id = shell.submit("-H", "-a", "1-5", "--wrap=true")
    assert shell.run("scancel", f"{job_id}{tail}").returncode == 0
    assert states(shell, job_id) == [f"{job_id}_{task} PENDING" for task in left]


def test_no_tasks_and_no_flags_are_told(shell: Shell) -> None:
    """Someone mistypes a range of tasks, and has a variable that says neither yes nor no."""
    job_id = shell.submit("-H", "-a", "1-5", "--wrap=true")
    told = shell.run("scancel", f"{job_id}_[1,*]")
    assert told.returncode == 1
    assert told.stderr == (
        "scancel: error: _parse_single_range: Invalid range: `*'\n"
        f"scancel: error: Invalid job id {job_id}_[1,*]\n"
    )
    words = {"SCANCEL_VERBOSE": "1", "SCANCEL_INTERACTIVE": "false", "SCANCEL_BATCH": "F"}
    told = shell.run("scancel", job_id, **words)
    assert told.returncode == 0
    assert told.stderr == "scancel: error: Unrecognized SCANCEL_VERBOSE value: 1\n"
    assert states(shell, job_id) == [f"{job_id}_{task} CANCELLED" for task in range(1, 6)]


def test_job_that_never_started_has_its_end_for_both(shell: Shell) -> None:
    """Someone cancels a job that waits, and looks when it was."""
    job_id = shell.submit("-H", "--wrap=true")
    assert shell.run("scancel", job_id).returncode == 0
    start, end = shell.run("squeue", "-h", "-t", "all", "-j", job_id, "-o", "%S %e").stdout.split()
    assert start == end
    assert (
        f"StartTime={start} EndTime={end} " in shell.run("scontrol", "show", "job", job_id).stdout
    )


def test_cancelling_by_a_filter_ends_what_matches(shell: Shell) -> None:
    """Someone cancels all their jobs of a name that wait in a partition."""
    gone = shell.submit("-H", "-J", "many", "-p", "gpu", "--wrap=true")
    stays = shell.submit("-H", "-J", "many", "--wrap=true")
    done = shell.run("scancel", "-n", "many", "-p", "gpu", "-t", "pending", "--me")
    assert (done.returncode, done.stderr) == (0, "")
    assert states(shell, gone) == [f"{gone} CANCELLED"]
    assert states(shell, stays) == [f"{stays} PENDING"]
    told = shell.run("scancel", "-v", "-n", "other", stays)
    assert told.stderr == (
        "scancel: error: No active jobs match ALL job filters, including: job_name=other \n"
    )
    assert shell.run("scancel", "-v", "-n", "many", stays).returncode == 0
    assert states(shell, stays) == [f"{stays} CANCELLED"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "scancel: error: No job identification provided"),
        (["abc"], "scancel: error: Invalid job id abc"),
        (["7_[*]"], "scancel: error: _parse_single_range: Invalid range: `*'"),
        (["-t", "XX"], "Invalid job state specified: XX"),
        (["-t", "completed"], "Invalid job state specified: completed"),
        (["-s", "NOSUCH", "1"], "Unknown job signal: NOSUCH"),
        (["-u", "no such user"], "scancel: error: Invalid user name: no such user"),
        (["-1"], "scancel: invalid option -- '1'"),
    ],
)
def test_scancel_says_what_it_does_not_take(shell: Shell, argv: list[str], sentence: str) -> None:
    """Someone mistypes what shall end."""
    done = shell.run("scancel", *argv)
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, sentence)


def test_a_signal_takes_a_job_that_runs(shell: Shell) -> None:
    """Someone signals a job that has not started."""
    job_id = shell.submit("-H", "--wrap=true")
    done = shell.run("scancel", "-s", "USR1", job_id)
    assert done.stderr == (
        f"scancel: error: Kill job error on job id {job_id}: Job is pending execution\n"
    )
    assert done.returncode == 2042 & 0xFF


def test_hold_and_release_change_who_may_start(shell: Shell) -> None:
    """Someone holds their job and lets it go."""
    job_id = shell.submit("-b", "now+1hour", "--wrap=true")
    assert shell.run("scontrol", "uhold", job_id).returncode == 0
    assert shell.queue(job_id, "%r %Q") == "JobHeldUser 0"
    assert shell.run("scontrol", "release", job_id).returncode == 0
    assert shell.queue(job_id, "%r") == "BeginTime"
    assert shell.run("scontrol", "hold", job_id).returncode == 0
    held_by = "Admin" if os.getuid() == 0 else "User"
    assert shell.queue(job_id, "%r") == f"JobHeld{held_by}"


def test_hold_tells_of_each_job_that_it_cannot_find(shell: Shell) -> None:
    """Someone holds two jobs, one of which is gone."""
    job_id = shell.submit("-b", "now+1hour", "--wrap=true")
    done = shell.run("scontrol", "hold", f"{job_id},99999")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Invalid job id specified for job 99999",
        "slurm_suspend error: Invalid job id specified",
    ]
    assert shell.queue(job_id, "%Q") == "0"


def test_update_changes_a_job_that_waits(shell: Shell) -> None:
    """Someone changes their mind."""
    job_id = shell.submit("-H", "-t", "10", "--wrap=true")
    done = shell.run(
        "scontrol",
        "update",
        f"JobId={job_id}",
        "TimeLimit=20",
        "Nice=5",
        "JobName=new",
        "Partition=gpu",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert shell.queue(job_id, "%l %y %j %P") == "20:00 5 new gpu"
    assert shell.run("scontrol", "update", "job", job_id, "timelimit=+5").returncode == 0
    assert shell.queue(job_id, "%l") == "25:00"


SCONTROL_REFUSED = [
    (["update", "jobid=99999", "nice=1"], "Invalid job id specified for job 99999"),
    (["update"], "too few arguments for update keyword"),
    (["update", "nice=1"], "No valid entity in update command"),
    (
        ["update", "jobid=1", "nosuchkey=1"],
        "Update of this parameter is not supported: nosuchkey=1",
    ),
    (["update", "jobid=1"], "No changes specified"),
    (
        ["update", "nodename=n1", "state=drain"],
        "You must specify a reason when DOWNING or DRAINING a node. Request denied",
    ),
    (["requeue", "99999"], "Invalid job id specified for job 99999"),
    (["requeue", "abc"], "Invalid job id specified for job abc"),
    (["requeue"], "too few arguments for keyword:requeue"),
    (["hold"], "too few arguments for keyword:hold"),
    (["show"], "too few arguments for keyword:show"),
    (["show", "nosuch"], "invalid entity:nosuch for keyword:show "),
    (["show", "job", "1", "2"], "too many arguments for keyword:show"),
    (["show", "job", "999999"], "slurm_load_jobs error: Invalid job id specified"),
    (["show", "job", "abc"], "scontrol_print_job error: Invalid job id specified"),
    (["getaddrs", "n1"], "invalid keyword: getaddrs"),
    (["ping", "nope"], "too many arguments for keyword:ping"),
]


@pytest.mark.parametrize(("argv", "sentence"), SCONTROL_REFUSED)
def test_scontrol_says_what_it_does_not_take(shell: Shell, argv: list[str], sentence: str) -> None:
    """Someone mistypes a keyword, a job or a change."""
    done = shell.run("scontrol", *argv)
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, sentence)
    quiet = shell.run("scontrol", "-Q", *argv)
    assert (quiet.returncode, quiet.stderr) == (1, "")


def test_job_that_waits_is_not_requeued(shell: Shell) -> None:
    """Someone requeues a job that has not started."""
    job_id = shell.submit("-H", "--wrap=true")
    done = shell.run("scontrol", "requeue", job_id)
    assert (done.returncode, done.stderr) == (1, f"Job is pending execution for job {job_id}\n")


@pytest.mark.parametrize("form", ["job", "jobs", "jobid", "jo"])
def test_record_of_a_job_is_found_by_every_spelling(shell: Shell, form: str) -> None:
    """Scripts have asked for jobs in all these ways."""
    job_id = shell.submit("-H", "-N", "2", "--mem=1G", "-J", "told", "--wrap=true")
    shown = shell.run("scontrol", "show", form, job_id).stdout
    assert shown.startswith(f"JobId={job_id} JobName=told\n   UserId=")
    for words in (["sho", f"{form}={job_id}"], ["-o", "show", form, job_id]):
        keys = shell.run("scontrol", *words).stdout.split()
        assert "NumNodes=2-2" in keys
        assert "MinMemoryNode=1G" in keys
        assert "JobState=PENDING" in keys


def test_nodes_partitions_and_the_rest_are_shown(shell: Shell) -> None:
    """Someone looks round in a cluster that is new to them."""
    node = shell.run("scontrol", "show", "node", "g1").stdout
    assert "   Gres=gpu:mi300x:8\n" in node
    assert node.startswith("NodeName=g1 CoresPerSocket=")
    assert shell.run("scontrol", "-o", "show", "nodes").stdout.count("NodeName=") == 6
    part = shell.run("scontrol", "show", "part", "debug").stdout
    assert "MaxTime=00:30:00" in part
    assert "TotalCPUs=16 TotalNodes=4" in part
    missing = shell.run("scontrol", "show", "node", "nosuch")
    assert (missing.returncode, missing.stdout) == (1, "Node nosuch not found\n")
    missing = shell.run("scontrol", "show", "partition", "nosuch")
    assert (missing.returncode, missing.stdout) == (1, "Partition nosuch not found\n")
    missing = shell.run("scontrol", "show", "res", "nosuch")
    assert (missing.returncode, missing.stdout) == (1, "Reservation nosuch not found\n")
    for words, told in (("res", "No reservations in the system\n"), ("burstbuffer", "")):
        done = shell.run("scontrol", "show", words)
        assert (done.returncode, done.stdout) == (0, told)
    assert "ClusterName             = demo" in shell.run("scontrol", "show", "config").stdout
    empty = shell.run("scontrol", "show", "hostnames")
    assert (empty.returncode, empty.stderr) == (0, "scontrol: error: host list is empty\n")
    assert shell.run("scontrol", "show", "hostnames", "n[1-2],g1").stdout.split() == [
        "n1",
        "n2",
        "g1",
    ]
    assert shell.run("scontrol", "show", "hostlist", "n1,n2,n3").stdout == "n[1-3]\n"


def test_ping_says_whether_a_controller_answers(shell: Shell) -> None:
    """A monitor asks every minute."""
    up = shell.run("scontrol", "ping")
    assert (up.returncode, up.stdout.endswith(" is UP\n")) == (0, True)
    down = shell.run("scontrol", "ping", SPUR_SOCKET="/nowhere/at/all")
    assert (down.returncode, down.stdout.endswith(" is DOWN\n")) == (1, True)


def test_sinfo_shows_partitions_and_nodes(shell: Shell) -> None:
    """Someone asks what there is; no node has an agent yet."""
    shown = shell.run("sinfo")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines() == [
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST",
        "debug*       up      30:00      4    unk n[1-4]",
        "gpu          up   infinite      2    unk g[1-2]",
        "drainp    drain   infinite      1    unk n1",
    ]
    nodes = shell.run("sinfo", "-h", "-N", "-p", "debug,gpu", "-o", "%N %c %m %G %T").stdout
    assert nodes.splitlines() == [
        "g1 16 64000 gpu:mi300x:8 unknown",
        "g2 16 64000 gpu:mi300x:8 unknown",
        *(f"n{number} 4 8000 (null) unknown" for number in range(1, 5)),
    ]
    assert shell.run("sinfo", "-h", "-O", "partitionname:8,nodes:3", "-p", "gpu").stdout == (
        "gpu     2  \n"
    )


def test_sinfo_says_what_it_does_not_take(shell: Shell) -> None:
    """Someone mistypes what they want to see, or the controllers are down."""
    bad = shell.run("sinfo", "-t", "nosuch")
    assert (bad.returncode, bad.stderr.splitlines()[0]) == (
        1,
        'sinfo: error: Bad state string: "nosuch"',
    )
    down = shell.run("sinfo", SPUR_SOCKET="/nowhere/at/all")
    assert (down.returncode, down.stderr.splitlines()[0]) == (
        1,
        "slurm_load_partitions: Unable to contact slurm controller (connect failure)",
    )
