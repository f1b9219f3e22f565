"""Our own engine as a cluster: bare log nodes (`spur.testing.lognode`), one process each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from spur.client.tls import TlsFiles, client_context, credentials_in
from spur.controller.birth import TLS_DIRECTORY, NewController, give_birth
from spur.values.errors import OperatorFault
from tests.contract.log.cluster import SizeRefused
from tests.contract.log.processes import ProcessCluster, free_ports

__all__ = ["SpurCluster"]

_ROOT = Path(__file__).parents[3]
_PATIENCE_S = 10.0
"""Elections take under a second; the rest is for a busy machine."""


class SpurCluster(ProcessCluster):
    """Implements `LogCluster`; with TLS between nodes and at the edge unless told otherwise."""

    def __init__(self, directory: Path, *, tls: bool = True) -> None:
        self._with_tls = tls
        super().__init__(
            directory,
            self._argv,
            patience_s=_PATIENCE_S,
            environment={"PYTHONPATH": str(_ROOT)},
        )

    def _argv(self, node: int, log: Sequence[int], edge: Sequence[int], home: Path) -> list[str]:
        argv = [sys.executable, "-m", "spur.testing.lognode", "--dir", str(home)]
        argv += ["--edge", str(edge[node - 1])]
        return argv if self._with_tls else [*argv, "--insecure"]

    def prepare(self, count: int) -> None:
        """Make the directories of a new cluster. Raises: SizeRefused."""
        rpc = free_ports(count)
        members = [
            NewController(
                directory=self.home(node),
                raft_address=f"127.0.0.1:{self.log_port(node)}",
                rpc_address=f"127.0.0.1:{rpc[node - 1]}",
            )
            for node in self.nodes
        ]
        try:
            give_birth(members)
        except OperatorFault as fault:
            raise SizeRefused(str(fault)) from None
        files = self.client_files()
        self.tls = None if files is None else client_context(files)

    def client_files(self) -> TlsFiles | None:
        """Return what a client needs for TLS at the edge; None without TLS."""
        return credentials_in(self.home(1) / TLS_DIRECTORY) if self._with_tls else None
