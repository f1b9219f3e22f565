"""--test-only of sbatch and srun: when a job would start that is not submitted."""

from __future__ import annotations

import sys

from spur.slurm.timespec import format_moment
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.jobspec import JobSpec
from spur.wire.forecasts import ForecastJob, JobForecast
from spur.wire.partitions import ListPartitions, PartitionList
from spur_cli.slurm.people import LocalCalendar
from spur_cli.slurm.session import Session

__all__ = ["partitions_missing", "tell_forecast"]


def tell_forecast(session: Session, spec: JobSpec, *, is_quiet: bool) -> int:
    """Say when the job would start. Raises: SlurmError when it would be refused."""
    answer = session.ask(ForecastJob(spec), JobForecast)
    if isinstance(answer, Rejection):
        lines = partitions_missing(session, answer, spec)
        raise SlurmError(*lines, f"allocation failure: {sentence_of(answer)}")
    if not is_quiet:
        start = format_moment(answer.start_ns // 1_000_000_000, LocalCalendar(), empty="Unknown")
        sys.stderr.write(
            f"{session.program}: Job {answer.job_id} to start at {start} using {answer.cpus} "
            f"processors on nodes {answer.nodes} in partition {answer.partition}\n"
        )
    return 0


def partitions_missing(session: Session, refused: Rejection, spec: JobSpec) -> list[str]:
    """Return a line for each partition that there is not, if that is why a job was refused."""
    if refused.code != "unknown-partition":
        return []
    answer = session.ask(ListPartitions(), PartitionList)
    if isinstance(answer, Rejection):
        return []
    known = {partition.name for partition in answer.partitions}
    return [
        error_line(session.program, f"invalid partition specified: {name}")
        for name in spec.partitions
        if name not in known
    ]
