"""Reading spur.toml: a right file gives values, a wrong one every error with its line."""

from __future__ import annotations

import pytest

from spur.testing.builders import SMALL_CONFIG
from spur.values.config import (
    Config,
    ConfigChange,
    ConfigFile,
    ControllerHost,
    GrantedRole,
    GresPool,
    NodeStart,
    OverSubscribe,
    PartitionState,
    RequeuePolicy,
    RoleGrant,
)
from spur.values.configdiff import compare_configs
from spur.values.configfile import PARSER_VERSION, ConfigErrors, parse_config

HEAD = '[cluster]\nname = "hall"\n'


def parse(text: str) -> Config:
    """Read a text as spur.toml."""
    return parse_config(ConfigFile("spur.toml", text))


def errors(text: str) -> tuple[str, ...]:
    """Return all that is wrong with a text."""
    with pytest.raises(ConfigErrors) as caught:
        parse(text)
    return caught.value.sentences


EVERYTHING = """
[cluster]
name = "hall"
min_job_age_s = 60
slurmd_timeout_s = 30
kill_wait_s = 5
requeue_policy = "confirmed"
array_size_max = 50001
job_count_max = 500
controllers = ["c1", "c2"]

[[roles]]
uid = 1000
host = "login1"
role = "operator"

[[nodes]]
names = "n2,n1"
cpus = 64
memory_mib = 512000
gpus = "gfx942:8"
features = ["ib", "a"]
agent = "desk"
sockets = 2
cores_per_socket = 16
threads_per_core = 2
weight = 3
start = "DRAIN"
gres = ["shard:16"]

[[partitions]]
name = "gpu"
nodes = "n[1-2]"
default = true
default_time_s = 60
max_time_s = 600
state = "DRAIN"
priority_tier = 2
over_subscribe = "YES"
allow_accounts = ["chem"]
"""


def test_a_file_that_says_everything_is_read() -> None:
    """Every key of every table, in the form that it is kept in."""
    config = parse(EVERYTHING)
    assert config.parser_version == PARSER_VERSION
    settings = config.settings
    assert (settings.name, settings.min_job_age_s, settings.slurmd_timeout_s) == ("hall", 60, 30)
    assert (settings.kill_wait_s, settings.requeue_policy) == (5, RequeuePolicy.CONFIRMED)
    assert (settings.array_size_max, settings.job_count_max) == (50_001, 500)
    assert settings.controllers == (ControllerHost("c1", "c1"), ControllerHost("c2", "c2"))
    assert config.roles == (RoleGrant(1000, "login1", GrantedRole.OPERATOR),)
    (node,) = config.nodes
    assert (node.names, node.cpus, node.memory_mib) == ("n[1-2]", 64, 512_000)
    assert (node.sockets, node.cores_per_socket, node.threads_per_core) == (2, 16, 2)
    assert (node.features, node.agent, node.weight) == (("a", "ib"), "desk", 3)
    assert (node.gpu_kind, node.gpus, node.start) == ("gfx942", 8, NodeStart.DRAIN)
    assert node.gres == (
        GresPool("gpu", "gfx942", 8, "", "", ()),
        GresPool("shard", "", 16, "", "", ()),
    )
    (partition,) = config.partitions
    assert (partition.name, partition.nodes, partition.default) == ("gpu", "n[1-2]", True)
    assert (partition.default_time_s, partition.max_time_s) == (60, 600)
    assert (partition.state, partition.priority_tier) == (PartitionState.DRAIN, 2)
    assert (partition.over_subscribe, partition.allow_accounts) == (OverSubscribe.YES, ("chem",))


def test_a_file_that_says_little_gets_slurms_defaults() -> None:
    """Source: slurm.conf(5) MinJobAge, SlurmdTimeout, KillWait, MaxArraySize."""
    config = parse(HEAD + '[[nodes]]\nnames = "n1"\n')
    settings = config.settings
    assert (settings.min_job_age_s, settings.slurmd_timeout_s) == (300, 300)
    assert (settings.kill_wait_s, settings.array_size_max) == (30, 1001)
    assert settings.requeue_policy is RequeuePolicy.SLURM
    (node,) = config.nodes
    assert (node.cpus, node.sockets, node.memory_mib, node.weight) == (1, 1, 1, 1)
    assert (node.gpus, node.gres, node.start) == (0, (), NodeStart.UNKNOWN)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("min_job_age_s = true", "cluster.min_job_age_s is True: it takes a whole number from 0"),
        ("min_job_age_s = 1.5", "cluster.min_job_age_s is 1.5: it takes a whole number"),
        ("slurmd_timeout_s = 0", "cluster.slurmd_timeout_s is 0: it takes a whole number from 1"),
        ('requeue_policy = "never"', "it takes slurm or confirmed"),
        ("min_job_ago_s = 3", "min_job_ago_s is not known; did you mean 'min_job_age_s'?"),
        ("colour = 3", "cluster.colour is not known"),
    ],
)
def test_a_bad_setting_is_named_with_its_line(line: str, sentence: str) -> None:
    """The third line of the file is wrong."""
    (error,) = errors(HEAD + line + "\n")
    assert error.startswith("spur.toml:3: ")
    assert sentence in error


@pytest.mark.parametrize(
    ("rows", "line", "sentence"),
    [
        ('[[nodes]]\nnames = ""', 4, 'it takes at least one name, such as "n[1-4]"'),
        ("[[nodes]]\nnames = 3", 4, "it takes a host list"),
        ("[[nodes]]\ncpus = 3", 3, "nodes.names is missing"),
        ('[[nodes]]\nnames = "n1"\ngpus = "gfx942:65"', 5, "kind and number up to 64"),
        ('[[nodes]]\nnames = "n1"\ngpus = 8', 5, "kind and number up to 64"),
        ('[[nodes]]\nnames = "n1"\nfeatures = "ib"', 5, 'it takes a list such as ["infiniband"]'),
        ('[[nodes]]\nnames = "n1"\nfeatures = [3]', 5, "letters, digits"),
        ('[[nodes]]\nnames = "n1"\nagent = "a b"', 5, "letters, digits"),
        ('[[nodes]]\nnames = "n1"\n[[nodes]]\nnames = "n[1-3]"', 6, "n1 are configured twice"),
        ('[[nodes]]\nnames = "n1"\ngres = ["x"]', 5, 'a list such as ["gpu:a100:4", "shard:16"]'),
        ('[[nodes]]\nnames = "n1"\ncpus = 5\nsockets = 2', 5, "5 CPUs don't fit"),
        ('[[nodes]]\nnames = "n1"\nboards = 3\nsockets = 2', 3, "3 boards have 2 sockets"),
        ('[[nodes]]\nnames = "n1"\ngres = ["gpu:a:40", "gpu:b:40"]', 5, "these are 80"),
        ('[[nodes]]\nnames = "n1"\nreason = "a\\u0007"', 5, "a text of one line"),
        ('[nodes]\nnames = "n1"', 3, "nodes must be written as [[nodes]]"),
        ('[[partitions]]\nname = "p"\nnodes = "n9"', 5, "not configured: n9"),
        ("[[roles]]\nuid = -1\nrole = 'operator'", 4, "a whole number from 0 to 4294967294"),
        ("[[roles]]\nuid = 5\nrole = 'king'", 5, "it takes operator or administrator"),
        ("[[nodez]]\nx = 1", 3, "nodez is not known; did you mean 'nodes'?"),
    ],
)
def test_a_bad_row_is_named_with_its_line(rows: str, line: int, sentence: str) -> None:
    """One row of one table is wrong; the rest of the file is right."""
    (error,) = errors(HEAD + rows + "\n")
    assert error.startswith(f"spur.toml:{line}: ")
    assert sentence in error


def test_rows_are_judged_together() -> None:
    """Two defaults, a name twice, times that contradict, a role twice: all are named."""
    text = (
        HEAD
        + """
[[nodes]]
names = "n1"
[[partitions]]
name = "a"
nodes = "n1"
default = true
[[partitions]]
name = "a"
nodes = "n1"
default = true
default_time_s = 9
max_time_s = 5
[[roles]]
uid = 5
role = "operator"
[[roles]]
uid = 5
role = "administrator"
"""
    )
    found = errors(text)
    assert [sentence.split(": ", 1)[1] for sentence in found] == [
        "partition 'a' is configured twice",
        "partition 'a' is the second default; one partition may be it",
        "partition 'a' has a default time limit above its longest",
        "uid 5 has a second role on host ''",
    ]
    assert [int(sentence.split(":")[1]) for sentence in found] == [11, 13, 14, 20]


def test_all_errors_are_told_at_once() -> None:
    """Nobody likes to be told of one error after the other."""
    text = SMALL_CONFIG.replace("cpus = 64", "cpus = 0").replace("default = true", "default = 1")
    assert len(errors(text)) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "spur.toml:1: the table [cluster] is missing"),
        ("cluster = 4", "spur.toml:1: cluster must be written as [cluster]"),
        ("[cluster]\nname", "spur.toml:2: expected '=' after a key"),
        ('[cluster]\nname = "hall', "spur.toml:2: unterminated string"),
        ('[cluster]\nname = "hall"\nname = "x"', "spur.toml:3: cannot overwrite a value"),
        ("a = " + "[" * 5000, "spur.toml:1: it is nested too deeply"),
    ],
)
def test_a_text_that_is_no_such_file_is_refused(text: str, sentence: str) -> None:
    """Half a file, another program's file, or garbage."""
    assert errors(text)[0].startswith(sentence)


def test_differences_are_told_as_people_read_them() -> None:
    """A reconfiguration's event says what was changed, with before and after."""
    before = parse(SMALL_CONFIG)
    text = SMALL_CONFIG.replace("max_time_s = 600", "max_time_s = 900")
    text = text.replace('name = "hall"', 'name = "hall"\nmin_job_age_s = 60')
    assert compare_configs(before, before) == ()
    changes = compare_configs(before, parse(text))
    assert changes[0] == ConfigChange("cluster.min_job_age_s", "300", "60")
    assert changes[1].what == "partitions debug"
    assert "max_time_s=600" in changes[1].before
    assert "max_time_s=900" in changes[1].after
    assert len(changes) == 2


def test_everything_is_a_difference_from_nothing() -> None:
    """The first configuration of a cluster, and rows that vanish."""
    config = parse(SMALL_CONFIG)
    first = compare_configs(None, config)
    assert {change.before for change in first} == {""}
    assert [change.what for change in first][-3:] == [
        "nodes n[1-4]",
        "partitions debug",
        "partitions gpu",
    ]
    gone = compare_configs(config, parse(HEAD))
    assert {change.after for change in gone} == {""}
