"""What sdiag prints: exporters read it line by line."""

from __future__ import annotations

import re

from spur.slurm.diagnostics import MESSAGES, Calls, calls_of, show_statistics
from spur.wire.declare import REQUESTS
from spur.wire.registry import SUBJECTS
from spur.wire.statistics import CycleCounts, RequestCount, Statistics

TOLD = Statistics(
    now_ns=1_796_027_678 * 10**9,
    since_ns=1_796_027_637 * 10**9,
    submitted=28,
    started=9,
    completed=1,
    canceled=2,
    failed=3,
    pending=19,
    running=9,
    agents=4,
    cycles=CycleCounts(10, 21_410, 5_139, 5_139, 1_796_027_670 * 10**9, 60, 5, 7, 70, 8),
    requests=(
        RequestCount("job.submit", 0, 21, 21_714),
        RequestCount("job.hold", 0, 1, 100),
        RequestCount("job.update", 0, 2, 200),
        RequestCount("token.list", 0, 1, 7),
    ),
    users=(RequestCount("", 0, 20, 2_000), RequestCount("", 1001, 5, 50)),
)


def shown(told: Statistics) -> str:
    return show_statistics(
        told,
        moment=lambda seconds: f"at {seconds}",
        user=lambda uid: "root" if uid == 0 else "ada",
        order=lambda row: (-row.calls,),
        latency_us=17,
    )


def test_lines_are_those_of_slurm() -> None:
    """An exporter looks for its patterns."""
    text = shown(TOLD)
    assert "\nJobs submitted: 28\nJobs started:   9\n" in text
    assert "\n\tMean cycle:   2141\n\tMean depth cycle:  6\n" in text
    assert "\n\tREQUEST_SUBMIT_BATCH_JOB                ( 4003) count:21     " in text
    assert "\n\troot            (       0) count:20     ave_time:100    total_time:2000\n" in text
    rows = re.findall(r"^\t(\w+)\s+\(\s*(\d+)\) count:(\d+)", text, re.MULTILINE)
    assert rows[0] == ("REQUEST_SUBMIT_BATCH_JOB", "4003", "21")
    assert ("REQUEST_UPDATE_JOB", "3001", "3") in rows


def test_nothing_is_divided_by_nothing() -> None:
    """It is asked before the first cycle."""
    text = shown(
        Statistics(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, CycleCounts(), (), ()),
    )
    assert "Mean" not in text
    assert "\tTotal cycles: 0\n" in text


def test_a_request_without_slurms_name_goes_by_its_own() -> None:
    """Slurm has no join tokens."""
    [row] = calls_of((RequestCount("token.list", 0, 1, 7),))
    assert row == Calls("TOKEN_LIST", 0, 1, 7)


def test_names_are_those_of_requests() -> None:
    """Somebody renames a request, and its line goes under another name."""
    assert SUBJECTS
    assert [name for name in MESSAGES if name not in REQUESTS] == []
