"""--json and --yaml: what tools read instead of columns."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from spur.testing.machine import MachineCluster


@pytest.fixture(scope="module")
def job(cluster: MachineCluster) -> Iterator[int]:
    """Yield the number of a job that runs."""
    made = cluster.shell(
        "sbatch --parsable -J told -w c01 -n2 -t 9 -o /dev/null --wrap='sleep 500'"
    ).strip()
    cluster.wait_for(f"squeue -h -j {made} -o %T", "RUNNING\n")
    yield int(made)
    cluster.shell(f"scancel {made}")


def told(cluster: MachineCluster, command: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(cluster.shell(command))
    assert document["errors"] == []
    assert document["meta"]["plugin"]["data_parser"] == "data_parser/v0.0.41"
    return document


def test_a_job_of_the_queue(cluster: MachineCluster, job: int) -> None:
    """A tool reads the state, the nodes and the times of a job by their names."""
    [row] = told(cluster, f"squeue -j {job} --json")["jobs"]
    assert (row["job_id"], row["name"], row["job_state"]) == (job, "told", ["RUNNING"])
    assert (row["nodes"], row["node_count"]["number"], row["tasks"]["number"]) == ("c01", 1, 2)
    assert row["time_limit"] == {"set": True, "infinite": False, "number": 9}
    assert abs(row["start_time"]["number"] - time.time()) < 300
    assert row["job_resources"]["nodes"]["allocation"][0]["cpus"]["count"] == 2
    assert row["standard_output"] == "/dev/null"
    [same] = told(cluster, f"scontrol show job {job} --json")["jobs"]
    assert {**same, "cluster": ""} == {**row, "cluster": ""}


def test_states_alone(cluster: MachineCluster, job: int) -> None:
    """A tool that polls asks for no more than it needs."""
    [row] = told(cluster, f"squeue -j {job} --only-job-state --json")["jobs"]
    assert (row["job_id"], row["state"]) == (job, ["RUNNING"])
    said = cluster.shell(f"squeue -h -j {job} --only-job-state")
    assert said.split() == [str(job), "RUNNING"]


def test_yaml_says_the_same(cluster: MachineCluster, job: int) -> None:
    """Another tool wants YAML, in which every text is quoted."""
    said = cluster.shell(f"squeue -j {job} --yaml")
    assert said.startswith("---\njobs:\n  - account: ")
    assert f"\n    job_id: {job}\n" in said
    assert '\n    name: "told"\n' in said


def test_nodes_and_partitions(cluster: MachineCluster) -> None:
    """A dashboard adds up CPUs and GPUs."""
    nodes = told(cluster, "scontrol show nodes --json")["nodes"]
    assert sum(node["cpus"] for node in nodes) == 4 * 16 + 4 * 64
    [g01] = [node for node in nodes if node["name"] == "g01"]
    assert (g01["gres"], g01["partitions"]) == ("gpu:a100:4", ["gpu"])
    names = [row["name"] for row in told(cluster, "scontrol show partition --json")["partitions"]]
    assert names == ["cpu", "gpu"]
    rows = told(cluster, "sinfo --json")["sinfo"]
    assert sum(row["nodes"]["total"] for row in rows) == 8
    assert {row["partition"]["name"] for row in rows} == {"cpu", "gpu"}


def test_records_and_counts(cluster: MachineCluster, job: int) -> None:
    """An accountant reads what ended, an exporter how busy the controller is."""
    done = cluster.shell("sbatch -W --parsable -o /dev/null --wrap='exit 3' || true").strip()
    cluster.wait_for(f"sacct -n -X -P -j {done} -o State", "FAILED\n")
    [row] = told(cluster, f"sacct -j {done} --json")["jobs"]
    assert row["state"]["current"] == ["FAILED"]
    assert row["exit_code"]["return_code"]["number"] == 3
    assert [step["step"]["name"] for step in row["steps"]] == ["batch", "extern"]
    counts = told(cluster, "sdiag --json")["statistics"]
    assert counts["jobs_submitted"] >= 2
    assert "REQUEST_SUBMIT_BATCH_JOB" in {
        call["message_type"] for call in counts["rpcs_by_message_type"]
    }


def test_versions_that_there_are(cluster: MachineCluster) -> None:
    """A tool asks for the shape that it was written for."""
    assert told(cluster, "squeue --json=v0.0.41")
    said = cluster.shell("squeue --json=v0.0.1 2>&1 || echo rc=$?")
    assert said == "squeue: error: Unable to find data_parser plugin: v0.0.1\nrc=1\n"


def test_times_are_spelled_as_asked(cluster: MachineCluster, job: int) -> None:
    """Somebody's shell sets SLURM_TIME_FORMAT."""
    show = f"squeue -h -j {job} -o %S"
    assert cluster.shell(f"SLURM_TIME_FORMAT=%s {show}").strip().isdigit()
    assert cluster.shell(f"SLURM_TIME_FORMAT=relative {show}").count(":") == 2
    assert "T" in cluster.shell(f"SLURM_TIME_FORMAT=standard {show}")
