"""The systemd units: what they start exists, and they start again only what may be."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.agent import main as agent
from spur.controller import parent
from spur.controller.settings import SETTINGS_FILE as CONTROLLER_FILE
from spur.server.agentsettings import SETTINGS_FILE as AGENT_FILE

UNITS = sorted((Path(__file__).resolve().parents[2] / "ops" / "systemd").glob("*.service"))

SETTINGS_FILES = {"spurctld": CONTROLLER_FILE, "spurd": AGENT_FILE}


def lines(unit: Path) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of each line of a unit."""
    section = ""
    for line in unit.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = heading[1]
            continue
        key, equals, value = line.partition("=")
        assert equals, f"{unit.name}: {line!r}"
        assert key.isalnum(), f"{unit.name}: {line!r}"
        yield section, key, value


def service(unit: Path) -> dict[str, str]:
    """Return a unit's [Service] section."""
    found = [(key, value) for section, key, value in lines(unit) if section == "Service"]
    assert len(dict(found)) == len(found), f"{unit.name} says something twice"
    return dict(found)


def test_units_are_there() -> None:
    """Someone renames a unit that the install page copies."""
    assert [unit.name for unit in UNITS] == [
        "spurctld.service",
        "spurd-login.service",
        "spurd.service",
    ]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_agrees_with_its_daemon(unit: Path) -> None:
    """A daemon's command line, directory or exit statuses change, and the unit does not."""
    found = service(unit)
    binary, verb, flag, directory = found["ExecStart"].split()
    program = Path(binary).name
    assert (verb, flag) == ("run", "--dir")
    condition = [value for _, key, value in lines(unit) if key == "ConditionPathExists"]
    assert condition == [f"{directory}/{SETTINGS_FILES[program]}"]
    assert directory.startswith("/var/lib/spur/")
    assert found["StateDirectory"] == "spur"
    assert found["Type"] == "notify"
    assert found["Restart"] == "on-failure"
    for_good = {parent.EXIT_OURS, parent.EXIT_DISK, parent.EXIT_REFUSED}
    assert {agent.EXIT_OURS, agent.EXIT_REFUSED} <= for_good
    assert {int(word) for word in found["RestartPreventExitStatus"].split()} == for_good


def test_jobs_outlive_their_agent_and_are_not_bound() -> None:
    """Someone hardens the agent of compute hosts, and jobs can't do what they could."""
    found = service(next(unit for unit in UNITS if unit.name == "spurd.service"))
    assert found["KillMode"] == "process"
    assert found["RuntimeDirectoryPreserve"] == "yes"
    binding = ("Protect", "Private", "Restrict", "SystemCall", "NoNew", "Capability", "Lock", "OOM")
    bound = [key for key in found if key.startswith(binding)]
    assert bound == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    """Systemd itself reads the unit, where it is installed; what it starts stands in for ours."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("takes systemd-analyze(1)")
    copy = tmp_path / unit.name
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
    # What this machine may lack: the account, and the units that it waits for.
    text = re.sub(r"^(User|Group|Wants|After|Conflicts)=.*\n", "", text, flags=re.MULTILINE)
    copy.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
