"""squeue --steps and scontrol show step, as a real Slurm 22.05 showed them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.slurm.columns.steps import (
    STEP_FORMAT,
    STEPS_BY_LETTER,
    STEPS_BY_NAME,
    StepLine,
    batch_line,
    extern_line,
    full_name,
    line_of_step,
    show_step,
)
from spur.slurm.formats import parse_format, parse_long_format
from spur.slurm.timespec import Moment
from spur.testing.hall import SPEC, STEP, Hall
from spur.values.arrays import TaskSet
from spur.values.steps import Dealing

NS = 1_000_000_000
START_NS = 1_796_027_640 * NS


class Utc:
    """The zone of the recording, where it is always the same second."""

    def now(self) -> int:
        return 0

    def moment(self, seconds: int) -> Moment:
        return Moment(2026, 11, 30, 8, 34, seconds - START_NS // NS)

    def seconds(self, moment: Moment) -> int:
        return 0


def name_of(uid: int) -> str:
    """Return the name that every user of the recording has."""
    return f"u{uid - 2000}"


@pytest.fixture(name="lines")
def lines_of_scene() -> list[StepLine]:
    """A job of two nodes with a script and a step that srun started a second later."""
    hall = Hall(checked=False)
    job_id = hall.start(hall.submit(SPEC), hall.share("n1"), hall.share("n2"))
    asked = replace(STEP, tasks=2, nodes_min=2, dealing=Dealing.CYCLIC)
    hall.start_step(job_id, asked)
    job = replace(hall.view(job_id), job_id=1501, uid=2001, start_ns=START_NS, partition="debug")
    step = replace(hall.steps(job_id)[0], start_ns=START_NS + NS)
    now_ns = START_NS + 6 * NS
    return [
        line_of_step(job, step, now_ns, Utc(), name_of),
        batch_line(job, now_ns, Utc(), name_of),
        extern_line(job, now_ns, Utc(), name_of),
    ]


def test_steps_are_listed_as_slurm_lists_them(lines: list[StepLine]) -> None:
    """Squeue -s, as it was recorded."""
    layout = parse_format(STEP_FORMAT, STEPS_BY_LETTER)
    assert [layout.header(), *map(layout.line, lines)] == [
        "         STEPID     NAME PARTITION     USER      TIME NODELIST",
        "         1501.0    sleep     debug       u1      0:05 n[1-2]",
        "     1501.batch    batch     debug       u1      0:06 n1",
        "    1501.extern   extern     debug       u1      0:06 n[1-2]",
    ]


def test_columns_are_reached_by_letter_and_by_name(lines: list[StepLine]) -> None:
    """Squeue -s -o '%i|%A|%S|%d' and -O stepid:12,stepstate:8."""
    layout = parse_format("%i|%A|%S|%l|%b|%U|%d", STEPS_BY_LETTER)
    assert layout.unknown == ("d",)
    assert layout.line(lines[0]) == "1501.0|2|2026-11-30T08:34:01|UNLIMITED|(null)|2001|%d"
    long = parse_long_format("stepid:12,stepstate:8", STEPS_BY_NAME)
    assert long.line(lines[2]) == "1501.extern RUNNING "


def test_a_step_is_told_as_scontrol_tells_it(lines: list[StepLine]) -> None:
    """Scontrol show step 1501.0, and -o for the extern step."""
    assert show_step(lines[0], one_line=False) == (
        "StepId=1501.0 UserId=2001 StartTime=2026-11-30T08:34:01 TimeLimit=UNLIMITED\n"
        "   State=RUNNING Partition=debug NodeList=n[1-2]\n"
        "   Nodes=2 CPUs=2 Tasks=2 Name=sleep Network=(null)\n"
        "   TRES=cpu=2,mem=200M,node=2\n"
        "   ResvPorts=(null)\n"
        "   CPUFreqReq=Default Dist=Cyclic\n"
        "   SrunHost:Pid=(null):0\n\n"
    )
    told = show_step(lines[2], one_line=True)
    assert told.startswith("StepId=1501.extern UserId=2001 StartTime=2026-11-30T08:34:00 ")
    assert " CPUs=0 Tasks=2 Name=extern Network=(null) TRES=(null) " in told


def test_a_task_of_an_array_keeps_its_name(lines: list[StepLine]) -> None:
    """Squeue -s of array 1505 shows 1505_2.batch."""
    job = replace(lines[1].job, array_id=1505, tasks=TaskSet.single(2))
    assert full_name(lines[1]._replace(job=job)) == "1505_2.batch"
