"""Asks the survivors of a killed leader until one accepts, and says when that was.

A process of its own, started before the kill: it connects, prints `ready`, waits for a line, then
sends an append to every survivor each 10 ms, without waiting for the earlier ones (a request may
hang on a leader that is gone), and prints the monotonic clock at the first acceptance.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from tests.benchmarks.load import Put, add_target_options, open_target, payload, read_target

_PERIOD_S = 0.01
_ASK_SECONDS_MAX = 3.0


async def probe(options: argparse.Namespace) -> float:
    """Return the monotonic time at which a survivor first accepted. Raises: TimeoutError."""
    data = payload(options.bytes)
    puts = [await open_target(read_target(options, address), data) for address in options.address]
    if options.target == "etcd":
        # A channel connects only when it is used.
        await asyncio.gather(*(put() for put in puts))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    accepted: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    asked: set[asyncio.Task[None]] = set()

    async def ask(put: Put) -> None:
        try:
            await asyncio.wait_for(put(), _ASK_SECONDS_MAX)
        except Exception:  # any refusal or loss: the next one asks again
            return
        if not accepted.done():
            accepted.set_result(time.monotonic())

    async with asyncio.timeout(options.seconds):
        while not accepted.done():
            asked |= {asyncio.ensure_future(ask(put)) for put in puts}
            asked = {task for task in asked if not task.done()}
            await asyncio.sleep(_PERIOD_S)
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    return accepted.result()


def main() -> None:
    """Run one probe and print the time."""
    parser = argparse.ArgumentParser(description="ask until a survivor accepts")
    add_target_options(parser)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    print(f"{asyncio.run(probe(parser.parse_args())):.6f}", flush=True)


if __name__ == "__main__":
    main()
