"""The demonstration, run as a newcomer runs it (the set-up apart)."""

import re
import subprocess
import sys
import tempfile

import pytest

from spur.testing import demo

SEEN = (
    "job 1 on ",
    "JobState=FAILED Reason=NonZeroExitCode",
    "(Dependency)",
    "(JobArrayTaskLimit)",
    "ROCR_VISIBLE_DEVICES=0,1",
    "nothing to see",
    "task 0: Exited with exit code 7",
    "job 16 is PENDING: Resources",
    "DUE TO TIME LIMIT",
    "saved what I have",
    "the run is recorded as COMPLETED",
    "from the kill to the next accepted submission",
    "60  COMPLETED",
    "attachments_missing  0",
    "ledger segment 1 is damaged at byte",
)
"""What a stranger should have seen, in this order."""


@pytest.mark.timeout(300)
def test_demo_shows_jobs_and_then_a_log_that_is_not_lost() -> None:
    """Somebody starts it in a fresh clone and reads what it prints; it ends by itself.

    It waits for a time limit of a minute, the shortest that there is.
    """
    with tempfile.TemporaryDirectory(prefix="spur-") as folder:  # short: it holds sockets
        argv = [sys.executable, "-m", demo.__name__, f"{folder}/demo"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    memory_mib = re.search(r"processes of the cluster have (\d+) MiB of memory", done.stdout)
    assert memory_mib is not None
    assert int(memory_mib[1]) < 1_000
    spot = 0
    for words in SEEN:
        assert words in done.stdout[spot:], f"{words}\n{done.stdout}"
        spot = done.stdout.index(words, spot)
