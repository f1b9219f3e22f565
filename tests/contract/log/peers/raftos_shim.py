"""The least that lets raftos 0.2.6 (2017) run on a Python of today.

Nothing of its algorithm is touched: two names that asyncio removed, and its serializer.
"""

from __future__ import annotations

import asyncio
import types

import raftos
from raftos import serializers, server

__all__ = ["raftos"]


def _queue_without_loop(loop: object = None) -> asyncio.Queue[object]:
    return asyncio.Queue()


# Each node makes asyncio.Queue(loop=...); the keyword went in Python 3.10.
_asyncio = types.ModuleType("asyncio_of_raftos")
_asyncio.__dict__.update(vars(asyncio))
_asyncio.__dict__["Queue"] = _queue_without_loop
server.asyncio = _asyncio

# A follower's first apply catches asyncio.futures.InvalidStateError, which moved in Python 3.8.
if not hasattr(asyncio.futures, "InvalidStateError"):
    vars(asyncio.futures)["InvalidStateError"] = asyncio.InvalidStateError

# Its default, msgpack, asks for a keyword that msgpack 1.0 removed, and before that could not read
# back its own log either: entries are separated by newlines, which packed bytes may contain.
raftos.configure({"serializer": serializers.JSONSerializer})
