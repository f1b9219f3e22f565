"""A single controller whose clock stepped: nothing is decided until a person vouches for it."""

import asyncio
import subprocess
import sys
from pathlib import Path

from spur.controller.settings import SETTINGS_FILE
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import Controllers
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import Rejection
from spur.wire.cluster import Configured, Reconfigure

CLOCK_ACCEPT = "import sys; from spur_cli.main import main; sys.exit(main())"


def configure(controllers: Controllers) -> Configured | Rejection:
    async def ask() -> Configured | Rejection:
        async with controllers.client() as client:
            files = (ConfigFile(CONFIG_FILE, SMALL_CONFIG),)
            return await client.ask(Reconfigure(files), Configured)

    return asyncio.run(ask())


def accept(socket: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", CLOCK_ACCEPT, "clock", "accept", "--socket", str(socket)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_controller_started_seventy_years_late_waits_for_a_person(tmp_path: Path) -> None:
    """It is stopped, its machine's clock is set far ahead, and it starts again."""
    controllers = Controllers.create(tmp_path, 1, first_port=21520)
    member = controllers.members[0]
    controllers.start()
    try:
        assert isinstance(configure(controllers), Configured)
        controllers.stop()
        with (member.directory / SETTINGS_FILE).open("a") as file:
            file.write(f"clock_offset_ms = {70 * 365 * 86_400_000}\n")
        controllers.start()
        answer = configure(controllers)
        assert isinstance(answer, Rejection)
        assert answer.code == "clock-step"
        assert "spur clock accept" in answer.text
        done = accept(member.directory / "spurctld.sock")
        assert done.returncode == 0, done.stderr
        assert isinstance(configure(controllers), Configured)
    finally:
        controllers.stop()


def test_clock_accept_without_a_controller_says_what_to_name(tmp_path: Path) -> None:
    """Somebody types the command on a host that runs no controller."""
    done = accept(tmp_path / "none.sock")
    assert done.returncode == 1
    assert done.stderr.startswith("spur clock accept: ")
