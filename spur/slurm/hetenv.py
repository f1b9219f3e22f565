"""The variables by which the script of a het job knows its components.

    SLURM_HET_SIZE=2
    SLURM_JOB_NODELIST_HET_GROUP_0=n4   SLURM_JOB_NODELIST_HET_GROUP_1=n6

The former names, with PACK in the place of HET, are there as well. A script of any other job finds
none of them, whatever its submission exported.

Source: Slurm's guide to heterogeneous jobs; environments recorded from Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spur.slurm.jobenv import BatchFacts, batch_environment

__all__ = ["het_environment", "is_of_het_job"]

_OF_COMPONENT = (
    b"SLURM_JOB_ACCOUNT",
    b"SLURM_JOB_CPUS_PER_NODE",
    b"SLURM_JOB_ID",
    b"SLURM_JOB_NAME",
    b"SLURM_JOB_NODELIST",
    b"SLURM_JOB_NUM_NODES",
    b"SLURM_JOB_PARTITION",
    b"SLURM_JOB_QOS",
    b"SLURM_JOB_RESERVATION",
    b"SLURM_MEM_PER_CPU",
    b"SLURM_MEM_PER_NODE",
    b"SLURM_NPROCS",
    b"SLURM_NTASKS",
    b"SLURM_TASKS_PER_NODE",
)

_WORDS = (b"HET", b"PACK")


def is_of_het_job(name: bytes) -> bool:
    """Whether a variable tells of the components of a het job."""
    return name.startswith(b"SLURM_") and any(
        name == b"SLURM_%s_SIZE" % word or b"_%s_GROUP_" % word in name for word in _WORDS
    )


def het_environment(components: Sequence[BatchFacts]) -> dict[bytes, bytes]:
    """Return the variables of a het job with these components; none for a job that is none."""
    if not components:
        return {}
    found = {b"SLURM_%s_SIZE" % word: b"%d" % len(components) for word in _WORDS}
    for offset, facts in enumerate(components):
        found.update(_of_component(offset, batch_environment(facts).items()))
    return found


def _of_component(
    offset: int, variables: Iterable[tuple[bytes, bytes | None]]
) -> dict[bytes, bytes]:
    return {
        b"%s_%s_GROUP_%d" % (name, word, offset): value
        for name, value in variables
        if name in _OF_COMPONENT and value is not None
        for word in _WORDS
    }
