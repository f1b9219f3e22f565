"""`ops/conformance`: replay recordings of Slurm and say what is the same."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from spur.testing.conformance import reach
from spur.testing.conformance.cases import load_cases, load_scene
from spur.testing.conformance.report import (
    Reason,
    Verdict,
    explained,
    grow,
    load_reasons,
    lost,
    report,
    table,
)
from spur.testing.conformance.runner import run_scene
from spur.testing.conformance.site import USERS, Entry, make_users
from spur.values.errors import SpurError

__all__ = ["main"]

REASONS_FILE = "explained.toml"
"""Beside a baseline: why other cases do not pass."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ops/conformance", description=__doc__)
    parser.add_argument("--golden", required=True, type=Path, help="the recordings: cases, scenes")
    parser.add_argument("--cluster", type=Path, help="the configuration (default: GOLDEN/cluster)")
    parser.add_argument("--scenes", type=Path, help="the scenes (default: GOLDEN/scenes)")
    parser.add_argument("--report", type=Path, help="where the report goes, as JSON")
    parser.add_argument(
        "--only", default="*", help="cases whose name or family fits one of these patterns"
    )
    parser.add_argument(
        "--baseline", type=Path, help="cases that must pass; one that does not fails"
    )
    parser.add_argument("--grow", action="store_true", help="add to the baseline what passes")
    parser.add_argument(
        "--reasons", type=Path, help="why cases do not pass (default: beside the baseline)"
    )
    parser.add_argument("--verbose", action="store_true", help="tell each case as it ends")
    parser.add_argument(
        "--entry",
        type=Entry,
        choices=list(Entry),
        default=Entry.TURNS,
        help="how commands start (default: from case to case in turns)",
    )
    parser.add_argument("--keep", type=Path, help="leave the cluster of the last scene here")
    return parser


def main(arguments: list[str]) -> int:
    """Run the cases; 1 when one of the baseline did not pass or a scene could not be set up."""
    options = _parser().parse_args(arguments)
    if reach.is_needed():
        make_users()
        with tempfile.TemporaryDirectory(prefix="spur-c-", dir="/tmp") as scratch:
            return reach.enter(arguments, Path(scratch), USERS)
    try:
        reasons = _reasons(options)
        verdicts, scenes = _run(options)
    except SpurError as error:
        sys.stderr.write(f"conformance: {error}\n")
        return 2
    if reasons is not None:
        verdicts = explained(verdicts, reasons)
    sys.stdout.write(table(verdicts))
    if options.report:
        options.report.write_bytes(report(verdicts, scenes))
    return _against_baseline(options, verdicts)


def _run(options: argparse.Namespace) -> tuple[list[Verdict], dict[str, list[str]]]:
    cluster = options.cluster or options.golden / "cluster"
    scenes = options.scenes or options.golden / "scenes"
    verdicts: list[Verdict] = []
    failed: dict[str, list[str]] = {}
    for name, cases in sorted(load_cases(options.golden, options.only).items()):
        directory = options.keep or Path(tempfile.mkdtemp(prefix="spur-c-", dir="/tmp"))
        found, troubles = run_scene(
            load_scene(scenes, name),
            cases,
            cluster=cluster,
            directory=directory,
            entry=options.entry,
            keep=bool(options.keep),
            say=_say if options.verbose else _nothing,
        )
        verdicts += found
        if troubles:
            failed[name] = troubles
    return verdicts, failed


def _reasons(options: argparse.Namespace) -> tuple[Reason, ...] | None:
    """Return why cases do not pass, where anybody says it."""
    if options.reasons is not None:
        return load_reasons(options.reasons)
    if options.baseline is not None:
        path = options.baseline.with_name(REASONS_FILE)
        return load_reasons(path) if path.exists() else None
    return None


def _against_baseline(options: argparse.Namespace, verdicts: list[Verdict]) -> int:
    if options.baseline is None:
        return 0
    missing = lost(options.baseline, verdicts)
    for verdict in missing:
        sys.stderr.write(f"no longer passes: {verdict.name}: {verdict.detail}\n")
    if options.grow and not missing:
        sys.stderr.write(f"{grow(options.baseline, verdicts)} new cases pass\n")
    return 1 if missing else 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _nothing(text: str) -> None:
    """Keep quiet."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
