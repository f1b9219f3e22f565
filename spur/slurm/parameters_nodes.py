"""Parameters of the lines about nodes: NodeName, DownNodes, NodeSet, and those of gres.conf.

Source: slurm.conf(5), NODE, DOWN NODE and NODESET CONFIGURATION; gres.conf(5).
"""

from __future__ import annotations

from spur.slurm.grammar import (
    DEVICES,
    FEATURES,
    GRES,
    HOSTS,
    NAME,
    NODE_START,
    PORTS,
    TEXT,
    WORDS,
    one_of,
    whole,
)
from spur.slurm.parameters import Parameter, Verdict

__all__ = ["DOWN_PARAMETERS", "GRES_PARAMETERS", "NODE_PARAMETERS", "NODE_SET_PARAMETERS"]

HONOURED = Verdict.HONOURED

NODE_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("NodeHostname", HOSTS, "Host on which a node's agent runs.", "hosts", HONOURED),
    Parameter("NodeAddr", TEXT, "Addresses of the nodes.", "addresses"),
    Parameter("BcastAddr", TEXT, "Addresses for sbcast."),
    Parameter("Boards", whole(1, 65_535), "Boards of a node.", "boards", HONOURED),
    Parameter(
        "CoreSpecCount", whole(0, 65_535), "Cores kept for the system.", "core_spec_count", HONOURED
    ),
    Parameter(
        "CoresPerSocket", whole(1, 65_535), "Cores of each socket.", "cores_per_socket", HONOURED
    ),
    Parameter("CPUs", whole(1, 65_535), "CPUs of a node.", "cpus", HONOURED),
    Parameter("CpuBind", TEXT, "How tasks are bound that don't say."),
    Parameter("CpuSpecList", TEXT, "Cores kept for the system, by number."),
    Parameter("Feature", FEATURES, "Former name of Features.", "features", HONOURED),
    Parameter("Features", FEATURES, "What jobs may ask for by name.", "features", HONOURED),
    Parameter("Gres", GRES, "Generic resources of each node.", "gres", HONOURED),
    Parameter(
        "MemSpecLimit",
        whole(0, 1 << 40),
        "Memory kept for the system, in MiB.",
        "memory_spec_mib",
        HONOURED,
    ),
    Parameter("Parameters", TEXT, "Settings of these nodes."),
    Parameter("Port", PORTS, "Port of the agent; Spur's call the controllers.", "port"),
    Parameter("Procs", whole(1, 65_535), "Former name of CPUs.", "cpus", HONOURED),
    Parameter("RealMemory", whole(1, 1 << 40), "Memory of a node, in MiB.", "memory_mib", HONOURED),
    Parameter("Reason", TEXT, "Why a node does not begin in use.", "reason", HONOURED),
    Parameter("RestrictedCoresPerGPU", TEXT, "Cores kept for jobs that use GPUs."),
    Parameter("Sockets", whole(1, 65_535), "Sockets of a node.", "sockets", HONOURED),
    Parameter(
        "SocketsPerBoard", whole(1, 65_535), "Sockets of each board.", "sockets_per_board", HONOURED
    ),
    Parameter(
        "State",
        NODE_START,
        "What a node begins as.",
        "start",
        HONOURED,
        ("UNKNOWN", "DOWN", "DRAIN"),
    ),
    Parameter("SuspendTime", TEXT, "Seconds of idleness after which a node is powered down."),
    Parameter("TRESWeights", TEXT, "Weights of a node's resources."),
    Parameter(
        "ThreadsPerCore",
        whole(1, 65_535),
        "Hardware threads of each core.",
        "threads_per_core",
        HONOURED,
    ),
    Parameter(
        "TmpDisk", whole(0, 1 << 40), "Temporary disk of a node, in MiB.", "disk_mib", HONOURED
    ),
    Parameter("Topology", TEXT, "Where a node stands in the network."),
    Parameter(
        "Weight",
        whole(0, (1 << 32) - 3),
        "Nodes of a lower weight are taken first.",
        "weight",
        HONOURED,
    ),
)
"""Behind NodeName."""

DOWN_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("Reason", TEXT, "Why they are down.", "reason", HONOURED),
    Parameter(
        "State",
        one_of("DOWN", "DRAIN", "FAIL", "FAILING"),
        "What they begin as.",
        "start",
        HONOURED,
        ("DOWN", "DRAIN"),
    ),
)
"""Behind DownNodes."""

NODE_SET_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("Feature", FEATURES, "Every node with this feature is in it.", "feature", HONOURED),
    Parameter("Nodes", HOSTS, "Nodes that are in it.", "nodes", HONOURED),
)
"""Behind NodeSet."""

GRES_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("AutoDetect", TEXT, "How devices are found; agents report theirs."),
    Parameter("Cores", TEXT, "Cores near to the devices.", "cores"),
    Parameter("Count", whole(0, 1 << 40), "Devices, where no files are named.", "count", HONOURED),
    Parameter("CPUs", TEXT, "Former name of Cores.", "cores"),
    Parameter("File", DEVICES, "Device files; each is a device.", "files", HONOURED),
    Parameter("Flags", WORDS, "What is special about the devices.", "flags"),
    Parameter("Ignore", TEXT, "Former: devices that are not counted."),
    Parameter("Links", TEXT, "How the devices are joined."),
    Parameter("MultipleFiles", DEVICES, "Device files that are one device together."),
    Parameter("Name", NAME, "Generic resource that they are.", "name", HONOURED),
    Parameter(
        "NodeName", HOSTS, "Nodes that have them; all nodes when it is left out.", "nodes", HONOURED
    ),
    Parameter("Type", NAME, "Kind that they are.", "kind", HONOURED),
)
"""Lines of gres.conf."""
