"""The golden ledger: a committed history must replay to its recorded digest, wherever it is read.

`ops/bless` makes it anew from `spur.testing.golden`. In era 0 that is allowed when events or tables
changed on purpose; from era 1 on a released ledger is never made anew (docs/log-contract.md).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spur
from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.consensus.ledger import Ledger
from spur.events.codec import decode_envelope
from spur.events.declare import EVENTS
from spur.events.envelope import EntryKind
from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.projections.state import State
from spur.testing.builders import replay
from spur.testing.golden import golden_story, read_ledger, write_ledger

DIRECTORY = Path(__file__).with_name("ledger")
EXPECTED = DIRECTORY / "expected.json"

SELDOM = {"cluster.version"}
"""Events that no request of this release comes to."""


def described(state: State) -> dict[str, object]:
    """Return what a replay is compared by."""
    return {
        "index": state.index,
        "term": state.term,
        "chain": state.chain.hex(),
        "digest": state_digest(state).hex(),
        "jobs": len(state.jobs),
        "incarnation": state.cluster[1].incarnation,
    }


@pytest.fixture(scope="module", autouse=True)
def _blessed() -> None:
    """Make the ledger anew when asked to."""
    if os.environ.get("SPUR_BLESS"):
        shutil.rmtree(DIRECTORY, ignore_errors=True)
        DIRECTORY.mkdir()
        write_ledger(DIRECTORY, golden_story())
        text = json.dumps(described(replay(read_ledger(DIRECTORY))), indent=2)
        EXPECTED.write_text(text + "\n", encoding="ascii")


def test_the_ledger_replays_to_its_digest() -> None:
    """A release reads what one before it wrote, and comes to the same state."""
    state = replay(read_ledger(DIRECTORY))
    assert described(state) == json.loads(EXPECTED.read_text(encoding="ascii"))
    check_invariants(state)


REPLAY = """
import sys
from pathlib import Path
from spur.projections.digest import state_digest
from spur.testing.builders import replay
from spur.testing.golden import read_ledger
print(state_digest(replay(read_ledger(Path(sys.argv[1])))).hex())
"""

DECIDE = """
import sys
from pathlib import Path
from spur.testing.golden import golden_story, write_ledger
write_ledger(Path(sys.argv[1]), golden_story(checked=False))
"""

PLACES = [
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Kolkata", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8"},
    {"PYTHONHASHSEED": "random", "TZ": "Pacific/Apia", "LANG": "de_DE.UTF-8"},
]


def run_in(place: dict[str, str], code: str, path: Path) -> str:
    """Run code on a file in a process of its own that stands elsewhere; return what it prints."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**environment, "PYTHONPATH": str(Path(spur.__file__).parents[1]), **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place["TZ"])
def test_the_ledger_replays_alike_everywhere(place: dict[str, str]) -> None:
    """Replicas stand in other time zones, under other locales, with other seeds for hashes."""
    digest = run_in(place, REPLAY, DIRECTORY)
    expected = json.loads(EXPECTED.read_text(encoding="ascii"))
    assert digest == expected["digest"]


def test_the_story_is_decided_alike_everywhere(tmp_path: Path) -> None:
    """A leader elsewhere is asked the same things: it comes to the same entries, to the byte."""
    run_in(PLACES[2], DECIDE, tmp_path)
    assert list(read_ledger(tmp_path)) == list(read_ledger(DIRECTORY))


def test_the_ledger_is_whole() -> None:
    """Every byte of it is checked, sealed segments and all."""
    disk = OsDisk(str(DIRECTORY), read_only=True)
    ledger = Ledger.view(disk, load_genesis(disk))
    try:
        report = ledger.verify()
    finally:
        ledger.close()
    expected = json.loads(EXPECTED.read_text(encoding="ascii"))
    assert (report.first, report.last, report.missing) == (1, expected["index"], ())
    assert report.chain.hex() == expected["chain"]


def test_the_ledger_holds_every_event() -> None:
    """Someone adds an event: the golden story must tell of it."""
    told: set[str] = set()
    for entry in read_ledger(DIRECTORY):
        if entry.kind == EntryKind.EVENTS:
            envelope, _ = decode_envelope(entry.body, entry.index)
            told.update(stored.type for stored in envelope.events)
    assert set(EVENTS) - told == SELDOM
