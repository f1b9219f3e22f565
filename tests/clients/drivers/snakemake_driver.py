"""snakemake with its slurm executor: rules as jobs; one that fails, and one that is cancelled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RULES = """\
rule good:
    output: "good.txt"
    resources: runtime=5, mem_mb=200
    shell: "echo $((6 * 7)) > {output}; test -n \\"$SLURM_JOB_ID\\""

rule bad:
    output: "bad.txt"
    resources: runtime=5, mem_mb=200
    shell: "exit 3"

rule killed:
    output: "killed.txt"
    resources: runtime=5, mem_mb=200
    shell: "scancel $SLURM_JOB_ID; sleep 60"
"""

Path("Snakefile").write_text(RULES)
environment = os.environ | {"XDG_CACHE_HOME": f"{os.getcwd()}/cache", "HOME": os.getcwd()}


command = [
    str(Path(sys.executable).parent / "snakemake"),
    *("--executor", "slurm", "--jobs", "3", "--cores", "1"),
    *("--default-resources", "slurm_partition=main", "slurm_account=root"),
    *("--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "20"),
    # Asked through sacct, it waits for ever for a job that is "CANCELLED by" somebody.
    *("--slurm-status-command", "squeue"),
    *("--nolock", "--keep-going", "good.txt", "bad.txt", "killed.txt"),
]
done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
says = done.stdout + done.stderr
sys.stderr.write(says)
seen = {
    "exit": done.returncode,
    "said": Path("good.txt").read_text() if Path("good.txt").exists() else "",
    "failed": "FAILED" in says,
    "cancelled": "CANCELLED" in says,
}
print(json.dumps(seen))
