"""The judge of recordings: what counts as the same, and what does not."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from msgspec.structs import replace

from spur.testing.conformance.cases import Case, Step, load_cases
from spur.testing.conformance.judge import differs, normalise
from spur.testing.conformance.numbers import first_numbers
from spur.testing.conformance.report import (
    EXPLAINED,
    FAIL,
    PASS,
    UNSUPPORTED,
    Verdict,
    explained,
    grow,
    load_reasons,
    lost,
    table,
)
from spur.testing.conformance.site import overridden
from spur.values.errors import OperatorFault

STEP = Step(command="squeue", stdout="  1501 alpha\n", exit_code=0)


def judged(
    step: Step, stdout: str, *, stderr: str = "", exit_code: int | None = 0, job: str = "1501"
) -> str:
    return differs(
        step,
        stdout=stdout,
        stderr=stderr,
        exit_code=exit_code,
        variables={"RUN": job},
        recorded={"RUN": "1501"},
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("job 1501, then 1503 and 11501", "job <RUN>, then <RUN+2> and 11501"),
        ("at 2026-11-30T08:39:39 or 2026-11-30T08:39", "at <TIME> or <TIME>"),
        ("Mon Nov 30 08:39:39 2026", "<CTIME>"),
        ("since 1796000000.", "since 1796000000."),
        ("since 1796000000", "since <EPOCH>"),
        ("AllocNode:Sid=login:3033", "AllocNode:Sid=login:<SID>"),
        ("RunTime=00:00:04 x", "RunTime=<N> x"),
        ("SLURM_TASK_PID=77 a", "SLURM_TASK_PID=<N> a"),
    ],
)
def test_what_depends_on_the_moment_becomes_a_token(text: str, shown: str) -> None:
    """Numbers of jobs, times and processes are other ones each time."""
    assert normalise(text, {"RUN": "1501", "SHORT": "15"}) == shown


def test_same_output_with_another_number_passes() -> None:
    """The job has another number than it had when it was recorded."""
    assert judged(STEP, "  2777 alpha\n", job="2777") == ""


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        ("  1501 beta\n", "stdout: line 1: expected '  <RUN> alpha', got '  <RUN> beta'"),
        (" 1501 alpha\n", "stdout: line 1: expected '  <RUN> alpha', got ' <RUN> alpha'"),
        ("  1501 alpha", "stdout: 1 lines, expected 2"),
        ("  1501 alpha\n\n", "stdout: 3 lines, expected 2"),
    ],
)
def test_other_output_fails_and_says_where(stdout: str, reason: str) -> None:
    """One word, one blank or one line differs."""
    assert judged(STEP, stdout) == reason


def test_errors_and_status_count_too() -> None:
    """The same words with another exit status are not the same."""
    assert judged(STEP, STEP.stdout, stderr="x") == "stderr: line 1: expected '', got 'x'"
    assert judged(STEP, STEP.stdout, exit_code=1) == "exit status: expected 0, got 1"
    assert judged(STEP, STEP.stdout, exit_code=None) == "it did not end by itself"
    assert judged(replace(STEP, exit_code_unstable=True), STEP.stdout, exit_code=1) == ""
    assert judged(replace(STEP, exit_code="timeout"), STEP.stdout, exit_code=None) == ""


def test_masks_take_any_word_or_line() -> None:
    """What differed between two recordings is not judged, and blanks round it neither."""
    masked = replace(STEP, stdout_masked="<RUN> <*> alpha\n<**>\n")
    assert judged(masked, "  1501   0:05 alpha\nanything at all\n") == ""
    assert judged(masked, "1501 0:05 beta\nx\n").startswith("stdout: line 1")
    assert judged(masked, "1501 0:05 x alpha\nx\n").startswith("stdout: line 1")
    assert judged(replace(STEP, stdout_unstable=True), "anything") == ""


def test_scene_replaces_and_removes_keys_of_the_configuration() -> None:
    """A scene has other limits, and lacks enforcement."""
    text = "A=1\nMaxJobCount=9\nB=2\n"
    assert overridden(text, {"maxjobcount": "3", "B": "", "C": "4"}) == "A=1\nmaxjobcount=3\nC=4\n"


def test_report_counts_by_family() -> None:
    """One table for a person."""
    verdicts = [
        Verdict(name="a/1", family="a", verdict=PASS),
        Verdict(name="a/2", family="a", verdict=FAIL),
        Verdict(name="b/1", family="b", verdict=UNSUPPORTED),
    ]
    rows = [line.split() for line in table(verdicts).splitlines()]
    assert rows[1:] == [
        ["a", "1", "0", "1", "0", "2"],
        ["b", "0", "0", "0", "1", "1"],
        ["total", "1", "0", "1", "1", "3"],
    ]


def test_baseline_only_grows(tmp_path: Path) -> None:
    """What passed once must pass; what passes anew is added."""
    path = tmp_path / "baseline.txt"
    first = Verdict(name="a/1", family="a", verdict=PASS)
    second = Verdict(name="a/2", family="a", verdict=FAIL)
    assert lost(path, [first, second]) == []
    assert grow(path, [first, second]) == 1
    assert grow(path, [second]) == 0
    assert "a/1\n" in path.read_text("utf-8")
    assert "a/2\n" not in path.read_text("utf-8")
    broken = Verdict(name="a/1", family="a", verdict=UNSUPPORTED)
    assert lost(path, [broken, second]) == [broken]


def test_pattern_that_names_nothing_is_told(tmp_path: Path) -> None:
    """--only with a typing error."""
    (tmp_path / "cases").mkdir()
    with pytest.raises(OperatorFault, match="no case 'squeu'"):
        load_cases(tmp_path, "squeu")


def case(name: str, command: str, stdout: str, **variables: str) -> Case:
    capture = dict.fromkeys(variables, "x")
    step = Step(command=command, stdout=stdout, capture=capture)
    return Case(name=name, family="srun", scene="srun", steps=(step,), vars=variables)


def test_numbers_that_a_record_shows_are_those_of_its_jobs() -> None:
    """What was not replayed leaves the cluster behind; other numbers are no jobs."""
    cases = [
        case("env", "srun env", "SLURM_JOB_ID=3512\nMEM=3990\n"),
        case("captured", "sbatch x", "Submitted batch job 3514\n", J="3514"),
        case("step", "srun false", "StepId=3516.0 of 3600 s\n"),
        case("before", "srun true", "job 3513 is older\n"),
        case("looks", "squeue", "3519\n"),
        case("last", "srun x", "4500\n"),
    ]
    assert first_numbers(cases, 3501) == {"env": 3512, "step": 3516}


DATA = Path(__file__).parents[2] / "data" / "conformance"


def test_a_case_that_does_not_pass_may_be_explained() -> None:
    """A reason names a case, or several by a pattern; what passes needs none."""
    reasons = load_reasons(DATA / "explained.toml")
    some = reasons[0].cases[0]
    verdicts = [
        Verdict(name=some.replace("*", "x"), family="a", verdict=verdict)
        for verdict in (FAIL, UNSUPPORTED, PASS)
    ]
    verdicts.append(Verdict(name="nobody/knows-why", family="a", verdict=FAIL))
    found = [each.verdict for each in explained(verdicts, reasons)]
    assert found == [EXPLAINED, EXPLAINED, PASS, FAIL]


def test_every_reason_says_why_and_names_what_is_no_part_of_the_baseline() -> None:
    """Somebody mends a case and leaves its excuse."""
    known = (DATA / "baseline.txt").read_text("utf-8").split()
    for reason in load_reasons(DATA / "explained.toml"):
        assert len(reason.why.split()) > 5
        assert reason.why.endswith(".")
        for name in reason.cases:
            assert not [each for each in known if fnmatchcase(each, name)], name


RUNS = "alpha  0:06     19:54\nbeta   1:04   1:58:56\nwaits  0:00     10:00\n"


@pytest.mark.parametrize(
    ("shown", "is_same"),
    [
        ("alpha  0:14     19:46\nbeta   1:12   1:58:48\nwaits  0:00     10:00\n", True),
        ("alpha  0:14     19:46\nbeta   1:13   1:58:47\nwaits  0:00     10:00\n", True),
        ("alpha  0:14     19:46\nbeta   1:24   1:58:36\nwaits  0:00     10:00\n", True),
        ("alpha  0:14     19:46\nbeta   9:44   1:50:16\nwaits  0:00     10:00\n", False),
        ("alpha  0:14     19:46\nbeta   1:12   1:58:48\nwaits  0:00     20:00\n", False),
        ("alpha 0:14      19:46\nbeta   1:12   1:58:48\nwaits  0:00     10:00\n", False),
        ("alpha  0:14    19:46\nbeta   1:12   1:58:48\nwaits  0:00     10:00\n", False),
    ],
)
def test_a_replay_may_be_later_than_the_record(shown: str, is_same: bool) -> None:
    """All jobs ran for eight seconds more when they were looked at; nothing else may differ."""
    assert (judged(replace(STEP, stdout=RUNS), shown) == "") == is_same
