"""Figures as they are published: one JSON line each for programs, one table for people."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "Figure",
    "describe_machine",
    "file_system",
    "percentile",
    "print_figures",
    "sync_time_us",
]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured thing of one subject, over all its runs."""

    name: str
    subject: str
    """What was measured, with its version and client."""
    unit: str
    values: tuple[float, ...]
    """One value a run, in the order of the runs."""
    conditions: dict[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The middle value; the mean of the middle two of an even count."""
        return statistics.median(self.values)


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed."""
    rank = -int(-len(sorted_values) * share // 1)
    return sorted_values[max(0, rank - 1)]


def describe_machine(directory: Path) -> str:
    """Return processor, cores, memory, kernel, file system of `directory`, Python, and the load.

    The load is that of the last minute: over a few tenths, others shared the machine.
    """
    processor = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (
        f"{os.cpu_count()} cores of {processor}, {memory_gib:.0f} GiB, "
        f"Linux {platform.release()}, {file_system(directory)}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def file_system(directory: Path) -> str:
    """Return the kind of file system that holds `directory`."""
    best, kind = "", "unknown file system"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, fs_type = line.split()[:3]
        if directory.resolve().is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, fs_type
    return kind


def sync_time_us(directory: Path, count: int = 200) -> tuple[float, float]:
    """Return median and 99th percentile of writing 4 KiB into a zeroed file and syncing it."""
    path = directory / "sync-probe"
    took_us = []
    with path.open("wb") as file:
        file.write(bytes(4096 * count))
        os.fsync(file.fileno())
        for number in range(count):
            file.seek(4096 * number)
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            took_us.append((time.perf_counter() - start) * 1e6)
    path.unlink()
    took_us.sort()
    return percentile(took_us, 0.5), percentile(took_us, 0.99)


def print_figures(figures: Sequence[Figure], machine: str) -> None:
    """Print the JSON lines to standard output and the table to standard error."""
    date = datetime.datetime.fromtimestamp(time.time(), datetime.UTC).date().isoformat()
    command = shlex.join(["ops/bench", Path(sys.argv[0]).stem, *sys.argv[1:]])
    for figure in figures:
        line = {
            "figure": figure.name,
            "subject": figure.subject,
            "unit": figure.unit,
            "runs": len(figure.values),
            "min": _rounded(min(figure.values)),
            "median": _rounded(figure.median),
            "max": _rounded(max(figure.values)),
            **figure.conditions,
            "date": date,
            "machine": machine,
            "command": command,
        }
        print(json.dumps(line), flush=True)
    print(_table(figures), file=sys.stderr)
    print(f"\n{date}, {machine}\n{command}", file=sys.stderr)


def progress(text: str) -> None:
    """Tell who waits for the figures how far they are, on standard error."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _rounded(value: float) -> float:
    return round(value, 3) if abs(value) < 100 else round(value)


def _table(figures: Sequence[Figure]) -> str:
    rows = [["figure", "subject", "unit", "runs", "min", "median", "max"]]
    for figure in figures:
        low, high = min(figure.values), max(figure.values)
        numbers = [f"{_rounded(value):,}" for value in (low, figure.median, high)]
        rows.append([figure.name, figure.subject, figure.unit, str(len(figure.values)), *numbers])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
