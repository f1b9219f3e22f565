"""Reading everything again, a little at a time: damage is found before anybody needs the bytes.

A round goes over each segment of the ledger and then over each blob. All of it runs in the ledger
lane. What is found is told once, and fetched from peers by whoever called.

Source: LOG-CONTRACT 5.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from spur.consensus.blobs import BlobStore
from spur.consensus.ledger import Ledger

__all__ = ["STEP_BYTES", "Scrub"]

STEP_BYTES = 4 << 20
"""Bytes of blobs read in one step; a step over the ledger reads one segment."""


class _Stores(Protocol):
    @property
    def ledger(self) -> Ledger: ...

    @property
    def blobs(self) -> BlobStore: ...


class Scrub:
    """A walk over the stores of one replica that never ends."""

    def __init__(self, stores: _Stores, tell: Callable[[str], None]) -> None:
        self._stores = stores
        self._tell = tell
        self._segments: deque[int] = deque()
        self._blobs: deque[bytes] = deque()
        self._told: set[str] = set()
        self.rounds = 0
        """Rounds that were begun since the start."""

    def step(self) -> list[bytes]:
        """Read on a little; return the digests of blobs that were found damaged.

        Damaged segments are in the ledger's `damages` afterwards.
        """
        ledger = self._stores.ledger
        damaged: list[bytes] = []
        if not self._segments and not self._blobs:
            self.rounds += 1
            self._segments.extend(ledger.numbers)
            self._blobs.extend(self._stores.blobs.held())
        if self._segments:
            ledger.check(self._segments.popleft())
        else:
            damaged = self._check_blobs()
        for damage in ledger.damages:
            self._tell_once(str(damage))
        for digest in damaged:
            self._tell_once(
                f"the attachment {digest.hex()[:16]} is damaged; it is to be repaired from a peer"
            )
        return damaged

    def _check_blobs(self) -> list[bytes]:
        left, blobs = STEP_BYTES, self._stores.blobs
        while self._blobs and left > 0:
            digest = self._blobs.popleft()
            blob = blobs.get(digest)
            left -= len(blob or b"") + 1
            if blob is None and digest in blobs.damaged:
                return [digest]
        return []

    def _tell_once(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._tell(sentence)
