"""Names of output files, as a real Slurm 22.05 made them."""

from __future__ import annotations

import pytest

from spur.slurm.filenames import FileFacts, default_output, expand_pattern

FACTS = FileFacts(
    job_id=3328,
    array_id=3328,
    array_task=None,
    step=None,
    node="n1",
    node_place=0,
    task=0,
    user="u1",
    job_name="jn",
)

RECORDED = [
    (b"out-%j.txt", b"out-3328.txt"),
    (b"out-%J.txt", b"out-3328.txt"),
    (b"out-%A.txt", b"out-3328.txt"),
    (b"out-%A_%a.txt", b"out-3328_4294967294.txt"),
    (b"out-%N.txt", b"out-n1.txt"),
    (b"out-%n.txt", b"out-0.txt"),
    (b"out-%t.txt", b"out-0.txt"),
    (b"out-%u.txt", b"out-u1.txt"),
    (b"out-%s.txt", b"out-batch.txt"),
    (b"out-%b.txt", b"out-%b.txt"),
    (b"out-%%.txt", b"out-%.txt"),
    (b"out-%%%j", b"out-%3328"),
    (b"out-%4j.txt", b"out-3328.txt"),
    (b"out-%8j.txt", b"out-00003328.txt"),
    (b"out-%2j.txt", b"out-3328.txt"),
    (b"out-%0j.txt", b"out-3328.txt"),
    (b"out-%12j.txt", b"out-0000003328.txt"),
    (b"out-%10x.txt", b"out-jn.txt"),
    (b"out-%.txt", b"out-%.txt"),
    (b"out-%4a.txt", b"out-4294967294.txt"),
    (b"out-%3t.txt", b"out-000.txt"),
    (b"out-%j-%x-%u.txt", b"out-3328-jn-u1.txt"),
    (b"out-\\%j.txt", b"out-%j.txt"),
    (b"o-a\\\\\\\\b%j.txt", b"o-a\\\\b%j.txt"),
    (b"o-%12j-%010x-%3%-%-%z%4.txt", b"o-0000003328-jn-3%-%-%z4.txt"),
    (b"out put.txt", b"out put.txt"),
    (b"3", b"3"),
    (b"%", b"%"),
    (b"", b""),
]


@pytest.mark.parametrize(("pattern", "name"), RECORDED)
def test_patterns_of_a_batch_job(pattern: bytes, name: bytes) -> None:
    """Someone's script names its output as it always did."""
    assert expand_pattern(pattern, FACTS) == name


def test_patterns_of_array_tasks_and_steps() -> None:
    """Each task of an array, of a step, on each node, has a file of its own."""
    task = FACTS._replace(job_id=3330, array_task=7)
    assert expand_pattern(b"%A_%a-%4a", task) == b"3328_7-0007"
    assert expand_pattern(default_output(True), task) == b"slurm-3328_7.out"
    assert expand_pattern(default_output(False), FACTS) == b"slurm-3328.out"
    step = FACTS._replace(step=2, task=5, node="n3", node_place=1)
    assert expand_pattern(b"%J %j.%s %t %n %N", step) == b"3328.2 3328.2 5 1 n3"
