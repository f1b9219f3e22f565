"""What scontrol update may change of a job."""

from __future__ import annotations

import pytest

from spur.slurm.jobupdates import JobUpdate, parse_job_update
from spur.slurm.timespec import Moment
from spur.slurm.wording import SlurmError
from spur.values.ids import PartitionName
from spur.values.tres import Per
from spur.wire.declare import Attachment
from spur.wire.jobs import AskChanges, JobChanges


class Start:
    """A clock at the beginning of time."""

    def now(self) -> int:
        return 1_000

    def moment(self, seconds: int) -> Moment:
        return Moment(1970, 1, 1, 0, 16, 40)

    def seconds(self, moment: Moment) -> int:
        raise OverflowError(f"no calendar has {moment}")


def parse(*pairs: tuple[str, str]) -> JobUpdate:
    return parse_job_update(list(pairs), Start())


@pytest.mark.parametrize(
    ("key", "value", "changes"),
    [
        ("TimeLimit", "20", JobChanges(time_limit_s=1200)),
        ("timelimit", "unlimited", JobChanges(time_limit_s=0)),
        ("TimeMin", "5", JobChanges(time_limit_min_s=300)),
        ("Partition", "a,b", JobChanges(partitions=(PartitionName("a"), PartitionName("b")))),
        ("Priority", "100", JobChanges(priority=100)),
        ("Nice", "", JobChanges(nice=100)),
        ("nice", "-50", JobChanges(nice=-50)),
        ("JobName", "new", JobChanges(name="new")),
        ("Name", "new", JobChanges(name="new")),
        ("QOS", "high", JobChanges(qos="high")),
        ("Account", "astro", JobChanges(account="astro")),
        ("Requeue", "0", JobChanges(requeue=False)),
        ("StartTime", "now+60", JobChanges(begin_ns=1_060_000_000_000)),
        ("EligibleTime", "now", JobChanges(begin_ns=1_000_000_000_000)),
    ],
)
def test_change_is_read(key: str, value: str, changes: JobChanges) -> None:
    """Someone changes one thing of their job."""
    assert parse((key, value)) == JobUpdate(changes, None)


def test_limit_is_moved_by_a_difference() -> None:
    """Someone gives their job five minutes more, or takes them."""
    assert parse(("timelimit", "+5"), ("nice", "1")) == JobUpdate(JobChanges(nice=1), 300)
    assert parse(("timelimit", "-5")) == JobUpdate(JobChanges(), -300)
    assert parse(("timelimit", "-1")) == JobUpdate(JobChanges(), -60)


def test_texts_travel_apart_from_what_steers() -> None:
    """A comment and an output path are no part of what the log holds."""
    asked = parse(("Comment", "a b"), ("StdOut", "/tmp/x"), ("nice", "1"))
    texts = (Attachment("comment", b"a b"), Attachment("stdout", b"/tmp/x"))
    assert asked == JobUpdate(JobChanges(nice=1), None, texts)


@pytest.mark.parametrize(
    ("key", "value", "ask"),
    [
        ("NumNodes", "2-4", AskChanges(nodes_min=2, nodes_max=4)),
        ("MinCPUsNode", "2", AskChanges(cpus_per_node_min=2)),
        ("MinTmpDiskNode", "100", AskChanges(disk_mib=100)),
        ("Features", "intel,ib", AskChanges(features="intel&ib")),
        ("ExcNodeList", "n3", AskChanges(nodes_excluded="n3")),
        ("NodeList", "n[1-2]", AskChanges(nodes_required="n[1-2]")),
        ("Licenses", "matlab:1", AskChanges(licenses="matlab:1")),
        ("NumTasks", "4", AskChanges(tasks=4)),
        ("Prefer", "ib", AskChanges(preferred="ib")),
        (
            "MinMemoryCPU",
            "300",
            AskChanges(memory_mib=300, memory_per=Per.CPU, memory_is_default=False),
        ),
    ],
)
def test_a_changed_ask_is_read(key: str, value: str, ask: AskChanges) -> None:
    """Someone's job waits for too much, and asks for less."""
    assert parse((key, value)) == JobUpdate(JobChanges(ask=ask), None)


def test_a_dependency_that_cannot_be_read_is_said_of_each_job() -> None:
    """Slurm's scontrol leaves it to the controller, and so names the job."""
    assert parse(("dependency", "xx")).unreadable == "invalid-dependency"


@pytest.mark.parametrize(
    ("key", "value", "lines"),
    [
        ("TimeLimit", "abc", ("scontrol: error: Invalid TimeLimit value",)),
        ("timelimit", "+abc", ("scontrol: error: Invalid TimeLimit value",)),
        (
            "nice",
            "99999999999",
            ("scontrol: error: Invalid --nice value, out of range (+/- 2147483645)",),
        ),
        ("priority", "high", ("scontrol: error: Invalid Priority value: high",)),
        ("requeue", "maybe", ("scontrol: error: Invalid Requeue value: maybe",)),
        (
            "starttime",
            "abc",
            (
                "Invalid time specification (pos=0): abc",
                "No changes specified",
            ),
        ),
        (
            "nosuchkey",
            "1",
            ("Update of this parameter is not supported: nosuchkey=1", "Request aborted"),
        ),
        ("priority", "-1", ("scontrol: error: Invalid Priority value: -1",)),
        (
            "Comment+",
            "x",
            ("scontrol: error: Option Comment+=x does not accept [+|-]= syntax",),
        ),
        ("mincpusnode", "abc", ("scontrol: error: Invalid MinCPUsNode value: abc",)),
        ("minmemorynode", "1G", ("scontrol: error: Invalid MinMemoryNode value: 1G",)),
        (
            "numnodes",
            "abc",
            ('scontrol: error: Invalid numeric value "abc" for requested node count.',),
        ),
    ],
)
def test_bad_change_is_refused_in_slurms_words(
    key: str, value: str, lines: tuple[str, ...]
) -> None:
    """Someone mistypes a change, or asks for one that is not there."""
    with pytest.raises(SlurmError) as refused:
        parse((key, value))
    assert (refused.value.lines, refused.value.status) == (lines, 1)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("gres", "gpu:a:b:c", "invalid-gres"),
        ("burstbuffer", "x", "unsupported"),
        ("threadspec", "1", "not-permitted"),
        ("shared", "1", "not-permitted"),
    ],
)
def test_what_the_controller_refuses_is_said_of_each_job(key: str, value: str, code: str) -> None:
    """Keys that Slurm knows and never changes here, and resources that are none."""
    assert parse((key, value)).unreadable == code


def test_options_of_the_submission_are_written_anew() -> None:
    """Mail goes elsewhere from now on."""
    found = parse(("MailType", "END,fail"), ("mailuser", "a@b.c"), ("switches", "1"))
    assert dict(found.options)["mail-user"] == b"a@b.c"
    assert set(dict(found.options)) == {"mail-type", "mail-user", "switches"}
    assert not found.is_empty


def test_what_changes_nothing_is_taken_where_slurm_takes_it() -> None:
    """Scripts go on; only a user's id stands for no change at all."""
    assert not parse(("resetaccruetime", "")).is_empty
    assert not parse(("delayboot", "5")).is_empty
    assert parse(("userid", "u2")).is_empty


def test_cores_and_threads_of_nodes_are_asked_anew() -> None:
    """As --cores-per-socket and --threads-per-core ask for them."""
    ask = parse(("reqcores", "1"), ("ReqThreads", "2"), ("contiguous", "yes")).changes.ask
    assert ask is not None
    assert (ask.cores_per_socket, ask.threads_per_core, ask.contiguous) == (1, 2, True)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("mailtype", "nosuch", "scontrol: error: Invalid MailType: nosuch"),
        ("ReqCores", "x", "scontrol: error: Invalid ReqCores value: x"),
        ("contiguous", "x", "scontrol: error: Invalid contiguous value: x"),
    ],
)
def test_more_bad_values_are_refused(key: str, value: str, sentence: str) -> None:
    """Nothing is asked then."""
    with pytest.raises(SlurmError) as caught:
        parse((key, value))
    assert caught.value.lines[0] == sentence


def test_some_keys_are_for_operators() -> None:
    """A site's factor, and what administrators note."""
    assert parse(("sitefactor", "5")).takes_operator
    assert not parse(("delayboot", "5")).takes_operator
