"""parsl: functions on workers in a block that it submits; blocks that fail and are cancelled."""

from __future__ import annotations

import json
import time

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher, SrunLauncher
from parsl.providers import SlurmProvider


def provider(launcher: object) -> SlurmProvider:
    return SlurmProvider(
        partition="main",
        nodes_per_block=1,
        cores_per_node=1,
        init_blocks=1,
        max_blocks=1,
        walltime="00:05:00",
        launcher=launcher,
        exclusive=False,
    )


config = Config(
    executors=[
        HighThroughputExecutor(
            label="htex",
            address="127.0.0.1",
            max_workers_per_node=1,
            provider=provider(SrunLauncher()),
        )
    ],
    strategy=None,
    run_dir="runinfo",
)


@parsl.python_app
def multiply(one: int, other: int) -> int:
    import os

    return one * other if os.environ.get("SLURM_JOB_ID") else 0


@parsl.python_app
def fail() -> None:
    raise ValueError("on purpose")


def state_of(block: SlurmProvider, job_id: str, *wanted: str) -> str:
    for _ in range(240):
        state = block.status([job_id])[0].state.name
        if state in wanted:
            return state
        time.sleep(0.25)
    return state


with parsl.load(config):
    product = multiply(6, 7).result(timeout=120)
    error = type(fail().exception(timeout=120)).__name__

alone = provider(SimpleLauncher())
alone.script_dir = "."
bad = alone.submit("exit 3", 1)
lasting = alone.submit("sleep 300", 1)
seen = {
    "product": product,
    "error": error,
    "failed": state_of(alone, bad, "FAILED", "COMPLETED"),
    "running": state_of(alone, lasting, "RUNNING"),
}
alone.cancel([lasting])
seen["killed"] = state_of(alone, lasting, "CANCELLED", "COMPLETED")
print(json.dumps(seen))
