"""job-queue-exporter: what a Prometheus server would scrape of squeue's lines."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request

from job_queue_exporter import main_exporter
from prometheus_client import start_http_server

FORMAT = "%A,%j,%a,%g,%u,%P,%v,%D,%C,%T,%V,%M"
ports: list[int] = []


def serve(_: int) -> None:
    """Serve on a free port: the exporter's own may be somebody else's here."""
    server, _thread = start_http_server(0, addr="127.0.0.1")
    ports.append(server.server_port)


def submit(script: str) -> str:
    done = subprocess.run(
        ["sbatch", "--parsable", "-o", "/dev/null", "-A", "exporter", "--wrap", script],
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def scraped() -> dict[str, float]:
    """Return the jobs of the account by their states."""
    with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if line.startswith("squeue_jobs{") and 'slurm_group="exporter"' in line:
            found[line.split('job_type="')[1].split('"')[0]] = float(line.rsplit(" ", 1)[1])
    return found


def await_states(*wanted: str) -> dict[str, float]:
    for _ in range(120):
        found = scraped()
        if set(wanted) <= set(found):
            break
        time.sleep(0.5)
    return found


main_exporter.start_http_server = serve
main_exporter.UPDATE_PERIOD = 1
sys.argv = ["main_exporter", "-c", f"squeue --all -t all -h --format={FORMAT}"]
lasts = submit("sleep 300")
submit("exit 3")
threading.Thread(target=main_exporter.main, daemon=True).start()
while not ports:
    time.sleep(0.1)
seen = {"first": await_states("RUNNING", "FAILED")}
subprocess.run(["scancel", lasts], check=True)
seen["then"] = await_states("CANCELLED")
print(json.dumps({name: sorted(states) for name, states in seen.items()}))
