"""submitit: functions as jobs, an array, an exception, a job that is cancelled."""

from __future__ import annotations

import json
import time

import submitit


def divide(number: int, by: int) -> float:
    return number / by


def await_state(job: submitit.Job, *states: str) -> str:
    for _ in range(240):
        state = str(job.get_info(mode="force").get("State", "")).split(" ")[0]
        if state in states:
            break
        time.sleep(0.25)
    return state


executor = submitit.AutoExecutor(folder="log/%j", cluster="slurm")
executor.update_parameters(timeout_min=5, slurm_partition="main", cpus_per_task=1, mem_gb=1)

squares = executor.map_array(pow, [2, 3, 4], [2, 2, 2])
fails = executor.submit(divide, 1, 0)
lasts = executor.submit(time.sleep, 300)
seen = {
    "failed": await_state(fails, "FAILED", "COMPLETED"),
    "running": await_state(lasts, "RUNNING"),
    "squares": [job.result() for job in squares],
    "error": type(fails.exception()).__name__,
    "says": "ZeroDivisionError" in str(fails.exception()),
}
lasts.cancel()
seen["killed"] = await_state(lasts, "CANCELLED")
print(json.dumps(seen))
