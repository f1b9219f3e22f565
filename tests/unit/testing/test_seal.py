"""The seal round the pure rooms: it lets pure work through and stops everything else."""

from __future__ import annotations

import datetime
import hashlib
import os
import random
import secrets
import socket
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from spur.testing.purity import Impure
from spur.testing.seal import sealed


@pytest.mark.parametrize(
    "act",
    [
        time.time,
        time.monotonic_ns,
        random.random,
        lambda: random.Random(1).randrange(5),
        lambda: random.choice("ab"),
        lambda: os.urandom(4),
        lambda: secrets.token_bytes(4),
        lambda: os.environ.__class__ and os.getpid(),
        lambda: socket.socket(),
        lambda: open("/dev/null"),  # noqa: SIM115  # it never opens
        datetime.datetime.now,  # noqa: TID251  # what the seal must stop
        datetime.date.today,  # noqa: TID251  # what the seal must stop
        lambda: datetime.datetime.fromtimestamp(0),  # noqa: DTZ006  # on purpose
        uuid.uuid4,
        lambda: time.sleep(0),
    ],
)
def test_the_seal_stops_impure_calls(act: Callable[[], Any]) -> None:
    """Someone reaches a clock, a random source or a file by some way."""
    with pytest.raises(Impure), sealed():
        act()


def test_the_seal_stops_seeded_builtins_in_pure_rooms() -> None:
    """A pure room derives something from hash(), which differs from process to process."""
    code = compile("hash('node')", "planted", "eval")
    with pytest.raises(Impure, match=r"spur\.projections\.planted called builtins\.hash"), sealed():
        eval(code, {"__name__": "spur.projections.planted"})


def test_the_seal_lets_pure_work_through() -> None:
    """Hashing, encoding and sorting are what the pure rooms live of."""
    with sealed():
        data = msgspec.msgpack.encode(sorted([3, 1, 2]))
        digest = hashlib.sha256(data).hexdigest()
        moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).isoformat()
    assert (len(digest), moment) == (64, "2026-01-01T00:00:00+00:00")
    assert time.time() > 0


def test_the_seal_ends_with_its_block() -> None:
    """After a breach the rest of the tests run as usual."""
    with pytest.raises(Impure), sealed():
        time.time()
    assert time.time() > 0
