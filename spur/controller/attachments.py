"""Attachments: what a request carries becomes blobs beside the entry.

A blob begins with 16 random bytes, so that the digest in the log tells nothing about a short or
guessable text once the blob is erased. Source: LOG-CONTRACT 2.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from spur.events.envelope import AttachmentRef
from spur.wire.declare import Request

__all__ = ["NOISE_SIZE", "Noise", "blobs_of"]

Noise = Callable[[int], bytes]
"""Random bytes of this many; the shell's, never the state's."""

NOISE_SIZE = 16


def blobs_of(request: Request, noise: Noise) -> tuple[tuple[AttachmentRef, ...], tuple[bytes, ...]]:
    """Return references and blobs of the request's attachments, in its order."""
    attachments = getattr(request, "attachments", ())
    blobs = tuple(noise(NOISE_SIZE) + attachment.content for attachment in attachments)
    refs = tuple(
        AttachmentRef(attachment.name, len(attachment.content), hashlib.sha256(blob).digest())
        for attachment, blob in zip(attachments, blobs, strict=True)
    )
    return refs, blobs
