"""psij-python: jobs through its Slurm executor, and what it makes of their states."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState
from psij.executors.batch.slurm import SlurmExecutorConfig

config = SlurmExecutorConfig(
    launcher_log_file=None,
    work_directory=Path.cwd() / "work",
    queue_polling_interval=1,
    initial_queue_polling_delay=1,
)
executor = JobExecutor.get_instance("slurm", config=config)


def submit(name: str, script: str) -> Job:
    spec = JobSpec(
        name=name,
        executable="/bin/sh",
        arguments=["-c", script],
        directory=Path.cwd(),
        stdout_path=Path.cwd() / f"{name}.out",
        attributes=JobAttributes(duration=timedelta(minutes=5), queue_name="main"),
    )
    job = Job(spec)
    executor.submit(job)
    return job


good, bad, lasting = (
    submit(name, script)
    for name, script in (("good", "echo $((6 * 7))"), ("bad", "exit 3"), ("lasts", "sleep 300"))
)
patience = timedelta(seconds=90)
ended = [good.wait(patience), bad.wait(patience)]
running = lasting.wait(patience, target_states=[JobState.ACTIVE])
lasting.cancel()
cancelled = lasting.wait(patience)
seen = {
    "states": [status and status.state.name for status in (*ended, running, cancelled)],
    "exit": bad.status.exit_code,
    "said": (Path.cwd() / "good.out").read_text(),
}
print(json.dumps(seen))
