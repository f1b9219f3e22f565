"""What tests of commands share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from spur_cli.slurm.signals import Signals


@pytest.fixture(name="signals")
def signals_of_test() -> Iterator[Signals]:
    """Catch signals, and let the test's own process have them back."""
    former = {number: signal.getsignal(number) for number in signal.valid_signals()}
    wakeup = signal.set_wakeup_fd(-1)
    signals = Signals()
    yield signals
    signal.set_wakeup_fd(wakeup)
    for number, handler in former.items():
        if handler is not None and number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, handler)
    signals.close()
