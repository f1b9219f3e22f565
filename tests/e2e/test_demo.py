"""The demonstration, run as a newcomer runs it (the set-up apart)."""

import subprocess
import sys
from pathlib import Path

from spur.testing import demo


def test_demo_shows_a_failover_and_a_changed_byte(tmp_path: Path) -> None:
    """Somebody starts it in a fresh clone and reads what it prints."""
    argv = [sys.executable, "-m", demo.__name__, str(tmp_path / "demo")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from the kill to the next accepted submission" in done.stdout
    assert "ledger segment 1 is damaged at byte" in done.stdout
