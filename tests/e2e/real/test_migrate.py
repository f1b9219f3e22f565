"""`spur migrate check` says of people's scripts what submitting them says."""

from __future__ import annotations

import json
from pathlib import Path

from spur.testing.machine import MachineCluster

SCRIPTS = {
    "long-and-short.sh": "#SBATCH --job-name=fit01\n#SBATCH -N 1\n#SBATCH --ntasks=2\n"
    "#SBATCH -t 00:05:00\n#SBATCH -o /dev/null\nsrun hostname\n",
    "after-blank-lines.sh": "\n# set up by alice\n\n#SBATCH --time=2:00:00\n#SBATCH --mem=2G\n"
    "module load gcc\n#SBATCH --mem=60G\n",
    "comment-behind.sh": "#SBATCH --time=10   # ten minutes\n#SBATCH -c 4 # cores\ntrue\n",
    "several-glued.sh": "#SBATCH -N2 -n8 -t30 -pgpu --gres=gpu:1\nsrun -l hostname\n",
    "unknown-option.sh": "#SBATCH --gpu-count=2\ntrue\n",
    "of-pbs.sh": "#PBS -N oldjob\n#PBS -l walltime=00:07:00\necho $SLURM_JOB_NAME\n",
    "array.sh": '#SBATCH -a 1-3\nIN=$(sed -n "${SLURM_ARRAY_TASK_ID}p" inputs.txt)\n',
    "array-beyond.sh": "#SBATCH -a 1-2000\ntrue\n",
    "typed-gpus.sh": "#SBATCH -p gpu --gres=gpu:v100:2 -N 1\necho $SLURM_JOB_GPUS\n",
    "count-left-out.sh": "#SBATCH -p gpu --gres=gpu:a100\ntrue\n",
    "no-such-kind.sh": "#SBATCH -p gpu --gres=gpu:h100:1\ntrue\n",
    "gpus-elsewhere.sh": "#SBATCH -p cpu --gres=gpu:1\ntrue\n",
    "per-gpu.sh": "#SBATCH -p gpu -G 2 --cpus-per-gpu=4 --mem-per-gpu=8G\ntrue\n",
    "no-such-partition.sh": "#SBATCH -p nosuch\ntrue\n",
    "no-such-feature.sh": "#SBATCH -C nosuch\ntrue\n",
    "one-rack.sh": '#SBATCH -N 2 -C "[rack1|rack2]"\ntrue\n',
    "picks.sh": "#SBATCH -w c01 -x c02\ntrue\n",
    "no-such-node.sh": "#SBATCH -w z99\ntrue\n",
    "too-long.sh": "#SBATCH -t 3-00:00:00\ntrue\n",
    "bad-time.sh": "#SBATCH -t abc\ntrue\n",
    "too-much-memory.sh": "#SBATCH --mem=900G\ntrue\n",
    "two-memories.sh": "#SBATCH --mem=1G --mem-per-cpu=1G\ntrue\n",
    "open-quote.sh": '#SBATCH -J "my job\ntrue\n',
    "a-word.sh": "#SBATCH hello\ntrue\n",
    "singleton.sh": "#SBATCH -J nightly -d singleton\ndate\n",
    "bad-signal.sh": "#SBATCH --signal=NOSUCH@60\ntrue\n",
    "warned.sh": "#SBATCH --signal=B:USR1@60 --requeue --open-mode=append\ntrue\n",
    "het.sh": "#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2\nsrun hostname\n",
    "begins-later.sh": "#SBATCH -b now+1hour\ntrue\n",
    "bb.sh": "#SBATCH --bb=capacity=1G\ntrue\n",
}

WHOLE = {
    "python.sh": b"#!/usr/bin/env python3\n#SBATCH -n 1 -t 2\nimport os\nprint(os.getpid())\n",
    "dos.sh": b"#!/bin/bash\r\n#SBATCH -n 1\r\nhostname\r\n",
    "no-interpreter.sh": b"hostname\n",
    "empty.sh": b"",
}


def test_verdicts_are_those_of_submitting(cluster: MachineCluster, tmp_path: Path) -> None:
    """An administrator checks four hundred scripts before the move, and believes the table."""
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}")
    for name, content in WHOLE.items():
        (tmp_path / name).write_bytes(content)
    conf = cluster.directory.parent / "slurm.conf"
    check = f"spur migrate check . --conf {conf} --json 2>/dev/null || true"
    said = json.loads(cluster.shell(check, cwd=tmp_path))
    verdicts = {row["name"]: row["verdict"] != "fails" for row in said["scripts"]}
    submit = "sbatch --parsable -o /dev/null"
    lines = "\n".join(
        f"{submit} {name} >>ids 2>/dev/null && echo {name} 1 || echo {name} 0"
        for name in sorted((*SCRIPTS, *WHOLE))
    )
    taken = cluster.shell(lines, cwd=tmp_path)
    cluster.shell("scancel $(cat ids) 2>/dev/null || true", cwd=tmp_path)
    really = {line.split()[0]: line.endswith("1") for line in taken.splitlines()}
    assert {name: verdicts[name] for name in really} == really
    assert len(set(really.values())) == 2
    ask = f"spur migrate check . --conf {conf} --ask --json 2>/dev/null || true"
    asked = json.loads(cluster.shell(ask, cwd=tmp_path))
    assert {row["name"]: row["verdict"] for row in asked["scripts"]} == {
        row["name"]: row["verdict"] for row in said["scripts"]
    }
