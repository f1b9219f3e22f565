"""From the options of sbatch, in three layers, to what a controller is asked."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import pytest

from spur.slurm.getopt import parse_arguments
from spur.slurm.layers import environment_layer, layer_of
from spur.slurm.options import OPTIONS, Effect, Takes
from spur.slurm.submission import Settings, Submission, merge, submission_of
from spur.slurm.timespec import Moment
from spur.slurm.wording import SlurmError
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.ids import JobId
from spur.values.jobspec import Sharing
from spur.values.tres import GresAsk, Per

NS = 1_000_000_000


class Wall:
    """A clock that shows the first second of 2027, in UTC."""

    def now(self) -> int:
        return self.seconds(Moment(2027, 1, 1, 0, 0, 1))

    def moment(self, seconds: int) -> Moment:
        return Moment(*datetime.fromtimestamp(seconds, UTC).timetuple()[:6])

    def seconds(self, moment: Moment) -> int:
        return int(datetime(*moment, tzinfo=UTC).timestamp())


def settings(script: str = "", line: str = "", **environment: str) -> Settings:
    options = OPTIONS["sbatch"]
    layers = [
        layer_of(parse_arguments(shlex.split(text), options, program="sbatch")[0], "sbatch")
        for text in (script, line)
    ]
    return merge(layers[0], environment_layer(environment, options, "sbatch"), layers[1], "sbatch")


def submit(line: str = "", script: str = "", **environment: str) -> Submission:
    return submission_of(
        settings(script, line, **environment),
        program="sbatch",
        default_name="job.sh",
        argv=(b"/data/u1/job.sh", b"x"),
        working_directory=b"/data/u1",
        calendar=Wall(),
    )


def refused(line: str, script: str = "", **environment: str) -> SlurmError:
    with pytest.raises(SlurmError) as error:
        submit(line, script, **environment)
    return error.value


def test_nothing_said_is_one_task_on_one_node() -> None:
    """Someone submits a script without an option."""
    submission = submit()
    spec, text = submission.spec, submission.text
    assert (spec.name, spec.partitions, spec.account, spec.qos) == ("job.sh", (), "", "")
    assert (spec.time_limit_s, spec.begin_ns, spec.nice, spec.requeue) == (None, 0, 0, True)
    assert (spec.ask.nodes_min, spec.ask.nodes_max, spec.ask.tasks) == (1, 0, 1)
    assert (spec.ask.cpus_per_task, spec.ask.memory_mib, spec.ask.gres) == (1, 0, ())
    assert (submission.array, submission.hold, submission.priority) == (None, False, None)
    assert (text.working_directory, text.argv) == (b"/data/u1", (b"/data/u1/job.sh", b"x"))
    assert (text.stdout_path, text.options, submission.warnings) == (b"", (), ())


def test_all_that_is_said_arrives() -> None:
    """Someone uses every option that has an effect."""
    submission = submit(
        "-A astro -a 1-4%2 -b 2027-02-01 -D run -C intel -c 2 -e err -x n4 -G 4 -H -i in"
        " -J alpha -L matlab:2 --mem-per-gpu=2G --nice=5 --no-requeue -w n1,n2 -N 2-3 -n 4"
        " --ntasks-per-node=2 -o out -p debug,long --priority=7 -q high --reservation=r -t 1-0"
        " --comment=note --exclusive=user --mail-type=END -v"
        " --deadline=2027-03-01 -d afterok:7 --kill-on-invalid-dep=yes --time-min=1"
        " --ntasks-per-socket=2 --ntasks-per-core=1 -B 2:4 --hint=nomultithread"
        " --mincpus=8 --cpus-per-gpu=5 --tmp=1G --contiguous -O --prefer=amd"
    )
    spec, ask, text = submission.spec, submission.spec.ask, submission.text
    assert (spec.name, spec.partitions, spec.account) == ("alpha", ("debug", "long"), "astro")
    assert (spec.qos, spec.time_limit_s, spec.nice, spec.requeue) == ("high", 86_400, 5, False)
    assert spec.begin_ns == Wall().seconds(Moment(2027, 2, 1, 0, 0, 0)) * NS
    assert (ask.nodes_min, ask.nodes_max, ask.tasks, ask.tasks_per_node) == (2, 3, 4, 2)
    assert (ask.cpus_per_task, ask.memory_mib, ask.memory_per) == (2, 2048, Per.GPU)
    assert ask.gres == (GresAsk("gpu", "", 4, Per.JOB),)
    assert (ask.features, ask.nodes_required, ask.nodes_excluded) == ("intel", "n1,n2", "n4")
    assert (ask.sharing, ask.licenses, ask.reservation) == (Sharing.USER, "matlab:2", "r")
    assert submission.array is not None
    assert (submission.array.tasks.count, submission.array.throttle) == (4, 2)
    assert (submission.hold, submission.priority) == (True, 7)
    assert (text.working_directory, text.comment) == (b"/data/u1/run", b"note")
    assert (text.stdin_path, text.stdout_path, text.stderr_path) == (b"in", b"out", b"err")
    assert spec.deadline_ns == Wall().seconds(Moment(2027, 3, 1, 0, 0, 0)) * NS
    condition = Condition(DependencyKind.AFTER_OK, JobId(7), None, 0)
    assert spec.dependency == Dependency(False, (condition,))
    assert (spec.kill_on_invalid_dependency, spec.time_limit_min_s) == (True, 60)
    assert (ask.tasks_per_socket, ask.tasks_per_core) == (2, 1)
    assert (ask.sockets_per_node, ask.cores_per_socket, ask.threads_per_core) == (2, 4, 1)
    assert (ask.cpus_per_node_min, ask.cpus_per_gpu, ask.disk_mib) == (8, 5, 1024)
    assert (ask.contiguous, ask.overcommit, ask.preferred) == (True, True, "amd")
    assert {("mail-type", b"END"), ("verbose", b""), ("ntasks", b"4")} <= set(text.options)


def test_script_of_wrap_is_no_option() -> None:
    """It is the job's script already; what is kept of the options may be shown."""
    assert submit("-n 1 --wrap=secret").text.options == (("ntasks", b"1"),)


def test_bad_dependency_is_refused_in_slurms_words() -> None:
    """A variable that should hold a job's number was empty."""
    error = refused("-d afterok:")
    assert error.lines == ("sbatch: error: Batch job submission failed: Job dependency problem",)
    assert error.status == 1


def test_command_line_beats_environment_beats_script() -> None:
    """A script says ten minutes, a site's profile twenty, and the command line two CPUs."""
    submission = submit("-c 3", "-t 10 -c 2 -J s", SBATCH_TIMELIMIT="20", SBATCH_JOB_NAME="e")
    assert submission.spec.time_limit_s == 1200
    assert (submission.spec.ask.cpus_per_task, submission.spec.name) == (3, "e")


def test_last_of_two_wins() -> None:
    """Someone adds an option to a long line and leaves the old one in it."""
    assert submit("--requeue --no-requeue").spec.requeue is False
    assert submit("--requeue", SBATCH_NO_REQUEUE="1").spec.requeue is True
    assert submit("-s --exclusive").spec.ask.sharing is Sharing.EXCLUSIVE


def test_memory_of_the_environment_gives_way() -> None:
    """A profile sets memory for a CPU, and the script sets it for the node."""
    ask = submit("", "--mem=300", SBATCH_MEM_PER_CPU="50").spec.ask
    assert (ask.memory_mib, ask.memory_per) == (300, Per.NODE)


def test_two_kinds_of_memory_exclude_each_other() -> None:
    """The script sets memory for a CPU, and the command line sets it for the node."""
    error = refused("--mem=300", "--mem-per-cpu=100")
    assert error.lines == (
        "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
    )


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("-N 2", (2, 2, 2)),
        ("-N 2-4", (2, 4, 2)),
        ("-n 8", (1, 0, 8)),
        ("-N 2 --ntasks-per-node=4", (2, 2, 8)),
        ("-w n1,n2", (2, 0, 2)),
        ("-w n[1-3] -n 8", (3, 0, 8)),
        ("-N 2 -n 1", (1, 1, 1)),
    ],
)
def test_nodes_and_tasks_follow_each_other(line: str, counts: tuple[int, int, int]) -> None:
    """Someone says how many nodes or tasks, and not the other."""
    ask = submit(line).spec.ask
    assert (ask.nodes_min, ask.nodes_max, ask.tasks) == counts


def test_fewer_tasks_than_nodes_is_said() -> None:
    """Someone asks for one task on two nodes."""
    assert submit("-N 2 -n 1").warnings == (
        "sbatch: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1",
    )


@pytest.mark.parametrize(
    ("line", "sentence", "status"),
    [
        ("-N1 -w n1,n2", "sbatch: error: invalid number of nodes (-N 2-1)", 1),
        (
            "--mem-per-gpu=1G",
            "sbatch: error: Requested mem_per_tres=gres:gpu:1024 but did not request any GPU.",
            1,
        ),
        (
            "--gres=gpu:mi300x:1 --gpus=2",
            "sbatch: error: Invalid GRES specification (with and without type identification)",
            1,
        ),
        (
            "-b now+1hour --deadline=now+1minute",
            "sbatch: error: Incompatible begin and deadline time specification",
            1,
        ),
        ("-b abc", "Invalid time specification (pos=0): abc", 255),
        ("-t abc", "sbatch: error: Invalid --time specification", 255),
        (
            "--bb=x",
            "sbatch: error: --bb is not honoured yet: there are no burst buffers; nothing was done",
            1,
        ),
    ],
)
def test_contradiction_is_refused(line: str, sentence: str, status: int) -> None:
    """Someone asks for what does not go together, or for what is not there yet."""
    error = refused(line)
    assert (error.lines[0], error.status) == (sentence, status)


@pytest.mark.parametrize(
    "option",
    [option for option in OPTIONS["sbatch"] if option.effect is Effect.ACCEPTED],
    ids=lambda option: option.long,
)
def test_accepted_option_is_kept_with_the_job(option: object) -> None:
    """Someone uses an option without effect so far: it is not lost."""
    row = next(row for row in OPTIONS["sbatch"] if row == option)
    samples = {
        "distribution": "block",
        "mail-type": "ALL",
        "open-mode": "append",
        "gres-flags": "enforce-binding",
        "propagate": "ALL",
        "gpu-bind": "closest",
        "mem-bind": "local",
        "no-kill": "off",
        "profile": "task",
    }
    value = "" if row.takes is Takes.NOTHING else samples.get(row.long, "1")
    kept = submit(f"--{row.long}" + (f"={value}" if value else "")).text.options
    assert kept == ((row.long, value.encode()),)


def test_name_that_is_no_utf8_is_readable() -> None:
    """A script of another decade names its job in Latin-1."""
    assert submit("-J fr\udcfch").spec.name == "fr\ufffdh"
