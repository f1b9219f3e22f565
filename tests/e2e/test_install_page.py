"""The install page as its readers use it: each block is typed on the hosts that it names.

Systemd does not run in a network namespace: of its blocks nothing is typed, and the page's own
blocks for running by hand are. What they start is what the units start.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from spur.testing.live.machines import Machines, can_make_machines

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "operations" / "install.md"
UNITS = ROOT / "ops" / "systemd"

_BLOCK = re.compile(r"^```sh ((?:h\d+ ?)+)(systemd|by-hand)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One command block of the page."""

    heading: str
    hosts: tuple[str, ...]
    kind: str
    """systemd, by-hand, or empty for both ways."""
    text: str


def blocks() -> list[Block]:
    """Return every command block of the page."""
    text = PAGE.read_text()
    found_headings = re.finditer(r"^## (.*)$", text, re.MULTILINE)
    headings = [(found.start(), found[1]) for found in found_headings]
    return [
        Block(
            heading=[name for start, name in headings if start < found.start()][-1],
            hosts=tuple(found[1].split()),
            kind=found[2] or "",
            text=found[3],
        )
        for found in _BLOCK.finditer(text)
    ]


def test_no_block_is_overlooked() -> None:
    """Someone writes a block whose first line says not where to type it, or in another shell."""
    text = PAGE.read_text()
    assert len(blocks()) == text.count("```") / 2 > 20
    assert {host for block in blocks() for host in block.hosts} == {"h1", "h2", "h3"}


def test_what_systemd_starts_is_what_is_started_by_hand() -> None:
    """Someone changes a unit, or a block that runs a daemon by hand, and not the other."""
    started = set()
    for unit in UNITS.glob("*.service"):
        found = re.search(r"^ExecStart=/usr/local/bin/(.*)$", unit.read_text(), re.MULTILINE)
        assert found is not None
        started.add(found[1])
    by_hand = "".join(block.text for block in blocks() if block.kind == "by-hand")
    assert set(re.findall(r"(spurc?t?l?d run --dir \S+)", by_hand)) == started
    in_words = re.findall(r"^systemctl .*$", PAGE.read_text(), re.MULTILINE)
    named = {word for line in in_words for word in line.split() if word.startswith("spur")}
    assert named == {unit.stem for unit in UNITS.glob("*.service")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from this checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [found] = directory.glob("*.whl")
    return found


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Yield three machines with nothing of ours on them."""
    if not can_make_machines():
        pytest.skip("takes root, namespaces and the usual tools of a host")
    with Machines(tmp_path, 3) as made:
        yield made


@pytest.mark.timeout(600)
def test_page_is_followed_until_a_controller_is_lost(machines: Machines, wheel: Path) -> None:
    """Somebody types the page on three hosts, from its first block to its last."""
    for name in machines.names:
        machines.type(name, f"cp {wheel} /root/")
    shown: dict[str, str] = {}
    for block in blocks():
        if block.kind == "systemd":
            continue
        for name in block.hosts:
            said = machines.type(name, block.text)
            shown[block.heading] = shown.get(block.heading, "") + said
    units = machines.type("h1", "ls /opt/spur/share/spur/systemd").split()
    assert units == sorted(unit.name for unit in UNITS.glob("*.service"))
    assert shown["Two more controllers"].count(" voter ") == 3
    check = shown["Check"]
    assert re.search(r"^main\* +up +infinite +2 +idle h\[2-3\]$", check, re.MULTILINE)
    assert len(re.findall(r"^ *\d+ +h[123] +(?:admin|compute)\b", check, re.MULTILINE)) == 3
    assert len(re.findall(r"^ *\d+ +used +compute +h[23]\b", check, re.MULTILINE)) == 2
    first = shown["The first job"]
    assert {"h2", "h3"} <= set(first.split())
    assert re.search(r"^2 +COMPLETED +0:0 +h[23]", first, re.MULTILINE)
    outputs = [machines.files(name) / "home/ada/first-2.out" for name in machines.names]
    [output] = [path.read_text() for path in outputs if path.exists()]
    assert re.fullmatch(r"h[23]\nada\n", output)
    lost = shown["Lose a controller"]
    assert "Submitted batch job 3" in lost
    assert "Submitted batch job 4" in lost
    assert re.search(r"^attachments_missing +0$", shown["Backup"], re.MULTILINE)
    assert "h3" not in shown["Take a host out"].splitlines()[-1]
