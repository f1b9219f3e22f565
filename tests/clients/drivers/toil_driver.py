"""toil: a workflow whose jobs are Slurm's; one that fails, and one that is cancelled."""

from __future__ import annotations

import json
import os
import subprocess
import time

from toil.common import Toil
from toil.exceptions import FailedJobsException
from toil.job import Job


def multiply(job: Job, one: int, other: int) -> int:
    return one * other if os.environ.get("SLURM_JOB_ID") else 0


def add(job: Job, *numbers: int) -> int:
    return sum(numbers)


def workflow(job: Job) -> object:
    products = [job.addChildJobFn(multiply, 6, number, disk="10M").rv() for number in (3, 4)]
    return job.addFollowOnJobFn(add, *products, disk="10M").rv()


def fail(job: Job) -> None:
    raise ValueError("on purpose")


def die(job: Job) -> None:
    subprocess.run(["scancel", os.environ["SLURM_JOB_ID"]], check=True)
    time.sleep(60)


def run(name: str, function: object) -> object:
    options = Job.Runner.getDefaultOptions(f"file:{os.getcwd()}/{name}")
    options.batchSystem = "slurm"
    options.slurm_partition = "main"
    options.retryCount = 0
    options.clean = "always"
    options.defaultMemory = 500 << 20
    options.defaultDisk = 10 << 20
    options.statePollingWait = 2
    options.logLevel = "ERROR"
    try:
        with Toil(options) as toil:
            return toil.start(Job.wrapJobFn(function, disk="10M", memory="200M"))
    except FailedJobsException as error:
        return type(error).__name__


if __name__ == "__main__":
    seen = {
        "sum": run("good", workflow),
        "failed": run("bad", fail),
        "killed": run("killed", die),
    }
    print(json.dumps(seen))
