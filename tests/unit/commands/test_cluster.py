"""Reconfiguring: one kind of file or the other, as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.projections.cluster import config_of
from spur.projections.digest import state_digest
from spur.slurm.configfile import parse_slurm_config
from spur.testing.builders import SMALL_CONFIG, Cluster, actor
from spur.values.config import ConfigChange, ConfigFile
from spur.values.errors import Rejection
from spur.wire.cluster import ConfigInfo, Configured, Reconfigure, ShowConfig

CLUSTER = Path(__file__).parents[2] / "data" / "slurm" / "cluster"
HEAD = "ClusterName=hall\nSlurmctldHost=ctl\n"


def golden() -> tuple[ConfigFile, ...]:
    """Return a real cluster's files."""
    names = ("slurm.conf", "gres.conf", "topology.conf")
    return tuple(ConfigFile(name, (CLUSTER / name).read_text()) for name in names)


def slurm(text: str) -> Reconfigure:
    """Return a request with one file of Slurm's."""
    return Reconfigure((ConfigFile("slurm.conf", HEAD + text),))


def shown(cluster: Cluster) -> ConfigInfo:
    """Return what any user is shown."""
    answer = cluster.ask(ShowConfig(), actor(1000))
    assert isinstance(answer, ConfigInfo)
    return answer


def test_slurms_files_are_taken_as_they_are() -> None:
    """A site hands in its three files; all that they say is in the state."""
    cluster = Cluster()
    answer = cluster.ask(Reconfigure(golden()))
    assert isinstance(answer, Configured)
    assert config_of(cluster.state) == parse_slurm_config(golden())
    again = cluster.ask(Reconfigure(golden()))
    assert again == Configured(0, answer.index)


def test_a_change_has_an_author_and_a_difference() -> None:
    """Somebody gives a node more memory and the cluster another parameter."""
    cluster = Cluster()
    assert shown(cluster) == ConfigInfo(0, 0, 0, (), None, (), ())
    cluster.ask(slurm("NodeName=n1 RealMemory=1000\nMailProg=/bin/true\n"))
    answer = cluster.ask(slurm("NodeName=n1 RealMemory=2000\nMailDomain=hall\nKillWait=3\n"))
    assert answer == Configured(4, cluster.state.index)
    now = shown(cluster)
    assert (now.index, now.uid) == (cluster.state.index, 0)
    assert now.changes == (
        ConfigChange("cluster.kill_wait_s", "30", "3"),
        ConfigChange("nodes n1", "memory_mib=1000", "memory_mib=2000"),
        ConfigChange("parameters MailDomain", "", "name=MailDomain value=hall"),
        ConfigChange("parameters MailProg", "name=MailProg value=/bin/true", ""),
    )


def test_spur_toml_and_slurm_conf_may_say_the_same() -> None:
    """A site moves from one to the other; only what differs is a change."""
    cluster = Cluster()
    cluster.ask(Reconfigure((ConfigFile("spur.toml", '[cluster]\nname = "hall"\n'),)))
    answer = cluster.ask(slurm(""))
    assert isinstance(answer, Configured)
    assert [change.what for change in shown(cluster).changes] == ["cluster.controllers"]


def test_a_bad_file_changes_nothing_and_says_where() -> None:
    """Two slips in files that lie beside each other."""
    cluster = Cluster()
    cluster.configure()
    before = state_digest(cluster.state)
    one, two, three = golden()
    bad = ConfigFile(one.name, one.text.replace("CPUs=8 RealMemory", "CPUs=8x RealMemory"))
    worse = ConfigFile(two.name, two.text.replace("Name=gpu", "Nam=gpu"))
    refused = cluster.ask(Reconfigure((bad, worse, three)))
    assert isinstance(refused, Rejection)
    assert refused.code == "bad-configuration"
    lines = refused.text.splitlines()
    assert lines[0].startswith("slurm.conf:84: CPUs is '8x': it takes a whole number")
    assert lines[1] == "gres.conf:1: Nam is not known; did you mean Name?"
    assert lines[-1] == "nothing was changed"
    assert state_digest(cluster.state) == before


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ((), "the files handed in are none"),
        (("gres.conf",), "it takes spur.toml alone, or slurm.conf first"),
        (("spur.toml", "slurm.conf"), "it takes spur.toml alone"),
        (("slurm.conf", "slurm.conf"), "a file is handed in twice"),
        (("a\nb",), "a file has no name that can be shown"),
        (("",), "a file has no name"),
        (tuple(f"f{number}" for number in range(201)), "it takes at most 200"),
    ],
)
def test_files_that_are_no_configuration_are_refused(names: tuple[str, ...], why: str) -> None:
    """The wrong files, or the right ones in the wrong order."""
    files = tuple(ConfigFile(name, SMALL_CONFIG) for name in names)
    refused = Cluster().ask(Reconfigure(files))
    assert isinstance(refused, Rejection)
    assert why in refused.text
    assert refused.text.endswith("nothing was changed")


def test_many_errors_are_counted_rather_than_listed() -> None:
    """Another program's file, of hundreds of lines."""
    refused = Cluster().ask(slurm("Foreign=1\n" * 30))
    assert isinstance(refused, Rejection)
    assert refused.text.splitlines()[-2:] == ["and 10 more", "nothing was changed"]
