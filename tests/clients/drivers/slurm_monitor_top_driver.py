"""slurm-monitor-top, a terminal viewer: what it reads of squeue, sinfo and scontrol."""

from __future__ import annotations

import json
import subprocess
import time

from slurm_top.data import collect_job_info, fetch_job, parse_sinfo, parse_squeue
from slurm_top.export import snapshot


def submit(*words: str) -> str:
    done = subprocess.run(["sbatch", "--parsable", *words], capture_output=True, check=True)
    return done.stdout.decode().strip()


def await_state(job_id: str, wanted: str | None) -> str | None:
    for _ in range(240):
        job = fetch_job(job_id)
        state = None if job is None else job.state
        if state == wanted:
            break
        time.sleep(0.25)
    return state


lasts = submit("-J", "seen", "-p", "gpu", "--gres=gpu:2", "-c2", "--wrap", "sleep 300")
bad = submit("-o", "bad.out", "--wrap", "exit 3")
running = await_state(lasts, "RUNNING")
job = next(job for job in parse_squeue() if job.job_id == lasts)
node = next(node for node in parse_sinfo() if node.name == job.node_list)
_, detail, _ = collect_job_info(lasts)
whole = snapshot()
subprocess.run(["scancel", lasts], check=True)
seen = {
    "running": running,
    "job": [job.partition, job.name, job.nodes, job.ncpus, job.node_list],
    "gpus": "gres/gpu" in job.gpus,
    "node": [node.state, node.cpus_total, node.cpus_alloc, node.cpus_idle],
    "detail": detail["JobState"],
    "snapshot": [len(whole["nodes"]), lasts in [each["job_id"] for each in whole["jobs"]]],
    "killed": await_state(lasts, None),
    "failed": await_state(bad, None),
}
print(json.dumps(seen))
