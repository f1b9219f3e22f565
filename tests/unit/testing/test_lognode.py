"""The bare log node, run as a process."""

import subprocess
import sys
from pathlib import Path

from spur.testing import lognode


def test_lognode_refuses_a_directory_without_a_controller(tmp_path: Path) -> None:
    """Somebody starts it on the wrong directory."""
    argv = [sys.executable, "-m", lognode.__name__, "--dir", str(tmp_path), "--edge", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "holds no controller" in done.stderr
