"""GPUs: a count left out, kinds, and none at all."""

from __future__ import annotations

from pathlib import Path

from spur.testing.machine import MachineCluster


def test_count_left_out_is_one(cluster: MachineCluster, tmp_path: Path) -> None:
    """One of any kind, or one of this kind."""
    any_kind = "sbatch --wait --parsable -p gpu --gres=gpu -o any --wrap='echo $SLURM_GPUS_ON_NODE'"
    cluster.shell(any_kind, cwd=tmp_path)
    assert (tmp_path / "any").read_text() == "1\n"
    kind = "sbatch --wait --parsable -p gpu --gres=gpu:a100 -o /dev/null --wrap=true"
    job = cluster.shell(kind, cwd=tmp_path).strip()
    told = cluster.shell(f"sacct -n -X -P -j {job} -o AllocTRES,NodeList").strip()
    assert "gres/gpu:a100=1,gres/gpu=1" in told
    assert told.endswith(("|g01", "|g02"))


def test_gpus_are_counted_and_shown(cluster: MachineCluster, tmp_path: Path) -> None:
    """Two of a kind on a node that has them; the job is told of them."""
    show = "echo $CUDA_VISIBLE_DEVICES,$SLURM_GPUS_ON_NODE"
    two = "sbatch --wait --parsable -p gpu -o two --gres=gpu:v100:2"
    job = cluster.shell(f"{two} --wrap='{show}'", cwd=tmp_path).strip()
    assert (tmp_path / "two").read_text() == "0,1,2\n"
    assert cluster.shell(f"squeue -h -t all -j {job} -o %b") == "gres:gpu:v100:2\n"


def test_job_without_gpus_sees_none(cluster: MachineCluster, tmp_path: Path) -> None:
    """Whatever its submitter saw."""
    none = "CUDA_VISIBLE_DEVICES=0 sbatch --wait -p gpu -o bare"
    cluster.shell(f"{none} --wrap='echo [$CUDA_VISIBLE_DEVICES]' >/dev/null", cwd=tmp_path)
    assert (tmp_path / "bare").read_text() == "[]\n"
