"""executorlib with pysqa: functions as jobs; what pysqa sees of jobs that fail and are killed."""

from __future__ import annotations

import json
import os
import time

from executorlib import SlurmClusterExecutor
from pysqa import QueueAdapter

TEMPLATE = """\
#!/bin/bash
#SBATCH --output=time.out
#SBATCH --job-name={{job_name}}
#SBATCH --chdir={{working_directory}}
#SBATCH --partition=main
#SBATCH --time=5
#SBATCH --cpus-per-task={{cores}}

{{command}}
"""


def multiply(one: int, other: int) -> int:
    return one * other if os.environ.get("SLURM_JOB_ID") else 0


def fail() -> None:
    raise ValueError("on purpose")


def await_status(queue: QueueAdapter, job_id: int, *wanted: object) -> object:
    for _ in range(240):
        status = queue.get_status_of_job(process_id=job_id)
        if status in wanted:
            break
        time.sleep(0.25)
    return status


if __name__ == "__main__":
    resources = {"submission_template": TEMPLATE, "cores": 1}
    with SlurmClusterExecutor(cache_directory="cache", resource_dict=resources) as executor:
        product = executor.submit(multiply, 6, 7).result()
        error = executor.submit(fail).exception()
    queue = QueueAdapter(queue_type="SLURM")
    jobs = []
    for name, command in (("bad", "exit 3"), ("lasts", "sleep 300")):
        os.makedirs(name, exist_ok=True)
        jobs.append(
            queue.submit_job(
                job_name=name,
                working_directory=os.path.abspath(name),
                cores=1,
                command=command,
                submission_template=TEMPLATE,
            )
        )
    seen = {
        "product": product,
        "error": type(error).__name__,
        "failed": await_status(queue, jobs[0], "error", None),
        "running": await_status(queue, jobs[1], "running"),
    }
    queue.delete_job(process_id=jobs[1])
    seen["killed"] = await_status(queue, jobs[1], "error", None)
    print(json.dumps(seen))
