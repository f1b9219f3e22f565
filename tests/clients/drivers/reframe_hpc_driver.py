"""reframe-hpc: tests as jobs with its Slurm scheduler and srun; what its report says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SETTINGS = """\
site_configuration = {
    "systems": [
        {
            "name": "demo",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "main",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["-p main"],
                    "environs": ["builtin"],
                }
            ],
        }
    ],
    "environments": [{"name": "builtin"}],
}
"""

CHECKS = """\
import reframe as rfm
import reframe.utility.sanity as sn


class Base(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    time_limit = "5m"
    num_tasks = 2

    @sanity_function
    def ended_well(self):
        said = sn.count(sn.findall("42", self.stdout))
        return sn.all([sn.assert_eq(self.job.exitcode, 0), sn.assert_eq(said, 2)])


@rfm.simple_test
class Good(Base):
    executable = "echo"
    executable_opts = ["42"]


@rfm.simple_test
class Bad(Base):
    executable = "false"


@rfm.simple_test
class Killed(Base):
    prerun_cmds = ["scancel $SLURM_JOB_ID", "sleep 60"]
    executable = "echo"
    executable_opts = ["42"]
"""

Path("settings.py").write_text(SETTINGS)
Path("checks.py").write_text(CHECKS)
reframe = Path(sys.executable).parent / "reframe"
done = subprocess.run(
    [reframe, "-C", "settings.py", "-c", "checks.py", "-r", "--report-file", "report.json"],
    stdout=sys.stderr,
    check=False,
)
report = json.loads(Path("report.json").read_text())
cases = [case for run in report["runs"] for case in run["testcases"]]
seen = {
    "exit": done.returncode,
    "results": {case["name"]: case["result"] for case in cases},
    "phases": {case["name"]: case["fail_phase"] for case in cases},
    "nodes": sum(str(case["job_nodelist"]).count("c") for case in cases if case["name"] == "Good"),
}
print(json.dumps(seen))
