"""The engines that the rules run over, by name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.contract.log.cluster import CrashableCluster, LogCluster
from tests.contract.log.memory import MemoryCluster
from tests.contract.log.processes import NodeCommand, ProcessCluster
from tests.contract.log.situations import PeerSituations, Situations
from tests.contract.log.spur import SpurCluster
from tests.contract.log.spur_situations import SpurSituations

__all__ = ["ENGINES", "Engine", "chosen_engines", "peer_version"]

_ROOT = Path(__file__).parents[3]
_PEERS_PYTHON = _ROOT / ".venv-peers/bin/python"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How to make a cluster of one engine, and which rules can apply to it."""

    name: str
    nodes: int
    """Size of the cluster where a rule names none."""
    make: Callable[[Path], LogCluster]
    make_crashable: Callable[[Path], CrashableCluster] | None = None
    """The same where nodes are processes with a disk, so that rules on crashes apply."""
    situations: Callable[[Path], Situations] | None = None
    """Scripts that drive its unmodified classes message by message, where there are any."""


def peer_version(package: str) -> str:
    """Return the version of a peer that the lock file names. Raises: LookupError."""
    lock = (_ROOT / "tests/benchmarks/peers.lock").read_text()
    found = re.search(rf"^{package}==(\S+)", lock, re.MULTILINE)
    if found is None:
        raise LookupError(f"tests/benchmarks/peers.lock names no {package}")
    return found[1]


def _processes(directory: Path, command: NodeCommand, patience_s: float) -> ProcessCluster:
    return ProcessCluster(
        directory, command, patience_s=patience_s, environment={"PYTHONPATH": str(_ROOT)}
    )


def _peer(name: str, patience_s: float) -> Engine:
    def command(node: int, log: Sequence[int], edge: Sequence[int], home: Path) -> list[str]:
        module = f"tests.contract.log.peers.{name}_node"
        argv = [str(_PEERS_PYTHON), "-m", module, "--id", str(node), "--dir", str(home)]
        return [*argv, "--ports", ",".join(map(str, log)), "--edge", str(edge[node - 1])]

    def make(directory: Path) -> ProcessCluster:
        return _processes(directory, command, patience_s)

    def situations(directory: Path) -> Situations:
        module = f"tests.contract.log.peers.{name}_situations"
        return PeerSituations([str(_PEERS_PYTHON), "-m", module], _ROOT, directory)

    return Engine(name=name, nodes=3, make=make, make_crashable=make, situations=situations)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(name="memory", nodes=1, make=lambda _: MemoryCluster()),
        Engine(
            name="spur",
            nodes=3,
            make=SpurCluster,
            make_crashable=SpurCluster,
            situations=lambda _: SpurSituations(),
        ),
        # raftos waits 1.5 to 4.5 s before an election, pysyncobj up to 5 s before it connects anew.
        _peer("raftos", patience_s=15.0),
        _peer("pysyncobj", patience_s=15.0),
    )
}

_OURS = ("memory", "spur")


def chosen_engines() -> list[Engine]:
    """Return the engines named in SPUR_CONTRACT_ENGINES (commas between), else our own."""
    names = os.environ.get("SPUR_CONTRACT_ENGINES")
    return [ENGINES[name] for name in (names.split(",") if names else _OURS)]
