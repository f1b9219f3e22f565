"""batchspawner: the batch jobs of its Slurm spawner, without a hub round it."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

from batchspawner import SlurmSpawner


class Spawner(SlurmSpawner):
    """A spawner whose server is a command of ours."""

    script = ""

    def cmd_formatted_for_batch(self) -> str:
        return self.script

    def get_env(self) -> dict[str, str]:
        return dict(os.environ)


def spawner(script: str) -> Spawner:
    """Return a spawner for whoever runs this."""
    name = pwd.getpwuid(os.geteuid()).pw_name
    made = Spawner()
    made.user = SimpleNamespace(name=name, url="/", settings={}, escaped_name=name, id=1)
    made.exec_prefix = ""
    made.script = script
    made.req_partition = "main"
    made.req_runtime = "5"
    made.req_memory = "200"
    made.req_homedir = str(Path.cwd())
    made.req_srun = ""
    # The template's --get-user-env=L is for hubs that run as another user.
    made.batch_script = made.batch_script.replace("#SBATCH --get-user-env=L\n", "")
    return made


async def await_end(one: Spawner) -> int | None:
    for _ in range(240):
        status = await one.poll()
        if status is not None:
            break
        await asyncio.sleep(0.25)
    return status


async def main() -> tuple[str, dict[str, object]]:
    good, bad, lasting = spawner("echo 42"), spawner("exit 3"), spawner("sleep 300")
    for each in (good, bad, lasting):
        await each.submit_batch_script()
    for _ in range(240):
        await lasting.query_job_status()
        if lasting.state_isrunning():
            break
        await asyncio.sleep(0.25)
    running = [bool(lasting.state_isrunning()), lasting.state_gethost()]
    number = good.job_id
    ended = [await await_end(good), await await_end(bad)]
    await lasting.stop(now=True)
    seen = {
        "running": running,
        "ended": [status is not None for status in ended],
        "killed": await await_end(lasting) is not None,
    }
    return number, seen


number, seen = asyncio.run(main())
seen["said"] = "42" in Path(f"jupyterhub_slurmspawner_{number}.log").read_text()
print(json.dumps(seen))
