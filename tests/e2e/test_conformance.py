"""The quick part of the recordings: what needs a cluster, and no job that runs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from spur.testing.conformance.main import main

DATA = Path(__file__).parent.parent / "data" / "conformance"


def test_recordings_that_passed_still_pass(tmp_path: Path) -> None:
    """Somebody changes a sentence that scripts of other people look for."""
    report = tmp_path / "report.json"
    baseline = DATA / "baseline.txt"
    arguments = ["--golden", str(DATA), "--baseline", str(baseline), "--report", str(report)]
    assert main(arguments) == 0
    cases = msgspec.json.decode(report.read_bytes())["cases"]
    known = set(baseline.read_text("utf-8").splitlines())
    assert {case["verdict"] for case in cases} <= {"pass", "fail", "unsupported"}
    assert len([case for case in cases if case["verdict"] == "pass"]) >= len(
        {case["name"] for case in cases} & known
    )
