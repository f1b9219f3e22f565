"""What becomes of each parameter of a site's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spur.migrate.report import ParameterReport
from spur.slurm.configfile import check_slurm_config
from spur.slurm.parameters import Verdict
from spur.values.config import ConfigFile

__all__ = ["BESIDE", "MISSING", "check_parameters"]

BESIDE = {
    "cgroup.conf": "no cgroups are made for jobs: limits of memory are for placement alone",
    "job_submit.lua": "no script looks at submissions: check them in the site's own wrapper",
    "plugstack.conf": "no SPANK plugins are loaded",
    "acct_gather.conf": "use is not measured",
    "slurmdbd.conf": "records come from the log: there is no database daemon",
}
"""Files beside slurm.conf that nobody reads, and what that means."""

MISSING = {
    "Epilog": "nothing runs on a node after a job",
    "EpilogSlurmctld": "nothing runs on a controller after a job",
    "HealthCheckProgram": "nodes are not checked by a program",
    "JobSubmitPlugins": BESIDE["job_submit.lua"],
    "PlugStackConfig": BESIDE["plugstack.conf"],
    "PreemptType": "no job is preempted",
    "PriorityType": "jobs start by partition tier, fixed priority, nice and submission",
    "Prolog": "nothing runs on a node before a job",
    "PrologSlurmctld": "nothing runs on a controller before a job",
    "ResumeProgram": "nodes are not powered up on demand",
    "SuspendProgram": "nodes are not powered down",
    "TaskEpilog": "nothing runs after a task",
    "TaskProlog": "nothing runs before a task",
}
"""Parameters that ask for something which users or administrators would miss."""

_WORDS = {
    Verdict.HONOURED: "honoured",
    Verdict.NOT_YET: "ignored",
    Verdict.UNKNOWN: "wrong",
    Verdict.WRONG: "wrong",
}


def check_parameters(
    files: Sequence[ConfigFile], beside: Sequence[ConfigFile]
) -> tuple[tuple[ParameterReport, ...], tuple[str, ...]]:
    """Return a report of every parameter, and why a cluster would refuse the files.

    `beside` are files of slurm.conf's directory that no cluster is given.
    """
    checked = check_slurm_config(files)
    found = []
    for each in checked.findings:
        verdict, note = _WORDS[each.verdict], each.note
        if each.verdict is Verdict.NOT_YET and each.name in MISSING:
            verdict, note = "missing", MISSING[each.name]
        found.append(
            ParameterReport(each.file, each.line, each.of, each.name, each.value, verdict, note)
        )
    for file in beside:
        found += _of_other(file)
    return tuple(found), checked.errors


def _of_other(file: ConfigFile) -> Iterator[ParameterReport]:
    """Yield the parameters of a file that nobody reads, or the file itself."""
    why = BESIDE[file.name]
    verdict = "ignored" if file.name == "slurmdbd.conf" else "missing"
    if not file.name.endswith(".conf"):
        yield ParameterReport(file.name, 1, "", file.name, "", verdict, why)
        return
    for number, line in enumerate(file.text.split("\n"), 1):
        name, equals, value = line.partition("#")[0].partition("=")
        if equals and name.strip():
            shown = "(secret)" if "pass" in name.lower() else value.strip()
            yield ParameterReport(file.name, number, "", name.strip(), shown, verdict, why)
