"""aiida-core: its scheduler plug-in for Slurm, through its local transport."""

from __future__ import annotations

import json
import time
from pathlib import Path

from aiida.common.datastructures import CodeRunMode
from aiida.plugins import SchedulerFactory, TransportFactory
from aiida.schedulers.datastructures import JobTemplate, JobTemplateCodeInfo


def await_state(job_id: str, *wanted: str) -> str:
    for _ in range(240):
        found = scheduler.get_jobs(jobs=[job_id], as_dict=True).get(job_id)
        state = "gone" if found is None else found.job_state.value
        if state in wanted:
            break
        time.sleep(0.25)
    return state


def submit(name: str, words: list[str]) -> str:
    template = JobTemplate()
    template.shebang = "#!/bin/bash"
    template.job_name = name
    template.queue_name = "main"
    template.max_wallclock_seconds = 300
    template.sched_output_path = f"{name}.out"
    template.sched_error_path = f"{name}.err"
    template.job_resource = scheduler.create_job_resource(
        num_machines=1, num_mpiprocs_per_machine=1
    )
    code = JobTemplateCodeInfo()
    code.cmdline_params = words
    template.codes_info = [code]
    template.codes_run_mode = CodeRunMode.SERIAL
    Path(f"{name}.sh").write_text(scheduler.get_submit_script(template))
    return str(scheduler.submit_job(str(Path.cwd()), f"{name}.sh"))


scheduler = SchedulerFactory("core.slurm")()
transport = TransportFactory("core.local")(use_login_shell=False)
with transport:
    scheduler.set_transport(transport)
    good = submit("good", ["/bin/echo", "42"])
    bad = submit("bad", ["/bin/false"])
    lasts = submit("lasts", ["/bin/sleep", "300"])
    running = await_state(lasts, "running")
    was_killed = scheduler.kill_job(lasts)
    ended = [await_state(job, "done", "gone") for job in (good, bad, lasts)]
    details = []
    for job in (good, bad, lasts):
        told = scheduler.get_detailed_job_info(job)["stdout"].splitlines()
        record = dict(zip(told[0].split("|"), told[1].split("|"), strict=False))
        details.append([record["State"].split()[0], record["ExitCode"]])
    seen = {
        "running": running,
        "was_killed": bool(was_killed),
        "said": Path("good.out").read_text(),
        "ended": [state in ("done", "gone") for state in ended],
        "details": details,
    }
print(json.dumps(seen))
