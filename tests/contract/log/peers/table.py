"""Run the rules over the peers and ourselves, and write docs/peers.md.

python -m tests.contract.log.peers.table
"""

from __future__ import annotations

import ast
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.figures import describe_machine
from tests.contract.log.engines import ENGINES, peer_version
from tests.contract.log.peers.causes import CAUSES

_ROOT = Path(__file__).parents[4]
_RULES = _ROOT / "tests/contract/log"
_PAGE = _ROOT / "docs/peers.md"
_PEERS = ("raftos", "pysyncobj")

_HEAD = """\
# The log's peers, under the log's own rules

The rules of the replicated log (`tests/contract/log`) run over every engine that has an adapter:
ours, and two packages that promise the same, installed apart from the product. Nothing of a peer's
algorithm is changed. Nodes are processes on one machine with the peer's default settings;
situations that need a rare order of messages drive the peer's own classes by hand, within what its
transport permits.

This page is written by `ops/peers table`; edit `tests/contract/log/peers/`, not the page.
"""

_RAFTOS = """\
raftos 0.2.6 (2017) runs here only through a shim (`raftos_shim.py`): Python removed two names that
it uses, and its default serializer cannot read its own log back. It cannot be a dependency either:
it pins `cryptography==1.5.3`, which no longer builds, so that an installer either fails or leaves a
set of packages that does not check.
"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One test on one engine."""

    test: str
    engine: str
    variant: str
    evidence: str | None
    """None when the rule held."""


def run_rules(engines: Sequence[str]) -> list[Outcome]:
    """Run all rules over these engines and return what each said."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", str(_RULES), f"--junit-xml={report}"]
        subprocess.run(
            [*command, "--tb=line", "-p", "no:cacheprovider", f"--basetemp={scratch}/runs"],
            env={**os.environ, "SPUR_CONTRACT_ENGINES": ",".join(engines)},
            cwd=_ROOT,
            check=False,  # a failing rule is what the page is about
        )
        return list(_outcomes(report))


def _outcomes(report: Path) -> Iterator[Outcome]:
    for case in ElementTree.parse(report).iter("testcase"):
        name = re.fullmatch(r"(\w+)\[(\w+)(?:-(.+))?\]", case.attrib["name"])
        if name is None or case.find("skipped") is not None:
            continue
        if case.find("error") is not None:
            raise SystemExit(f"peers: {case.attrib['name']} did not run; the page is unchanged")
        failure = case.find("failure")
        evidence = None
        if failure is not None:
            message = failure.attrib["message"]
            if not message.startswith("AssertionError: "):
                raise SystemExit(f"peers: {case.attrib['name']} broke: {message}; page unchanged")
            evidence = message.removeprefix("AssertionError: ").splitlines()[0]
        yield Outcome(test=name[1], engine=name[2], variant=name[3] or "", evidence=evidence)


def rule_titles() -> dict[str, str]:
    """Return each rule's sentence, in the order of the files."""
    titles = {}
    for path in sorted(_RULES.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                titles[node.name] = (ast.get_docstring(node) or node.name).splitlines()[0]
    return titles


def write_page(outcomes: Sequence[Outcome], engines: Sequence[str]) -> str:
    """Return the page's text."""
    titles = rule_titles()
    date = datetime.datetime.fromtimestamp(time.time(), datetime.UTC).date().isoformat()
    versions = ", ".join(f"{peer} {peer_version(peer)}" for peer in _PEERS)
    lines = [_HEAD, f"{date}; {versions}; {describe_machine(_ROOT)}.", ""]
    lines += ["| rule | " + " | ".join(engines) + " |", "|---" * (len(engines) + 1) + "|"]
    for test, title in titles.items():
        cells = [_cell([o for o in outcomes if (o.test, o.engine) == (test, e)]) for e in engines]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += ["", "A dash: the rule does not apply (an engine without processes or a disk).", ""]
    for peer in _PEERS:
        lines += [f"## What {peer} {peer_version(peer)} breaks", ""]
        if peer == "raftos":
            lines += [_RAFTOS]
        for outcome in outcomes:
            if outcome.engine == peer and outcome.evidence is not None:
                lines += _failure(titles[outcome.test], outcome)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _cell(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "–"  # noqa: RUF001  # a dash is what the page calls it
    broken = [outcome for outcome in outcomes if outcome.evidence is not None]
    if broken and len(broken) < len(outcomes):
        return "**breaks** (" + ", ".join(outcome.variant for outcome in broken) + ")"
    return "**breaks**" if broken else "holds"


def _failure(title: str, outcome: Outcome) -> list[str]:
    variant = f" ({outcome.variant})" if outcome.variant else ""
    lines = [f"- {title}{variant}", f"  - seen: {outcome.evidence}"]
    cause = CAUSES.get((outcome.engine, outcome.test))
    if cause is not None:
        lines.append(f"  - cause: {cause}")
    return lines


def main() -> None:
    """Write the page, and say which failures have no known cause."""
    engines = list(ENGINES)
    outcomes = run_rules(engines)
    _PAGE.parent.mkdir(exist_ok=True)
    _PAGE.write_text(write_page(outcomes, engines))
    for outcome in outcomes:
        if outcome.evidence and (outcome.engine, outcome.test) not in CAUSES:
            sys.stderr.write(f"no cause is noted for {outcome.engine} {outcome.test}\n")
    sys.stderr.write(f"wrote {_PAGE.relative_to(_ROOT)}\n")


if __name__ == "__main__":
    main()
