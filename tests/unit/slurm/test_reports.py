"""Lines of sreport, as Slurm showed them of the same amounts."""

from __future__ import annotations

import pytest

from spur.slurm.columns.reports import REPORTS, UsageLine, fields_for, used
from spur.slurm.sheets import parse_sheet

WHOLE_S = 5_582_500
ROOT = UsageLine("oracle", "chem", "u3", "", 403, WHOLE_S, "Seconds")

RECORDED = [
    "  Cluster         Account     Login     Proper Name     Used   Energy ",
    "--------- --------------- --------- --------------- -------- -------- ",
    "   oracle            chem        u3                      403        0 ",
]


def test_lines_stand_where_slurm_puts_them() -> None:
    """Somebody's script cuts columns."""
    sheet = parse_sheet(REPORTS[0].columns, fields_for("Seconds"))
    assert (sheet.header() + sheet.line(ROOT)).splitlines() == RECORDED


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("Seconds", "609"),
        ("Minutes", "10"),
        ("Hours", "0"),
        ("Percent", "0.01%"),
        ("MinPer", "10(0.01%)"),
    ],
)
def test_amounts_are_told_as_asked(time: str, text: str) -> None:
    """The amounts of a recording, in each unit."""
    assert used(ROOT._replace(time=time), 609) == text


def test_nothing_is_a_part_of_nothing() -> None:
    """A cluster has no nodes yet."""
    assert used(ROOT._replace(time="Percent", whole_s=0), 5) == "0.00%"
