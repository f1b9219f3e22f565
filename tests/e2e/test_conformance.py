"""The quick part of the recordings: what needs a cluster, and no job that runs.

Most of them are refusals: each value that is none, each job that is not there, with what Slurm
says of it on which stream and how it exits.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from spur.testing.conformance.main import main

DATA = Path(__file__).parent.parent / "data" / "conformance"

BASELINE = DATA / "baseline.txt"

NAMES = [
    case["name"]
    for path in sorted((DATA / "cases").glob("*.json"))
    for case in msgspec.json.decode(path.read_bytes())
]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return what came of each case, by name."""
    report = tmp_path_factory.mktemp("report") / "report.json"
    main(["--golden", str(DATA), "--report", str(report)])
    return {case["name"]: case for case in msgspec.json.decode(report.read_bytes())["cases"]}


def test_every_case_is_judged(verdicts: dict[str, dict[str, str]]) -> None:
    """A scene that could not be set up would hide all its cases."""
    assert set(verdicts) == set(NAMES)
    assert {case["verdict"] for case in verdicts.values()} <= {"pass", "fail", "unsupported"}


@pytest.mark.parametrize("name", sorted(set(NAMES) & set(BASELINE.read_text("utf-8").split("\n"))))
def test_recording_that_passed_still_passes(verdicts: dict[str, dict[str, str]], name: str) -> None:
    """Somebody changes a sentence that scripts of other people look for."""
    assert (verdicts[name]["verdict"], verdicts[name]["detail"]) == ("pass", "")
