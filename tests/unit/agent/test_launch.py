"""What a job's process is given: CPUs, files, limits, and the variables of a login."""

from __future__ import annotations

import os
import resource

import pytest

from spur.agent.cpus import bound_cpus, machine_order
from spur.agent.ending import (
    EarlySignal,
    cancelled_sentence,
    early_signal,
    exit_of,
    spoken_by,
)
from spur.agent.identity import Unlaunchable, User, find_user
from spur.agent.launch import batch_files, batch_setup, text_of, user_environment
from spur.agent.manifest import Site
from spur.testing.attempts import launch_order
from spur.values.tres import cpu_set

SITE = Site(relay="/relay", slurm_conf="", host_name="", working_cluster="")


def me() -> User:
    return find_user(os.geteuid(), os.getegid())


def test_cpus_are_counted_as_jobs_count_them() -> None:
    """A job holds CPU 0 as the cluster numbers them: here that is the first thread of core 0."""
    mine = sorted(os.sched_getaffinity(0))
    assert sorted(machine_order(mine)) == mine
    assert bound_cpus(cpu_set(1), "task/affinity") == {machine_order(mine)[0]}


def test_nothing_is_bound_without_a_plugin_or_without_the_cpus() -> None:
    """TaskPlugin=task/none; a node of four CPUs is declared on a machine of two."""
    assert bound_cpus(cpu_set(1), "task/none") == frozenset()
    assert bound_cpus(cpu_set(1 << 5000), "task/affinity,task/cgroup") == frozenset()
    assert bound_cpus(b"", "task/affinity") == frozenset()


def test_output_is_named_after_job_or_task() -> None:
    """Nobody named an output; an array's tasks must not share one."""
    one = launch_order()
    assert batch_files(one, text_of(one), me()).stdout == b"slurm-5.out"
    task = launch_order(array_id=4, task=3)
    assert batch_files(task, text_of(task), me()).stdout == b"slurm-4_3.out"


def test_files_are_appended_to_where_the_cluster_says_so() -> None:
    """JobFileAppend=1, and a job that says otherwise."""
    order = launch_order(file_append=True)
    assert batch_files(order, text_of(order), me()).appends
    other = launch_order(file_append=True, options=(("open-mode", b"truncate"),))
    assert not batch_files(other, text_of(other), me()).appends


def test_commands_inside_a_job_find_its_cluster() -> None:
    """A script submits another: through the agent of its node, by which it is known as well."""
    order = launch_order(variables={b"SPUR_SOCKET": b"/of/the/submitter"})
    setup = batch_setup(order, SITE, text_of(order), me(), b"/s", "")
    assert setup.environment[b"SPUR_SOCKET"] == b"/relay"
    site = Site(relay="/relay", slurm_conf="/etc/c", host_name="", working_cluster="c:h:1:2:3")
    setup = batch_setup(launch_order(), site, text_of(order), me(), b"/s", "")
    assert setup.environment[b"SLURM_CONF"] == b"/etc/c"
    assert setup.environment[b"SPUR_SOCKET"] == b"/relay"
    assert setup.environment[b"SLURM_WORKING_CLUSTER"] == b"c:h:1:2:3"


@pytest.mark.parametrize("text", [b"unlimited", b"", b"1e9"])
def test_limits_that_are_no_numbers_are_left_out(text: bytes) -> None:
    """Somebody sets the variable by hand."""
    order = launch_order(variables={b"SLURM_RLIMIT_NOFILE": text, b"SLURM_UMASK": b"rwx"})
    setup = batch_setup(order, SITE, text_of(order), me(), b"/s", "")
    assert setup.limits == ()
    assert setup.umask == 0o022


def test_a_limit_without_bound_is_told_from_a_number() -> None:
    """Slurm writes no limit as the highest number of 64 bits."""
    order = launch_order(
        variables={b"SLURM_RLIMIT_CORE": b"18446744073709551615", b"SLURM_RLIMIT_NOFILE": b"99"}
    )
    setup = batch_setup(order, SITE, text_of(order), me(), b"/s", "")
    assert sorted(soft for _, soft, _ in setup.limits) == [-1, 99]


def test_a_login_says_what_it_sets() -> None:
    """A job was submitted with --export=NONE: it finds what its user finds at a login."""
    found = user_environment(me())
    assert found.get(b"HOME") == os.fsencode(me().home)
    assert b"PATH" in found
    order = launch_order(variables={b"SLURM_GET_USER_ENV": b"1", b"PATH": b"/mine"})
    setup = batch_setup(order, SITE, text_of(order), me(), b"/s", "")
    assert setup.environment[b"HOME"] == os.fsencode(me().home)
    assert setup.environment[b"PATH"] == b"/mine"


def test_an_unknown_user_is_no_user() -> None:
    """A uid of another host's."""
    with pytest.raises(Unlaunchable, match="4294967000"):
        find_user(4294967000, 1)


def test_sentences_are_slurms() -> None:
    """Somebody greps job output for them."""
    said = cancelled_sentence("JOB 5", "n1", "TIMEOUT")
    assert said.startswith("*** JOB 5 ON n1 CANCELLED AT ")
    assert said.endswith(" DUE TO TIME LIMIT ***")
    assert cancelled_sentence("JOB 5", "n1", "COMPLETED") == ""
    assert spoken_by(False, "n1") == "slurmstepd: error: "
    assert spoken_by(True, "n1") == "slurmstepd-n1: error: "
    assert exit_of(3 << 8) == (3, 0, False)
    assert exit_of(11 | 0x80) == (0, 11, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"USR1", EarlySignal(10, False, 540.0)),
        (b"B:SIGUSR1@50", EarlySignal(10, True, 550.0)),
        (b"rb:12@10", EarlySignal(12, True, 590.0)),
        (b"TERM@9999", EarlySignal(15, False, 0.0)),
        (b"NONSENSE", None),
        (b"", None),
    ],
)
def test_a_signal_before_the_limit(text: bytes, expected: EarlySignal | None) -> None:
    """A job of ten minutes wants time to write its state down: or at once."""
    now_ns = 1_790_000_000_000_000_000
    limit_ns = now_ns + 600_000_000_000
    assert early_signal({"signal": text}, limit_ns, now_ns) == expected
    assert early_signal({"signal": text}, 0, now_ns) is None


def test_a_site_may_keep_limits_from_its_jobs() -> None:
    """The site lets none through but those that users ask for by name."""
    variables = {b"SLURM_RLIMIT_NOFILE": b"99", b"SLURM_RLIMIT_STACK": b"U4096"}
    order = launch_order(variables=variables, propagated="")
    setup = batch_setup(order, SITE, text_of(order), me(), b"/s", "")
    assert setup.limits == ((resource.RLIMIT_STACK, 4096, -1),)
    assert not any(name.startswith(b"SLURM_RLIMIT") for name in setup.environment)
