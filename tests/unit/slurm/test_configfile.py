"""slurm.conf, gres.conf and topology.conf as they are: values, verdicts, and errors with places."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.slurm.configfile import Checked, check_slurm_config, parse_slurm_config
from spur.slurm.parameters import Verdict
from spur.values.config import (
    Config,
    ConfigFile,
    ControllerHost,
    GrantedRole,
    GresPool,
    NodeBlock,
    NodeStart,
    OverSubscribe,
    PartitionBlock,
    RequeuePolicy,
    SlurmParameter,
    TopologyKind,
    TopologyUnit,
)
from spur.values.configfile import ConfigErrors

CLUSTER = Path(__file__).parents[2] / "data" / "slurm" / "cluster"
HEAD = "ClusterName=hall\nSlurmctldHost=ctl\nGresTypes=gpu,shard\n"


def check(text: str, **others: str) -> Checked:
    """Read a text as slurm.conf behind a right head, with files beside it."""
    files = [ConfigFile("slurm.conf", HEAD + text)]
    files += [ConfigFile(f"{name}.conf", other) for name, other in others.items()]
    return check_slurm_config(files)


def config(text: str, **others: str) -> Config:
    """Return what right files say."""
    checked = check(text, **others)
    assert checked.errors == ()
    assert checked.config is not None
    return checked.config


def node(text: str, **others: str) -> NodeBlock:
    """Return the one block that right files make."""
    (block,) = config(text, **others).nodes
    return block


def golden() -> Checked:
    """Read a real cluster's files."""
    names = ("slurm.conf", "gres.conf", "topology.conf")
    return check_slurm_config([ConfigFile(name, (CLUSTER / name).read_text()) for name in names])


# -- a real cluster ------------------------------------------------------------------------------


def test_a_real_clusters_files_load() -> None:
    """A site hands in what it has: nodes, GPUs, partitions, switches and settings."""
    read = golden().config
    assert golden().errors == ()
    assert read is not None
    assert read.settings.name == "oracle"
    assert read.settings.controllers == (ControllerHost("ctl", "127.0.0.1"),)
    assert (read.settings.first_job_id, read.settings.memory_per_cpu_mib) == (6001, 500)
    assert len(read.nodes) == 11
    assert len(read.partitions) == 15
    assert read.topology[-1] == TopologyUnit(TopologyKind.SWITCH, "core", "", ("spine0", "spine1"))
    five = read.nodes[4]
    assert (five.names, five.cpus, five.sockets, five.threads_per_core) == ("n5", 16, 2, 2)
    assert five.features == ("amd", "ib", "bigmem")
    g1 = read.nodes[6]
    assert (g1.gpu_kind, g1.gpus) == ("mi300x", 8)
    assert g1.gres[0].flags == ("amd_gpu_env",)
    small = read.partitions[5]
    assert (small.over_subscribe, small.jobs_per_resource_max) == (OverSubscribe.YES, 2)
    assert (small.default_time_s, small.max_time_s, small.nodes_max) == (300, 900, 2)


def test_a_real_clusters_parameters_have_a_verdict_each() -> None:
    """Nothing that a site wrote is passed over in silence."""
    found = golden().findings
    assert {finding.verdict for finding in found} == {Verdict.HONOURED, Verdict.NOT_YET}
    where = {(f.file, f.line, f.name): f.verdict for f in found}
    assert where["slurm.conf", 1, "ClusterName"] is Verdict.HONOURED
    assert where["slurm.conf", 32, "WaitTime"] is Verdict.NOT_YET
    assert where["gres.conf", 1, "File"] is Verdict.HONOURED
    assert where["topology.conf", 7, "Switches"] is Verdict.NOT_YET


def test_a_password_is_neither_kept_nor_shown() -> None:
    """The log is for ever."""
    checked = check("AccountingStoragePass=hush\nPrivateData=cloud\n")
    assert checked.config is not None
    assert checked.config.parameters == (SlurmParameter("PrivateData", "cloud"),)
    assert "hush" not in repr(checked)


# -- nodes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cpus", "sockets"),
    [
        ("Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 32, 2),
        ("CPUs=4", 4, 4),
        ("CPUs=16 CoresPerSocket=4 ThreadsPerCore=2", 16, 2),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 8, 2),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16, 4),
        ("Procs=3", 3, 3),
        ("", 1, 1),
    ],
)
def test_cpus_follow_from_sockets_cores_and_threads(text: str, cpus: int, sockets: int) -> None:
    """A site says as much as it wants to of a node's shape."""
    block = node(f"NodeName=n1 {text}\n")
    assert (block.cpus, block.sockets, block.memory_mib) == (cpus, sockets, 1)


def test_default_lines_are_inherited_by_the_lines_below() -> None:
    """Two DEFAULT lines add up; what a line says itself wins; lines above have nothing of it."""
    blocks = config(
        "NodeName=n0\n"
        "NodeName=DEFAULT CPUs=8 RealMemory=1000 Feature=a\n"
        "nodename=default realmemory=2000 Weight=7\n"
        "NodeName=n[1-2]\n"
        "NodeName=n3 CPUs=2 Features=b\n"
        "PartitionName=DEFAULT MaxTime=1:00:00 Nodes=ALL\n"
        "PartitionName=p\n"
        "PartitionName=q Nodes=n[1-3] MaxTime=UNLIMITED\n"
    )
    assert [(b.names, b.cpus, b.memory_mib, b.weight, b.features) for b in blocks.nodes] == [
        ("n0", 1, 1, 1, ()),
        ("n[1-2]", 8, 2000, 7, ("a",)),
        ("n3", 2, 2000, 7, ("b",)),
    ]
    assert [(p.nodes, p.max_time_s) for p in blocks.partitions] == [
        ("n[0-3]", 3600),
        ("n[1-3]", None),
    ]


def test_a_host_list_has_ranges_padding_and_several_brackets() -> None:
    """Racks of nodes, written as people write them."""
    read = config("NodeName=r[1-2]n[08-10],login CPUs=2\nPartitionName=p Nodes=ALL\n")
    assert read.partitions[0].nodes == "login,r1n[08-10],r2n[08-10]"


def test_many_nodes_may_be_served_by_one_host() -> None:
    """A cluster on one desk: each node names the host of its agent, and a port of its own."""
    block = node("NodeName=n[1-3] NodeHostname=desk NodeAddr=10.0.0.1 Port=[7001-7003]\n")
    assert (block.agent, block.address, block.port) == ("desk", "10.0.0.1", "7001,7002,7003")
    own = node("NodeName=n[1-3] NodeHostname=n[1-3] NodeAddr=10.0.0.[1-3] Port=7000\n")
    assert (own.agent, own.address, own.port) == ("", "10.0.0.1,10.0.0.2,10.0.0.3", "7000")


def test_nodes_that_are_not_alike_become_blocks_of_their_own() -> None:
    """One line; one of the nodes is served by another host, one is down, one has other files."""
    read = config(
        "NodeName=n[1-3] NodeHostname=a,b,b Gres=gpu:2\nDownNodes=n2 Reason=fan\n",
        gres="NodeName=n1 Name=gpu Type=x File=/dev/x[0-1]\nNodeName=n[2-3] Name=gpu Count=2\n",
    )
    assert [(b.names, b.agent, b.start, b.reason, b.gpu_kind) for b in read.nodes] == [
        ("n1", "a", NodeStart.UNKNOWN, "", "x"),
        ("n2", "b", NodeStart.DOWN, "fan", ""),
        ("n3", "b", NodeStart.UNKNOWN, "", ""),
    ]


def test_devices_have_kinds_files_and_an_order() -> None:
    """Two kinds of GPU and shares of them; without gres.conf the counts stand alone."""
    line = "NodeName=n1 Gres=gpu:a100:2,gpu:h100:1,shard:8\n"
    bare = node(line)
    assert (bare.gpu_kind, bare.gpus) == ("", 3)
    assert [(p.name, p.kind, p.count, p.files) for p in bare.gres] == [
        ("gpu", "a100", 2, ""),
        ("gpu", "h100", 1, ""),
        ("shard", "", 8, ""),
    ]
    told = node(
        line,
        gres="Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-7\n"
        "Name=gpu Type=h100 File=/dev/nvidia2 Flags=one_sharing\n",
    )
    assert told.gres[:2] == (
        GresPool("gpu", "a100", 2, "/dev/nvidia[0-1]", "0-7", ()),
        GresPool("gpu", "h100", 1, "/dev/nvidia2", "", ("one_sharing",)),
    )


def test_types_of_devices_may_stand_in_gres_conf_alone() -> None:
    """slurm.conf counts four GPUs; two kinds of file are there, one device too many."""
    block = node(
        "NodeName=n1 Gres=gpu:4\n",
        gres="Name=gpu Type=a File=/dev/a[0-2]\nName=gpu Type=b File=/dev/b[0-1]\n",
    )
    assert [(p.kind, p.count, p.files) for p in block.gres] == [
        ("a", 3, "/dev/a[0-2]"),
        ("b", 1, "/dev/b0"),
    ]


# -- partitions and the rest ---------------------------------------------------------------------


def test_a_partition_says_who_may_use_it_and_how() -> None:
    """Limits, names in small letters, the former words Shared and Priority."""
    block = config(
        "NodeName=n1\nPartitionName=p Nodes=n1 Default=YES Priority=5 Shared=FORCE:2 "
        "AllowAccounts=Chem,BIO DenyQos=Low AllocNodes=ALL DefMemPerCPU=500 MaxNodes=UNLIMITED "
        "State=drain PreemptMode=requeue TRESBillingWeights=CPU=1.0,Mem=0.25G\n"
    ).partitions[0]
    assert isinstance(block, PartitionBlock)
    assert (block.priority_tier, block.priority_job_factor, block.default) == (5, 5, True)
    assert (block.over_subscribe, block.jobs_per_resource_max) == (OverSubscribe.FORCE, 2)
    assert (block.allow_accounts, block.deny_qos) == (("chem", "bio"), ("low",))
    assert (block.alloc_nodes, block.nodes_max, block.memory_per_cpu_mib) == ("", None, 500)
    assert (str(block.state), block.preempt_mode) == ("DRAIN", "REQUEUE")
    assert block.others == (SlurmParameter("TRESBillingWeights", "CPU=1.0,Mem=0.25G"),)


def test_a_partition_may_name_sets_of_nodes() -> None:
    """All nodes with a feature, and a few by name."""
    read = config(
        "NodeSet=fast Feature=ib\nNodeSet=two Nodes=n[2-3]\n"
        "NodeName=n1 Feature=ib\nNodeName=n[2-4]\nPartitionName=p Nodes=fast,two\n"
    )
    assert read.partitions[0].nodes == "n[1-3]"


def test_each_controller_has_a_line() -> None:
    """Repeated SlurmctldHost lines, in their order; the former words still do."""
    read = config("SlurmctldHost=ctl2(10.0.0.2)\n")
    assert [host.name for host in read.settings.controllers] == ["ctl", "ctl2"]
    old = [ConfigFile("slurm.conf", "ClusterName=Hall\nControlMachine=c1\nControlAddr=10.0.0.1\n")]
    settings = parse_slurm_config(old).settings
    assert settings.name == "hall"
    assert settings.controllers == (ControllerHost("c1", "10.0.0.1"),)


def test_included_files_count_and_name_their_place() -> None:
    """The nodes stand in a file of their own, and one of them is wrong."""
    read = config("Include nodes.conf\n", nodes="NodeName=n1 CPUs=2\n")
    assert read.nodes[0].cpus == 2
    checked = check("Include nodes.conf\n", nodes="\nNodeName=n1 CPUs=many\n")
    assert checked.errors == (
        "nodes.conf:2: CPUs is 'many': it takes a whole number from 1 to 65535",
    )


def test_spur_toml_adds_what_slurm_has_no_word_for() -> None:
    """Roles and the policy of requeueing stand beside slurm.conf; what Slurm says does not."""
    slurm = ConfigFile("slurm.conf", HEAD)
    text = '[cluster]\nrequeue_policy = "confirmed"\n[[roles]]\nuid = 5\nrole = "operator"\n'
    read = parse_slurm_config([slurm, ConfigFile("spur.toml", text)])
    assert read.settings.requeue_policy is RequeuePolicy.CONFIRMED
    assert read.roles[0].role is GrantedRole.OPERATOR
    assert parse_slurm_config([slurm, ConfigFile("spur.toml", "")]).roles == ()
    with pytest.raises(ConfigErrors, match=r"spur.toml:2: cluster.name is not known"):
        parse_slurm_config([slurm, ConfigFile("spur.toml", '[cluster]\nname = "x"\n')])


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("KilWait=3", "KilWait is not known; did you mean KillWait?"),
        ("Colour=red", "Colour is not known"),
        ("KillWait=soon", "KillWait is 'soon': it takes a whole number from 0 to 65535"),
        ("SlurmctldHost=ctl", "SlurmctldHost 'ctl' is there twice"),
        ("DefMemPerCPU=1 DefMemPerNode=2", "it takes either DefMemPerCPU or DefMemPerNode"),
        ("NodeName=n[1-", "brackets do not match"),
        ("NodeName=ALL", "ALL is no name of nodes"),
        ("NodeName=DEFAULT NodeAddr=x", "can't be a default"),
        ("NodeName=n1 ClusterName=x", "ClusterName is not known"),
        ("NodeName=n1 CPUs=5 Sockets=2 CoresPerSocket=2", "5 CPUs don't fit"),
        ("NodeName=n1 Sockets=2 SocketsPerBoard=2", "either Sockets or SocketsPerBoard"),
        ("NodeName=n1 CPUs=2 CoreSpecCount=2", "the node has 2 cores"),
        ("NodeName=n1 RealMemory=5 MemSpecLimit=5", "MemSpecLimit is not below RealMemory"),
        ("NodeName=n1 Gres=tape:1", "Gres has 'tape', which GresTypes does not list"),
        ("NodeName=n1 Gres=gpu:65", "a node has at most 64 GPUs, and these are 65"),
        ("NodeName=n[1-3] NodeAddr=a,b", "NodeAddr has 2 items for 3 nodes"),
        ("NodeName=n1 State=SLEEPY", "State is 'SLEEPY': it takes UNKNOWN, CLOUD"),
        ("PartitionName=p Nodes=n9", "partition 'p' has nodes that are not configured: n9"),
        ("PartitionName=p Nodes=n[2", "Nodes: brackets do not match"),
        ("PartitionName=-p", "PartitionName is '-p': it takes"),
        ("PartitionName=p MaxTime=1 DefaultTime=2", "a default time limit above its longest"),
        ("PartitionName=p MinNodes=3 MaxNodes=2", "a smallest number of nodes above its largest"),
        ("PartitionName=p Alternate=q", "has an alternate that is none: 'q'"),
        ("PartitionName=p AllowQos=a DenyQos=b", "it takes either AllowQos or DenyQos"),
        ("PartitionName=p MaxTime=never", "MaxTime is 'never': it takes minutes"),
        ("DownNodes=n7", "nodes are not configured: n7"),
        ("NodeSet=s", "a node set takes Feature or Nodes"),
    ],
)
def test_an_error_is_told_with_its_file_and_line(text: str, sentence: str) -> None:
    """The fourth line of the file is wrong, and the rest is right."""
    checked = check(text + "\n")
    assert checked.config is None
    (error,) = checked.errors
    assert error.startswith("slurm.conf:4: ")
    assert sentence in error


@pytest.mark.parametrize(
    ("gres", "topology", "sentence"),
    [
        ("Name=gpu Count=1", "", "gres.conf:1: node n1 has 2 of gpu in slurm.conf and 1 here"),
        ("Name=gpu Count=1 File=/dev/x[0-1]", "", "gres.conf:1: Count is 1, and File names 2"),
        ("NodeName=n1 Type=a", "", "gres.conf:1: the line has no Name"),
        ("\nName=gpu Size=3", "", "gres.conf:2: Size is not known"),
        ("", "SwitchName=s Nodes=n9", "topology.conf:1: nodes are not configured: n9"),
        ("", "SwitchName=s Switches=t", "topology.conf:1: there is no switch 't'"),
        (
            "",
            "SwitchName=s Nodes=n1\nSwitchName=s Nodes=n1",
            "topology.conf:2: switch 's' is there",
        ),
        ("", "SwitchName=s Switches=s", "topology.conf:1: switch 's' lies under itself"),
        ("", "SwitchName=s Switches=x[", "topology.conf:1: Switches: brackets do not match"),
    ],
)
def test_an_error_beside_slurm_conf_names_that_file(
    gres: str, topology: str, sentence: str
) -> None:
    """slurm.conf is right; what lies beside it is not."""
    checked = check("NodeName=n1 Gres=gpu:2\n", gres=gres, topology=topology)
    assert checked.errors
    assert checked.errors[0].startswith(sentence)


def test_a_switch_lies_under_one_other() -> None:
    """Two spines claim the same leaf."""
    lines = "SwitchName=l Nodes=n1\nSwitchName=a Switches=l\nSwitchName=b Switches=l\n"
    (error,) = check("NodeName=n1\n", topology=lines).errors
    assert error == "topology.conf:3: switch 'l' lies under 'a' already"


def test_blocks_and_rings_are_kept() -> None:
    """Other shapes of a network, and the sizes of blocks."""
    read = config("NodeName=n[1-2]\n", topology="BlockName=b Nodes=n[1-2]\nBlockSizes=2,4\n")
    assert read.topology == (TopologyUnit(TopologyKind.BLOCK, "b", "n[1-2]", ()),)
    assert read.parameters == (SlurmParameter("BlockSizes", "2,4"),)


def test_all_errors_are_told_in_the_order_of_the_files() -> None:
    """Nobody likes to be told of one error after the other."""
    checked = check(
        "NodeName=n1 CPUs=x\nNodeName=n1\nWhat=1\nPartitionName=p Nodes=n1 Default=maybe\n",
        gres="Nme=gpu\n",
    )
    assert [error.split(": ")[0] for error in checked.errors] == [
        "slurm.conf:4",
        "slurm.conf:5",
        "slurm.conf:6",
        "slurm.conf:7",
        "gres.conf:1",
    ]


def test_a_file_without_a_name_or_a_controller_is_refused() -> None:
    """An empty file, or another program's."""
    assert check_slurm_config([ConfigFile("slurm.conf", "")]).errors == (
        "slurm.conf:1: SlurmctldHost is missing",
        "slurm.conf:1: ClusterName is missing",
    )


def test_what_is_said_twice_counts_as_last_said() -> None:
    """Slurm takes the latest, and so do we."""
    assert config("KillWait=3\nKillWait=4\n").settings.kill_wait_s == 4
