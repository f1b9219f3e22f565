"""What the jobs of a run do, and what they wrote down.

Each script adds lines to a file of its job, in the order in which things happen: `start RUN`,
`tick RUN` a few times, `step RUN` for each step that ran, `end RUN`. Two runs of one job that live
at the same time are seen by lines that take turns.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from spur.testing.chaos.plan import PlannedJob, Task

__all__ = ["Notes", "read_notes", "script_of", "write_srun"]

TICK_S = 0.25

EXIT_OF_FAILING = 3

_SCRIPT = """\
#!/bin/sh
run=${{SLURM_RESTART_COUNT:-0}}
note() {{ echo "$1 $run $SLURMD_NODENAME" >> {notes}/$SLURM_JOB_ID; }}
note start
{body}
note end
exit {status}
"""

_MAIN = "from spur_cli.main import main; raise SystemExit(main())"


@dataclass(frozen=True)
class Notes:
    """What one job wrote down."""

    lines: tuple[tuple[str, int], ...]
    """What, and of which run, oldest first."""

    def count(self, what: str, run: int) -> int:
        """Return how often a run wrote this."""
        return self.lines.count((what, run))

    @property
    def runs(self) -> list[int]:
        """The runs that wrote something, in the order of their first lines."""
        return list(dict.fromkeys(run for _, run in self.lines))

    def overlaps(self) -> list[int]:
        """Return the runs that wrote something after a later one had begun."""
        newest, late = -1, []
        for _, run in self.lines:
            if run < newest:
                late.append(run)
            newest = max(newest, run)
        return sorted(set(late))


def script_of(job: PlannedJob, notes: Path, bin_directory: Path) -> bytes:
    """Return the script of a job."""
    ticks = max(1, round(job.runs_s / TICK_S))
    body = f"for i in $(seq {ticks}); do sleep {TICK_S}; note tick; done"
    if job.task is Task.STEPS:
        srun = shlex.quote(str(bin_directory / "srun"))
        body += f"\n{srun} -n1 true && note step\n{srun} -n1 sleep 0.1 && note step"
    if job.task is Task.WIDE:
        srun = shlex.quote(str(bin_directory / "srun"))
        body += f"\n{srun} -N2 -n2 sleep 0.2 && note step"
    status = EXIT_OF_FAILING if job.task is Task.FAILING else 0
    text = _SCRIPT.format(notes=shlex.quote(str(notes)), body=body, status=status)
    return text.encode()


def read_notes(directory: Path) -> dict[int, Notes]:
    """Return what each job wrote down, by its id."""
    found = {}
    for path in directory.iterdir():
        words = [line.split() for line in path.read_text().splitlines()]
        found[int(path.name)] = Notes(tuple((word[0], int(word[1])) for word in words))
    return found


def write_srun(bin_directory: Path) -> None:
    """Write a command srun that runs with this very interpreter and these very sources."""
    bin_directory.mkdir()
    path = bin_directory / "srun"
    sources = ":".join(filter(None, (str(Path(each).absolute()) for each in sys.path if each)))
    path.write_text(
        "#!/bin/sh\n"
        f"PYTHONPATH={shlex.quote(sources)} exec {shlex.quote(sys.executable)} -c"
        f' {shlex.quote(_MAIN)} srun "$@"\n'
    )
    path.chmod(0o755)
