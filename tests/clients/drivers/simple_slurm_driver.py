"""simple-slurm: scripts as jobs, squeue read as CSV, scancel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from simple_slurm import Slurm


def until(test: Callable[[], bool], patience_s: int = 60) -> bool:
    end_s = time.monotonic() + patience_s
    while not test():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.2)
    return True


slurm = Slurm("--partition", "main", "-c", 1, output="%j.out", time="00:05:00", job_name="simple")
good = slurm.sbatch("echo $((6 * 7)); echo $SLURM_CPUS_PER_TASK")
until(lambda: Path(f"{good}.out").exists() and Path(f"{good}.out").read_text().count("\n") == 2)

failing = Slurm(partition="main", output="%j.out", job_name="fails")
status = 0
try:
    failing.srun("sh -c 'exit 3'")
except Exception as error:
    status = error.returncode

lasting = slurm.sbatch("sleep 300")
slurm.squeue.update_squeue()
until(
    lambda: (slurm.squeue.update_squeue(), slurm.squeue.jobs.get(lasting, {}).get("ST") == "R")[1]
)
running = {key: slurm.squeue.jobs[lasting][key] for key in ("NAME", "ST", "NODES", "CPUS")}
slurm.scancel.cancel_job(lasting)
gone = until(lambda: (slurm.squeue.update_squeue(), lasting not in slurm.squeue.jobs)[1])

seen = {
    "said": Path(f"{good}.out").read_text().split(),
    "status": status,
    "running": running,
    "gone": gone,
}
seen["exit"] = seen.pop("status")
print(json.dumps(seen))
