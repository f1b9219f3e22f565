"""Options of heterogeneous jobs: which belong to one component, and where the next begins.

    sbatch -A chem -n1 --mem=200 : -n2 script    two components, both of account chem
    #SBATCH hetjob                               the next component's directives follow

Source: sbatch(1), srun(1); Slurm's guide to heterogeneous jobs; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.slurm.layers import Layer
from spur.slurm.optionrows import Option
from spur.slurm.submission import Settings

__all__ = ["BETWEEN", "OLD_NAME", "inherited", "shared_options", "split_components"]

BETWEEN = ":"
"""The word of a command line between two components."""

_DIRECTIVE = "hetjob"

OLD_NAME = "packjob"
"""How the directive was called before."""

OWN_OPTIONS = frozenset(
    {
        "batch",
        "constraint",
        "contiguous",
        "core-spec",
        "cores-per-socket",
        "cpus-per-gpu",
        "cpus-per-task",
        "distribution",
        "exclusive",
        "extra-node-info",
        "gpu-bind",
        "gpu-freq",
        "gpus",
        "gpus-per-node",
        "gpus-per-socket",
        "gpus-per-task",
        "gres",
        "gres-flags",
        "hint",
        "licenses",
        "mem-bind",
        "mem-per-cpu",
        "mem-per-gpu",
        "mincpus",
        "nodefile",
        "nodelist",
        "nodes",
        "ntasks",
        "ntasks-per-core",
        "ntasks-per-gpu",
        "ntasks-per-node",
        "ntasks-per-socket",
        "overcommit",
        "oversubscribe",
        "partition",
        "prefer",
        "sockets-per-node",
        "spread-job",
        "switches",
        "thread-spec",
        "threads-per-core",
        "tmp",
        "use-min-nodes",
        "wrap",
    }
)
"""Options of one component alone. All others go on with the components that follow, and what the
command line says of them anywhere is what the first component begins with."""


def split_components(words: list[str]) -> tuple[list[list[str]], bool]:
    """Return the words of each component's directives, and whether the old name parted them."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word in (_DIRECTIVE, OLD_NAME):
            parts.append([])
        else:
            parts[-1].append(word)
    return parts, OLD_NAME in words


def shared_options(lines: Sequence[Layer], options: tuple[Option, ...]) -> Settings:
    """Return what the command line says anywhere that is no component's own."""
    found = Settings({}, {})
    for line in lines:
        found = inherited(found, Settings(line.values, line.given), options)
    return inherited(found, Settings({}, {}), options)


def inherited(former: Settings, own: Settings, options: tuple[Option, ...]) -> Settings:
    """Return a component's options: its own, over what goes on from the component before."""
    fields = {row.field for row in options if row.long not in OWN_OPTIONS}
    values = {field: value for field, value in former.values.items() if field in fields}
    given = {long: text for long, text in former.given.items() if long not in OWN_OPTIONS}
    return Settings({**values, **own.values}, {**given, **own.given})
