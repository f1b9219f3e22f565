"""The Python client of the raw-log figure: one asyncio process, N tasks, one request each at once.

It is the same loop for every subject; only `open_target` differs. It runs in a process of its own,
so that no server shares an interpreter with it:

    python -m tests.benchmarks.load --target etcd --address 127.0.0.1:2379 --ca authority.pem
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import uvloop

from spur.testing.edge import EdgeClient
from tests.benchmarks.figures import percentile

Put = Callable[[], Awaitable[object]]

_ETCD_KEYS = 1000
"""Keys that the etcd client writes in turn; a log has no keys, so this only must not be one."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server that takes appends, and how to trust it."""

    kind: str
    """edge | etcd."""
    address: str
    authority: Path | None = None
    """The authority of its certificate; None means without TLS."""
    identity: Path | None = None
    """Our own key and certificate in one file, where the server asks for one."""

    def arguments(self) -> list[str]:
        """Return the command line that names this target."""
        named = {"--ca": self.authority, "--identity": self.identity}
        argv = ["--target", self.kind, "--address", self.address]
        return argv + [part for flag, path in named.items() if path for part in (flag, str(path))]


async def open_target(target: Target, data: bytes, keys: int = _ETCD_KEYS) -> Put:
    """Return a function that appends `data` once on its own connection and waits for the answer.

    Raises: OSError when an edge cannot be reached; etcd's client only says so at the first call.
    """
    if target.kind == "etcd":
        return _open_etcd(target, data, keys)
    tls = None
    if target.authority is not None and target.identity is not None:
        from spur.client.tls import TlsFiles, client_context

        tls = client_context(TlsFiles(target.authority, target.identity))
    host, port = target.address.rsplit(":", 1)
    client = await EdgeClient.connect(host, int(port), tls)
    return lambda: client.append(data)


_etcd_turn = itertools.count()
"""Which key comes next: one row for all connections, so that they differ."""


def _open_etcd(target: Target, data: bytes, keys: int) -> Put:
    import grpc

    # Without this option all channels of a process share one connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    if target.authority is None:
        channel = grpc.aio.insecure_channel(target.address, options=options)
    else:
        roots = grpc.ssl_channel_credentials(target.authority.read_bytes())
        channel = grpc.aio.secure_channel(target.address, roots, options=options)
    put = channel.unary_unary("/etcdserverpb.KV/Put")

    async def put_next() -> None:
        await put(put_request(b"key-%07d" % (next(_etcd_turn) % keys), data))

    return put_next


def put_request(key: bytes, value: bytes) -> bytes:
    """Encode etcd's PutRequest. Source: etcd rpc.proto, fields key = 1 and value = 2."""
    return b"\x0a" + _varint(len(key)) + key + b"\x12" + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


async def run(options: argparse.Namespace) -> dict[str, float]:
    """Load the target and return counts, rate and latencies of the measured time."""
    data = payload(options.bytes)
    target = read_target(options)
    keys = max(_ETCD_KEYS, options.count)
    puts = [await open_target(target, data, keys) for _ in range(options.connections)]
    took_s: list[float] = []
    failures: dict[str, int] = {}
    clock = time.perf_counter
    begin = clock() + options.warm_up
    end = begin + options.seconds
    tickets = iter(range(options.count)) if options.count else itertools.count()

    async def client(put: Put) -> None:
        while (sent := clock()) < end and next(tickets, None) is not None:
            try:
                await put()
            except Exception as failure:  # any failure voids the run; its kind is told
                name = f"{type(failure).__name__}: {failure}"[:200]
                failures[name] = failures.get(name, 0) + 1
                await asyncio.sleep(0.01)
            else:
                answered = clock()
                if begin <= sent and answered <= end:
                    took_s.append(answered - sent)

    await asyncio.gather(*(client(puts[n % len(puts)]) for n in range(options.clients)))
    if failures or not took_s:
        raise SystemExit(f"load: {len(took_s)} answered, failures: {failures}")
    took_s.sort()
    return {
        "answered": len(took_s),
        "per_second": len(took_s) / (min(clock(), end) - begin),
        "p50_ms": percentile(took_s, 0.5) * 1e3,
        "p99_ms": percentile(took_s, 0.99) * 1e3,
        "max_ms": took_s[-1] * 1e3,
    }


def payload(size: int) -> bytes:
    """Return `size` bytes that no engine finds remarkable."""
    return bytes(48 + number % 10 for number in range(size))


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a target."""
    parser.add_argument("--target", choices=("edge", "etcd"), required=True)
    parser.add_argument("--address", action="append", required=True)
    parser.add_argument("--ca", type=Path, help="authority of the server's certificate; with TLS")
    parser.add_argument("--identity", type=Path, help="our key and certificate, in one file")


def read_target(options: argparse.Namespace, address: str = "") -> Target:
    """Return the target that the options name, at the only address or at this one."""
    return Target(
        kind=options.target,
        address=address or options.address[0],
        authority=options.ca,
        identity=options.identity,
    )


def main() -> None:
    """Run one load and print its result as one JSON line."""
    parser = argparse.ArgumentParser(description="load one log with appends")
    add_target_options(parser)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--warm-up", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--count", type=int, default=0, help="end after so many appends as well")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    options = parser.parse_args()
    factory = uvloop.new_event_loop if options.loop == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        print(json.dumps(runner.run(run(options))))


if __name__ == "__main__":
    main()
