"""What came of the cases: a table by family, a report for machines, and the set that passes."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from spur.values.errors import OperatorFault

__all__ = [
    "EXPLAINED",
    "FAIL",
    "PASS",
    "UNSUPPORTED",
    "Reason",
    "Verdict",
    "explained",
    "grow",
    "load_reasons",
    "lost",
    "report",
    "table",
]

PASS, FAIL, UNSUPPORTED = "pass", "fail", "unsupported"

EXPLAINED = "explained"
"""It does not pass, and a reason says what Spur does instead and why."""


class Reason(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why cases do not pass, said to whoever relies on them."""

    why: str
    cases: tuple[str, ...]
    """Names, or patterns as a shell has them."""


class _Reasons(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: tuple[Reason, ...]


def load_reasons(path: Path) -> tuple[Reason, ...]:
    """Return the reasons of a file. Raises: OperatorFault when it can't be read."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_Reasons).reason
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise OperatorFault(f"{path}: {error}") from error


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one case."""

    name: str
    family: str
    verdict: str
    detail: str = ""


def explained(verdicts: Iterable[Verdict], reasons: Iterable[Reason]) -> list[Verdict]:
    """Return the verdicts with those that did not pass and have a reason marked as such."""
    known = list(reasons)
    return [
        msgspec.structs.replace(each, verdict=EXPLAINED)
        if each.verdict != PASS
        and any(fnmatchcase(each.name, name) for reason in known for name in reason.cases)
        else each
        for each in verdicts
    ]


def report(verdicts: Iterable[Verdict], scenes: dict[str, list[str]]) -> bytes:
    """Return the report as JSON; `scenes` names the steps of setups that failed."""
    text = msgspec.json.encode({"cases": list(verdicts), "scenes": scenes})
    return msgspec.json.format(text, indent=1) + b"\n"


def table(verdicts: Iterable[Verdict]) -> str:
    """Return the counts of each family, and of all."""
    counts: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        for family in (verdict.family, "total"):
            row = counts.setdefault(family, dict.fromkeys((PASS, EXPLAINED, FAIL, UNSUPPORTED), 0))
            row[verdict.verdict] += 1
    total = counts.pop("total", None)
    rows = sorted(counts.items()) + ([("total", total)] if total else [])
    lines = [
        f"{'FAMILY':24} {'PASS':>6} {'EXPLAINED':>10} {'FAIL':>6} {'UNSUPPORTED':>12} {'OF':>6}"
    ]
    for family, row in rows:
        lines.append(
            f"{family:24} {row[PASS]:6} {row[EXPLAINED]:10} {row[FAIL]:6} {row[UNSUPPORTED]:12} "
            f"{sum(row.values()):6}"
        )
    return "\n".join(lines) + "\n"


def _read(path: Path) -> set[str]:
    if not path.exists():
        return set()
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def lost(path: Path, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the cases that the baseline says pass, and that do not."""
    known = _read(path)
    return [each for each in verdicts if each.name in known and each.verdict != PASS]


def grow(path: Path, verdicts: Iterable[Verdict]) -> int:
    """Add the cases that pass to the baseline; return how many are new."""
    known = _read(path)
    passing = {each.name for each in verdicts if each.verdict == PASS}
    lines = "".join(f"{name}\n" for name in sorted(known | passing))
    path.write_text(f"# Recorded cases that pass. Lines are added and never go.\n{lines}", "utf-8")
    return len(passing - known)
