"""Directives of other batch systems in a script: #PBS and #BSUB lines, as options of sbatch.

    #PBS -l nodes=2:ppn=4,walltime=00:10:00     ->  --nodes=2 --ntasks-per-node=4 --time=00:10:00
    #BSUB -J lsf                                ->  --job-name=lsf

What sbatch has no option for is passed over, as Slurm does.

Source: sbatch(1) --ignore-pbs; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from spur.slurm.directives import directive_lines, directive_words

__all__ = ["foreign_words"]

_PBS = {
    "-A": "account",
    "-a": "begin",
    "-e": "error",
    "-N": "job-name",
    "-o": "output",
    "-q": "partition",
    "-t": "array",
    "-J": "array",
    "-M": "mail-user",
}

_PBS_FLAGS = {"-h": "hold"}

_BSUB = {
    "-e": "error",
    "-i": "input",
    "-J": "job-name",
    "-n": "ntasks",
    "-o": "output",
    "-P": "account",
    "-q": "partition",
    "-W": "time",
    "-w": "dependency",
}

_BSUB_FLAGS = {"-x": "exclusive", "-H": "hold"}

_RESOURCES = {
    "walltime": "time",
    "mem": "mem",
    "ncpus": "mincpus",
    "mppwidth": "ntasks",
    "mppnppn": "ntasks-per-node",
    "mppdepth": "cpus-per-task",
    "nice": "nice",
}


def foreign_words(script: str) -> list[str]:
    """Return options of sbatch for the lines of other batch systems."""
    words: list[str] = []
    for line in directive_lines(script, "#PBS"):
        words += _translated(directive_words(line), _PBS, _PBS_FLAGS)
    for line in directive_lines(script, "#BSUB"):
        words += _translated(directive_words(line), _BSUB, _BSUB_FLAGS)
    return words


def _translated(words: list[str], table: dict[str, str], flags: dict[str, str]) -> Iterator[str]:
    queue = list(words)
    while queue:
        word = queue.pop(0)
        letter, glued = word[:2], word[2:]
        if letter in flags:
            yield f"--{flags[letter]}"
        elif letter in table or (letter == "-l" and table is _PBS):
            value = glued or (queue.pop(0) if queue else "")
            if letter == "-l":
                yield from _resources(value)
            elif value:
                yield f"--{table[letter]}={value}"


def _resources(text: str) -> Iterator[str]:
    """Yield options for what #PBS -l lists."""
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key == "nodes":
            nodes, *properties = value.split(":")
            if nodes.isdigit():
                yield f"--nodes={nodes}"
            for each in properties:
                name, _, count = each.partition("=")
                if name == "ppn" and count:
                    yield f"--ntasks-per-node={count}"
        elif key in _RESOURCES and value:
            yield f"--{_RESOURCES[key]}={value}"
