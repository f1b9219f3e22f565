"""The parent of a front: starts it, passes signals on, and starts it again when it dies.

It holds no state, opens no file of the cluster and imports next to nothing, so that nothing in it
can fail. When it ends itself, however that comes about, the kernel kills the front.
Source: DESIGN 7; LOG-CONTRACT 5.3 for what is not started again.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import time
from collections.abc import Sequence
from types import FrameType

__all__ = ["EXIT_DISK", "EXIT_OURS", "EXIT_REFUSED", "supervise"]

EXIT_OURS = 70
"""EX_SOFTWARE of sysexits(3): it contradicted itself."""

EXIT_DISK = 74
"""EX_IOERR: the disk failed, and what it holds is in doubt."""

EXIT_REFUSED = 78
"""EX_CONFIG: it refuses to start."""

_FOR_GOOD = (0, EXIT_OURS, EXIT_DISK, EXIT_REFUSED)
"""After these it is not started again: it was told to stop, or a person must look first."""

FIRST_PAUSE_S = 0.1
"""Before a front that died is started again; doubled while it does not last."""

LONGEST_PAUSE_S = 5.0

LASTING_S = 10.0
"""A front that lived so long is started again after the first pause."""

LOG = logging.getLogger("spurctld")


class _Parent:
    """What the handler of signals needs to know."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.stopping = False

    def pass_on(self, number: int, _: FrameType | None) -> None:
        """Stop, and let the front stop."""
        self.stopping = True
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)


def supervise(command: Sequence[str]) -> int:
    """Run a front until it ends for good; return its exit status.

    SIGTERM and SIGINT go through to it. One that is killed, or ends with another status than those
    that mean a person must look, is started again.
    """
    parent = _Parent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, parent.pass_on)
    pause_s = FIRST_PAUSE_S
    while True:
        began_s = time.monotonic()
        parent.child = subprocess.Popen(command)
        if parent.stopping:
            parent.child.terminate()
        status = parent.child.wait()
        if status in _FOR_GOOD or parent.stopping:
            return max(status, 0)
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        LOG.warning("the front %s; it is started again", how)
        if time.monotonic() - began_s >= LASTING_S:
            pause_s = FIRST_PAUSE_S
        _pause(parent, pause_s)
        if parent.stopping:
            return 0
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _pause(parent: _Parent, seconds: float) -> None:
    """Sleep; a signal that says stop cuts it short."""
    until_s = time.monotonic() + seconds
    while not parent.stopping and (left_s := until_s - time.monotonic()) > 0:
        time.sleep(min(left_s, 0.1))
