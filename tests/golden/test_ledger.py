"""The golden ledger: a committed history must replay to its recorded digest, wherever it is read.

`ops/bless` makes it anew from `spur.testing.golden`. In era 0 that is allowed when events or tables
changed on purpose; from era 1 on a released ledger is never made anew (docs/log-contract.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import spur
from spur.events.codec import decode_envelope
from spur.events.declare import EVENTS
from spur.events.envelope import EntryKind
from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.projections.state import State
from spur.testing.builders import replay
from spur.testing.entryfile import append_entries, read_entries
from spur.testing.golden import golden_story

LEDGER = Path(__file__).with_name("ledger")
ENTRIES = LEDGER / "entries"
EXPECTED = LEDGER / "expected.json"

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
        ENTRIES.unlink(missing_ok=True)
        append_entries(ENTRIES, golden_story())
        text = json.dumps(described(replay(read_entries(ENTRIES))), indent=2)
        EXPECTED.write_text(text + "\n", encoding="ascii")


def test_the_ledger_replays_to_its_digest() -> None:
    """A release reads what one before it wrote, and comes to the same state."""
    state = replay(read_entries(ENTRIES))
    assert described(state) == json.loads(EXPECTED.read_text(encoding="ascii"))
    check_invariants(state)


REPLAY = """
import sys
from pathlib import Path
from spur.projections.digest import state_digest
from spur.testing.builders import replay
from spur.testing.entryfile import read_entries
print(state_digest(replay(read_entries(Path(sys.argv[1])))).hex())
"""

DECIDE = """
import sys
from pathlib import Path
from spur.testing.entryfile import append_entries
from spur.testing.golden import golden_story
append_entries(Path(sys.argv[1]), golden_story(checked=False))
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
    digest = run_in(place, REPLAY, ENTRIES)
    expected = json.loads(EXPECTED.read_text(encoding="ascii"))
    assert digest == expected["digest"]


def test_the_story_is_decided_alike_everywhere(tmp_path: Path) -> None:
    """A leader elsewhere is asked the same things: it comes to the same entries, to the byte."""
    run_in(PLACES[2], DECIDE, tmp_path / "entries")
    assert (tmp_path / "entries").read_bytes() == ENTRIES.read_bytes()


def test_the_ledger_holds_every_event() -> None:
    """Someone adds an event: the golden story must tell of it."""
    told: set[str] = set()
    for entry in read_entries(ENTRIES):
        if entry.kind == EntryKind.EVENTS:
            envelope, _ = decode_envelope(entry.body, entry.index)
            told.update(stored.type for stored in envelope.events)
    assert set(EVENTS) - told == SELDOM
