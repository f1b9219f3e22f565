"""Partitions that operators make, change and take away while the cluster runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.slurm.partitionupdates import KEYS, BadPartition, Key, read_partition
from spur.testing.builders import actor
from spur.testing.hall import SPEC, Hall
from spur.values.config import PartitionState, SlurmParameter
from spur.values.errors import Rejection
from spur.values.ids import PartitionName
from spur.wire.declare import Done, Request
from spur.wire.jobs import CancelJob
from spur.wire.partitions import CreatePartition, DeletePartition, UpdatePartition

GPU = PartitionName("gpu")
FRESH = PartitionName("fresh")

UNKNOWN = "Update of this parameter is not supported"


@pytest.fixture
def hall() -> Hall:
    return Hall()


def changes(text: str) -> tuple[SlurmParameter, ...]:
    """Return what is set, as scontrol reads it."""
    return read_partition([(key, value) for key, _, value in map(_cut, text.split())])[1]


def _cut(word: str) -> tuple[str, str, str]:
    return word.partition("=")


def done(hall: Hall, request: Request) -> None:
    assert hall.cluster.ask(request) == Done()


def code(hall: Hall, request: Request, uid: int = 0) -> str:
    index = hall.state.index
    outcome = hall.cluster.ask(request, actor(uid))
    assert isinstance(outcome, Rejection), outcome
    assert hall.state.index == index
    return outcome.code


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("maxtime=1:00:00", "max_time_s", 3600),
        ("MaxTime=infinite", "max_time_s", None),
        ("rootonly=yes", "root_only", True),
        ("priorityt=3", "priority_tier", 3),
        ("oversubscribe=yes:2", "jobs_per_resource_max", 2),
        ("Shared=FORCE", "over_subscribe", "FORCE"),
        ("allowaccounts=chem,Bio", "allow_accounts", ("chem", "bio")),
        ("allowgroups=ALL", "allow_groups", ()),
        ("denyqos=low", "deny_qos", ("low",)),
        ("gracetime=30", "grace_time_s", 30),
        ("defmempercpu=100", "memory_per_cpu_mib", 100),
        ("maxmempernode=unlimited", "memory_per_node_mib_max", None),
        ("jobdefaults=DefCpuPerGPU=3,DefMemPerGPU=7", "memory_per_gpu_mib", 7),
        ("nodes=n[1-2]", "nodes", "n[1-2]"),
        ("nodes=ALL", "nodes", "n[1-4]"),
        ("nodes=", "nodes", ""),
        ("minnodes=2", "nodes_min", 2),
        ("lln=yes", "least_loaded", True),
        ("alternate=debug", "alternate", "debug"),
        ("preemptmode=off", "preempt_mode", "OFF"),
    ],
)
def test_what_may_be_set_is_set(hall: Hall, text: str, field: str, value: object) -> None:
    """An operator changes one thing of a partition; everything else stays."""
    before = hall.state.partitions[GPU].block
    done(hall, UpdatePartition(GPU, None, changes(text)))
    after = hall.state.partitions[GPU].block
    assert getattr(after, field) == value
    changed = {
        name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)
    }
    assert changed <= {field, "over_subscribe", "jobs_per_resource_max", "cpus_per_gpu"}


def test_memory_is_for_a_node_or_for_a_cpu(hall: Hall) -> None:
    """The second of the two takes the first away."""
    done(hall, UpdatePartition(GPU, None, changes("defmempercpu=100")))
    done(hall, UpdatePartition(GPU, None, changes("defmempernode=900")))
    block = hall.state.partitions[GPU].block
    assert (block.memory_per_cpu_mib, block.memory_per_node_mib) == (None, 900)


def test_what_has_no_field_is_kept_as_typed(hall: Hall) -> None:
    """Weights of a bill are read by later releases; empty takes them away."""
    done(hall, UpdatePartition(GPU, None, changes("tresbillingweights=CPU=1 overtimelimit=5")))
    others = hall.state.partitions[GPU].block.others
    assert others == (
        SlurmParameter("OverTimeLimit", "5"),
        SlurmParameter("TRESBillingWeights", "CPU=1"),
    )
    done(hall, UpdatePartition(GPU, None, changes("tresbillingweights=")))
    assert hall.state.partitions[GPU].block.others == others[:1]


def test_there_is_one_default(hall: Hall) -> None:
    """Another partition becomes the default: the former is it no more."""
    done(hall, UpdatePartition(PartitionName("debug"), None, changes("default=yes")))
    defaults = [name for name, row in hall.state.partitions.rows.items() if row.block.default]
    assert defaults == ["debug"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nodes=n9", "unknown-node"),
        ("nodes=n[1-", "invalid-value"),
        ("qos=nosuch", "invalid-qos"),
        ("alternate=nosuch", "unknown-partition"),
        ("defaulttime=2:00:00 maxtime=1:00:00", "invalid-value"),
        ("minnodes=3 maxnodes=2", "invalid-value"),
    ],
)
def test_what_contradicts_is_refused(hall: Hall, text: str, why: str) -> None:
    """An operator asks for what cannot be; nothing changes."""
    assert code(hall, UpdatePartition(GPU, None, changes(text))) == why
    assert code(hall, CreatePartition(FRESH, changes(text))) == why


def test_a_partition_is_made_and_taken_away(hall: Hall) -> None:
    """For a course of an afternoon: jobs run there, and it goes when they are gone."""
    done(hall, CreatePartition(FRESH, changes("nodes=n1 maxtime=10 state=drain")))
    row = hall.state.partitions[FRESH]
    assert (row.block.nodes_min, row.block.max_time_s, row.state) == (1, 600, PartitionState.DRAIN)
    assert code(hall, CreatePartition(FRESH, ())) == "already-exists"
    done(hall, UpdatePartition(FRESH, PartitionState.UP))
    job_id = hall.submit(replace(SPEC, partitions=(FRESH,)))
    assert code(hall, DeletePartition(FRESH)) == "partition-in-use"
    hall.cluster.ask(CancelJob(job_id, None))
    done(hall, DeletePartition(FRESH))
    assert FRESH not in hall.state.partitions
    assert code(hall, DeletePartition(FRESH)) == "unknown-partition"


@pytest.mark.parametrize("name", ["", "DEFAULT", "two words"])
def test_a_partition_has_a_name(hall: Hall, name: str) -> None:
    """Nobody makes one that no command could name."""
    assert code(hall, CreatePartition(PartitionName(name), ())) == "unknown-partition"


@pytest.mark.parametrize(
    "request_",
    [UpdatePartition(GPU, PartitionState.DOWN), CreatePartition(FRESH, ()), DeletePartition(GPU)],
    ids=lambda request: type(request).__name__,
)
def test_users_change_no_partition(hall: Hall, request_: Request) -> None:
    """It takes an operator."""
    assert code(hall, request_, uid=1001) == "not-permitted"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("maxtime=xx", ["Invalid input maxtime=xx"]),
        (
            "hidden=maybe",
            ["Invalid input: hidden=maybe", "Acceptable Hidden values are YES and NO"],
        ),
        (
            "state=no",
            ["Invalid input: state=no", "Acceptable State values are UP, DOWN, DRAIN and INACTIVE"],
        ),
        ("nosuch=1", [f"{UNKNOWN}: nosuch=1\n", "Request aborted"]),
        ("nodes+=g1", [f"{UNKNOWN}: nodes+=g1\n", "Request aborted"]),
        ("gracetime=x", ["Invalid GraceTime value: x"]),
        ("cpubind=x", ["Invalid input cpubind=x"]),
    ],
)
def test_a_bad_word_is_told_in_slurms_words(text: str, lines: list[str]) -> None:
    """Scripts match these."""
    with pytest.raises(BadPartition) as raised:
        changes(text)
    assert list(raised.value.lines) == lines


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_key_may_be_cut_short(key: Key) -> None:
    """Of as many letters as Slurm wants, in any size: it is that key, or one before it."""
    for word in (key.name, key.name.upper(), key.name[: key.least]):
        found = next(row for row in KEYS if row.fits(word))
        assert found.name.lower().startswith(word.lower())
    assert next(row for row in KEYS if row.fits(key.name.lower())) is key
