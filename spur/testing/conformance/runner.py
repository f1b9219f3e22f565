"""Scenes and their cases: bring up the cluster, do what was done then, judge what came of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path

from spur.testing.conformance.cases import Case, Scene, Step
from spur.testing.conformance.judge import differs
from spur.testing.conformance.numbers import first_numbers
from spur.testing.conformance.report import FAIL, PASS, UNSUPPORTED, Verdict
from spur.testing.conformance.site import Entry, Ran, Site

__all__ = ["SLURM_COMMANDS", "play", "run_scene"]

SLURM_COMMANDS = frozenset(
    {
        "sacct",
        "sacctmgr",
        "salloc",
        "sattach",
        "sbatch",
        "sbcast",
        "scancel",
        "scontrol",
        "scrontab",
        "sdiag",
        "sinfo",
        "slurmrestd",
        "sprio",
        "squeue",
        "sreport",
        "srun",
        "sshare",
        "sstat",
        "strigger",
    }
)
"""Commands of Slurm; a case that needs one that is not there is unsupported."""

POLL_S = 0.2

AT_ONCE: int = 1
"""Cases that run at the same time, where they change nothing. More are quicker on idle processors,
but what a command does between fork and exec is not safe beside other threads."""

NOT_HONOURED = "not honoured yet"
"""What Spur says of an option that it knows and refuses."""

Say = Callable[[str], None]


class _Player:
    """One scene on its cluster."""

    def __init__(self, site: Site, variables: dict[str, str], numbers: Mapping[str, int]) -> None:
        self.site = site
        self.variables = variables
        self.numbers = numbers

    def do(self, step: Step) -> tuple[Ran | None, str]:
        """Do one step; return what its command did, and why it failed."""
        if step.command is not None:
            return self._command(step)
        if step.wait is not None:
            return None, self._wait(step)
        if step.sleep is not None:
            time.sleep(step.sleep)
        elif step.file is not None:
            self.site.write(step.file, step.content, step.user, step.mode)
        elif step.node is not None:
            self.site.node(step.node, step.action)
        return None, ""

    def _command(self, step: Step) -> tuple[Ran, str]:
        ran = self.site.run(
            step.command or "",
            user=step.user,
            environment={**self.variables, **(step.env or {})},
            stdin=step.stdin or "",
        )
        missing = []
        for name, pattern in (step.capture or {}).items():
            found = re.search(pattern, ran.stdout + ran.stderr, re.MULTILINE)
            if found is None:
                missing.append(name)
            else:
                self.variables[name] = found.group(1)
        return ran, f"nothing to capture as {', '.join(missing)}" if missing else ""

    def _wait(self, step: Step) -> str:
        until = time.monotonic() + step.timeout
        shown = ""
        while True:
            ran = self.site.run(step.wait or "", user=step.user, environment=self.variables)
            shown = ran.stdout + ran.stderr
            if re.search(step.match, shown, re.MULTILINE):
                return ""
            if time.monotonic() > until:
                return f"{step.wait!r} did not come to {step.match!r} but to {shown.strip()!r}"
            time.sleep(POLL_S)

    def set_up(self, steps: Sequence[Step]) -> list[str]:
        """Do the steps of a scene; return what failed of them.

        Commands that follow each other took milliseconds when they were recorded, and no scheduler
        looked at half of them; here it looks when all have been given.
        """
        failed: list[str] = []
        for are_commands, group in groupby(steps, key=lambda step: step.command is not None):
            with self.site.unscheduled() if are_commands else nullcontext():
                failed += self.prepare(tuple(group))
        return failed

    def prepare(self, steps: Sequence[Step]) -> list[str]:
        """Do steps that are not judged; return what failed of them."""
        failed: list[str] = []
        for step in steps:
            ran, reason = self.do(step)
            if ran is not None and not reason and ran.exit_code != step.exit_code:
                if step.exit_code != "timeout":
                    reason = f"exit status {ran.exit_code}: {ran.stderr.strip()}"
            if reason:
                failed.append(f"{step.command or step.wait}: {reason}")
        return failed

    def judge_at_once(self, cases: Iterable[Case]) -> Iterator[Verdict]:
        """Run cases that change nothing, several at a time; yield what came of them, in order."""
        if AT_ONCE == 1:
            yield from (self._apart().judge(case) for case in cases)
            return
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(lambda case: self._apart().judge(case), cases)

    def _apart(self) -> _Player:
        """Return another who knows what this one captured, and captures for itself."""
        return _Player(self.site, dict(self.variables), {})

    def judge(self, case: Case) -> Verdict:
        """Run one case and say what came of it."""
        self.site.take_turn()
        before = dict(self.variables)
        if case.name in self.numbers:
            self.site.count_up(self.numbers[case.name])
        missing = _missing(case, self.site.commands)
        if missing:
            return _verdict(case, UNSUPPORTED, f"there is no {', '.join(missing)}")
        failed = self.prepare(case.setup)
        verdict = self._judged(case, failed)
        self.prepare(case.cleanup)
        self.variables = before
        return verdict

    def _judged(self, case: Case, failed: list[str]) -> Verdict:
        told = "".join(f"; setup: {each}" for each in failed)
        for step in case.steps:
            ran, reason = self.do(step)
            if ran is not None:
                if NOT_HONOURED in ran.stderr:
                    return _verdict(case, UNSUPPORTED, ran.stderr.strip())
                reason = differs(
                    step,
                    stdout=ran.stdout,
                    stderr=ran.stderr,
                    exit_code=ran.exit_code,
                    variables=self.variables,
                    recorded=case.vars,
                )
                if reason and ran.stderr and not step.stderr:
                    reason += f" ({ran.stderr.strip()})"
            if reason:
                return _verdict(case, FAIL, f"{step.command or step.wait}: {reason}{told}")
        return _verdict(case, PASS, "")


def _verdict(case: Case, verdict: str, detail: str) -> Verdict:
    return Verdict(name=case.name, family=case.family, verdict=verdict, detail=detail)


def _missing(case: Case, commands: frozenset[str]) -> list[str]:
    """Return the commands of Slurm that a case calls and that are not there."""
    words = {
        word
        for step in (*case.setup, *case.steps)
        for word in re.findall(r"[a-z]+", f"{step.command or ''} {step.wait or ''}")
    }
    return sorted((words & SLURM_COMMANDS) - commands)


def play(
    scene: Scene, cases: Iterable[Case], site: Site, say: Say
) -> tuple[list[Verdict], list[str]]:
    """Run a scene's cases in order; return the verdicts, and what failed of its setup."""
    cases = list(cases)
    player = _Player(site, {}, first_numbers(cases, scene.first_job_id))
    failed = player.set_up(scene.setup)
    for reason in failed:
        say(f"{scene.scene}: setup: {reason}")
    verdicts: list[Verdict] = []

    def changes(case: Case) -> bool:
        return not case.changes_nothing or case.name in player.numbers

    for is_alone, group in groupby(cases, key=changes):
        alike = list(group)
        for verdict in map(player.judge, alike) if is_alone else player.judge_at_once(alike):
            verdicts.append(verdict)
            say(f"{verdict.verdict:11} {verdict.name}  {verdict.detail}".rstrip())
    return verdicts, failed


def run_scene(
    scene: Scene,
    cases: Sequence[Case],
    *,
    cluster: Path,
    directory: Path,
    entry: Entry,
    keep: bool,
    say: Say,
) -> tuple[list[Verdict], list[str]]:
    """Bring up a scene's cluster, run its cases and end it."""
    site = Site(directory, cluster, entry)
    try:
        site.start(scene)
        return play(scene, cases, site, say)
    finally:
        if not keep:
            site.stop()
