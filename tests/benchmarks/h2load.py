"""h2load (nghttp2's load generator, in C) as a client of etcd's KV.Put."""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.figures import percentile
from tests.benchmarks.load import put_request

__all__ = ["H2loadResult", "h2load_version", "run_h2load"]

_LOG_LINE = re.compile(r"^(\d+)\t(-?\d+)\t(\d+)$")


@dataclass(frozen=True, kw_only=True)
class H2loadResult:
    """What the measured seconds brought."""

    answered: int
    per_second: float
    p50_ms: float
    p99_ms: float
    max_ms: float


def h2load_version() -> str:
    """Return nghttp2's version. Raises: FileNotFoundError when h2load is not installed."""
    out = subprocess.run(["h2load", "--version"], capture_output=True, text=True, check=True)
    return out.stdout.strip().rsplit("/", 1)[-1]


def run_h2load(
    url: str, directory: Path, *, connections: int, streams: int, value_bytes: int, seconds: float
) -> H2loadResult:
    """Put one key again and again, with `streams` requests at once on each connection.

    Raises: RuntimeError when any request failed.
    """
    message = put_request(b"key-0000", bytes(48 + n % 10 for n in range(value_bytes)))
    body, log = directory / "put.grpc", directory / "h2load.log"
    # A gRPC message: not compressed, its length, its bytes. Source: gRPC over HTTP/2.
    body.write_bytes(struct.pack(">BI", 0, len(message)) + message)
    log.unlink(missing_ok=True)
    out = subprocess.run(
        [
            "h2load",
            f"--clients={connections}",
            f"--max-concurrent-streams={streams}",
            "--threads=1",
            f"--duration={seconds:g}",
            "--warm-up-time=1",
            f"--data={body}",
            f"--log-file={log}",
            "--header=content-type: application/grpc",
            "--header=te: trailers",
            f"{url}/etcdserverpb.KV/Put",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", out)
    if counts is None or any(int(count) for count in counts.groups()[1:]):
        raise RuntimeError(f"h2load did not run clean:\n{out}")
    answered = int(counts[1])
    took_us = sorted(
        int(match[3])
        for line in log.read_text().splitlines()
        if (match := _LOG_LINE.match(line)) is not None and match[2] == "200"
    )
    return H2loadResult(
        answered=answered,
        per_second=answered / seconds,
        p50_ms=percentile(took_us, 0.5) / 1e3,
        p99_ms=percentile(took_us, 0.99) / 1e3,
        max_ms=took_us[-1] / 1e3,
    )
