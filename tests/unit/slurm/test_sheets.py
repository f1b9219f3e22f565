"""Formats of sshare and sstat, and what they show of a tree of accounts and of steps."""

from __future__ import annotations

import pytest

from spur.slurm.accountbook import AccountBook
from spur.slurm.columns import shares, stepstats
from spur.slurm.columns.priorities import BY_LETTER, PriorityLine, Weights, default_format
from spur.slurm.columns.shares import SHARE_FIELDS, ShareLine, above_of, share_of, sums_of
from spur.slurm.formats import parse_format
from spur.slurm.sheets import UnknownName, helped, parse_sheet
from spur.values.accounts import Setting, Subject
from spur.wire.accounts import EntityView

TREE = (
    ("root", "", "", 1),
    ("root", "root", "", 1),
    ("bio", "", "root", 20),
    ("bio", "u4", "", 10),
    ("chem", "", "root", 20),
    ("chem", "u1", "", 1),
    ("chem", "u3", "", 10),
    ("physics", "", "root", 40),
    ("physics", "u1", "", 10),
    ("astro", "", "physics", 10),
    ("hep", "", "physics", 30),
)
"""Account, user, account above, shares."""

RECORDED = """\
Account               NormShares 
-------------------- ----------- 
root                    0.000000 
 root                   0.012346 
 bio                    0.246914 
  bio                   1.000000 
 chem                   0.246914 
  chem                  0.090909 
  chem                  0.909091 
 physics                0.493827 
  physics               0.200000 
  astro                 0.200000 
  hep                   0.600000 
"""  # noqa: W291  # Slurm ends its lines so


def book() -> AccountBook:
    views = []
    for number, (account, user, above, share) in enumerate(TREE, 1):
        settings = [Setting("Fairshare", "", share)]
        if above:
            settings.append(Setting("Parent", "", above))
        view = EntityView((account, user, ""), number, tuple(settings))
        views.append((Subject.ASSOCIATION, view))
    return AccountBook("oracle", views)


def lines() -> list[ShareLine]:
    told = book()
    sums = sums_of(told)
    found = []
    for key in told.associations():
        above = "" if key[:2] == ("root", "") else above_of(told, key)
        part = share_of(told, key) / sums[above] if above else 0.0
        indent = told.depth(key[0]) + (1 if key[1] else 0)
        found.append(ShareLine(told, key, indent, part, "cpu=0,mem=0"))
    return found


def test_shares_are_parts_of_what_stands_under_the_same_account() -> None:
    """The tree of the recording, as Slurm showed its shares."""
    sheet = parse_sheet("account,normshares", SHARE_FIELDS)
    shown = sheet.header() + "".join(map(sheet.line, lines()))
    assert shown == RECORDED


def test_of_a_name_that_comes_twice_the_last_counts() -> None:
    """A script appends a field that is in its format already."""
    sheet = parse_sheet("account,user,Account", SHARE_FIELDS, delimiter="|")
    assert sheet.header() == "User|Account\n"
    assert sheet.line(lines()[5]) == "u1|  chem\n"


def test_a_width_puts_a_value_to_its_side() -> None:
    """A format names widths of its own; what is wider is cut and marked."""
    sheet = parse_sheet("account%10,user%-6,tresrunmins%5", SHARE_FIELDS)
    assert sheet.line(lines()[5]) == "      chem u1     cpu=+ \n"


def test_a_name_that_no_field_has_is_told() -> None:
    """Somebody mistypes a field."""
    with pytest.raises(UnknownName, match="nosuch"):
        parse_sheet("nosuch", SHARE_FIELDS)


def test_every_name_of_the_usual_formats_is_a_field() -> None:
    """A field is renamed, and the usual format is not."""
    for form in (shares.DEFAULT_FORMAT, shares.LONG_FORMAT):
        assert parse_sheet(form, SHARE_FIELDS).cells
    for form in (stepstats.DEFAULT_FORMAT, stepstats.PIDS_FORMAT):
        assert parse_sheet(form, stepstats.STAT_FIELDS).cells


def test_help_of_formats_is_slurms() -> None:
    """Somebody asks which fields there are."""
    first = "AveCPU              AveCPUFreq          AveDiskRead         AveDiskWrite       "
    assert helped(stepstats.LISTED).splitlines()[0] == first
    names = (field.name for field in SHARE_FIELDS)
    assert (
        helped(names, width=17).splitlines()[-1]
        == "RawUsage          TRESRunMins       User             "
    )


def test_weights_are_shown_as_slurm_shows_them() -> None:
    """An administrator asks what the configuration weighs factors by."""
    weights = Weights.of(
        {
            "priorityweightage": "1000",
            "priorityweightassoc": "50",
            "priorityweightfairshare": "10000",
            "priorityweightjobsize": "500",
            "priorityweightpartition": "2000",
            "priorityweightqos": "3000",
            "priorityweighttres": "CPU=100,Mem=100,GRES/gpu=50",
        }
    )
    form = default_format(
        weights, is_long=False, is_normal=False, with_user=False, with_weights=True
    )
    layout = parse_format(form, BY_LETTER)
    assert layout.header() == (
        "          JOBID PARTITION   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE"
        "    JOBSIZE  PARTITION        QOS                 TRES"
    )
    assert layout.line(PriorityLine(None, "", weights)) == (
        "        Weights                               1       1000         50      10000"
        "        500       2000       3000 CPU=100,Mem=100,GRES"
    )


def test_factors_without_weight_have_no_column() -> None:
    """A site weighs age alone."""
    weights = Weights.of({"priorityweightage": "7"})
    form = default_format(
        weights, is_long=False, is_normal=False, with_user=True, with_weights=False
    )
    assert form == "%.15i %9r %.8u %.10Y %.10S %.10A"
