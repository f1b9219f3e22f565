"""dask-jobqueue: workers as jobs; a task that fails, a worker that is killed, workers let go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import dask
from dask_jobqueue import SLURMCluster
from distributed import Client

dask.config.set({"distributed.scheduler.allowed-failures": 0})


def job_of_worker() -> str:
    return os.environ.get("SLURM_JOB_ID", "")


def fail() -> None:
    raise ValueError("on purpose")


def die() -> None:
    subprocess.run(["scancel", os.environ["SLURM_JOB_ID"]], check=True)
    time.sleep(60)


def queued() -> int:
    listed = subprocess.run(
        ["squeue", "-h", "-n", "dask-worker", "-o", "%i"], capture_output=True, check=True
    )
    return len(listed.stdout.split())


if __name__ == "__main__":
    cluster = SLURMCluster(
        queue="main",
        cores=1,
        memory="1GB",
        processes=1,
        walltime="00:05:00",
        interface="lo",
        python=sys.executable,
        log_directory="logs",
        local_directory="work",
    )
    with Client(cluster) as client:
        cluster.scale(jobs=1)
        seen = {
            "product": client.submit(pow, 6, 2).result(timeout=120),
            "in_job": client.submit(job_of_worker).result(timeout=60).isdigit(),
            "error": type(client.submit(fail).exception(timeout=60)).__name__,
            "killed": type(client.submit(die).exception(timeout=120)).__name__,
        }
        cluster.scale(0)
        for _ in range(240):
            if not queued():
                break
            time.sleep(0.25)
        seen["left"] = queued()
    cluster.close()
    print(json.dumps(seen))
