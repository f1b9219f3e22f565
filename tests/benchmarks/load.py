"""The Python client of the raw-log figure: one asyncio process, N tasks, one request each at once.

It is the same loop for every subject; only `open_target` differs. It runs in a process of its own,
so that no server shares an interpreter with it:

    python -m tests.benchmarks.load --target etcd --address 127.0.0.1:2379 --ca authority.pem
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from spur.testing.edge import EdgeClient
from tests.benchmarks.figures import percentile

Put = Callable[[], Awaitable[object]]

_ETCD_KEYS = 1000
"""Keys that the etcd client writes in turn; a log has no keys, so this only must not be one."""


async def open_target(target: str, address: str, authority: Path | None, data: bytes) -> Put:
    """Return a function that appends `data` once on its own connection and waits for the answer."""
    if target == "etcd":
        return _open_etcd(address, authority, data)
    host, port = address.rsplit(":", 1)
    tls = None if authority is None else ssl.create_default_context(cafile=authority)
    client = await EdgeClient.connect(host, int(port), tls)
    return lambda: client.append(data)


def _open_etcd(address: str, authority: Path | None, data: bytes) -> Put:
    import grpc

    # Without this option all channels of a process share one connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    if authority is None:
        channel = grpc.aio.insecure_channel(address, options=options)
    else:
        roots = grpc.ssl_channel_credentials(authority.read_bytes())
        channel = grpc.aio.secure_channel(address, roots, options=options)
    put = channel.unary_unary("/etcdserverpb.KV/Put")
    requests = [put_request(b"key-%04d" % number, data) for number in range(_ETCD_KEYS)]
    turn = 0

    async def put_next() -> None:
        nonlocal turn
        turn = (turn + 1) % _ETCD_KEYS
        await put(requests[turn])

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
    """Load the target and return counts, rate and latencies of the measured seconds."""
    data = bytes(48 + number % 10 for number in range(options.bytes))
    puts = [
        await open_target(options.target, options.address, options.ca, data)
        for _ in range(options.connections)
    ]
    took_s: list[float] = []
    failures: dict[str, int] = {}
    clock = time.perf_counter
    begin = clock() + options.warm_up
    end = begin + options.seconds

    async def client(put: Put) -> None:
        while (sent := clock()) < end:
            try:
                await put()
            except Exception as failure:  # counted by kind, and the run is void if there is any
                name = f"{type(failure).__name__}: {failure}"[:200]
                failures[name] = failures.get(name, 0) + 1
                await asyncio.sleep(0.01)
            else:
                if begin <= sent and (answered := clock()) <= end:
                    took_s.append(answered - sent)

    await asyncio.gather(*(client(puts[n % len(puts)]) for n in range(options.clients)))
    if failures or not took_s:
        raise SystemExit(f"load: {len(took_s)} answered, failures: {failures}")
    took_s.sort()
    return {
        "answered": len(took_s),
        "per_second": len(took_s) / options.seconds,
        "p50_ms": percentile(took_s, 0.5) * 1e3,
        "p99_ms": percentile(took_s, 0.99) * 1e3,
        "max_ms": took_s[-1] * 1e3,
    }


def main() -> None:
    """Run one load and print its result as one JSON line."""
    parser = argparse.ArgumentParser(description="load one log with appends")
    parser.add_argument("--target", choices=("edge", "etcd"), required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--ca", type=Path, help="authority of the server's certificate; with TLS")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--warm-up", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    options = parser.parse_args()
    factory = uvloop.new_event_loop if options.loop == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        print(json.dumps(runner.run(run(options))))


if __name__ == "__main__":
    main()
