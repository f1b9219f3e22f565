"""Attachments become blobs: what the log keeps of them tells nothing about them."""

from __future__ import annotations

import hashlib
import os

from spur.controller.attachments import NOISE_SIZE, blobs_of
from spur.testing.hall import submission
from spur.wire.cluster import ShowCluster


def test_blob_is_random_bytes_and_then_the_content() -> None:
    """A job is submitted with a script, an environment and its text."""
    request = submission()
    refs, blobs = blobs_of(request, lambda size: b"\x07" * size)
    assert [ref.name for ref in refs] == ["script", "environment", "text"]
    for ref, blob, attachment in zip(refs, blobs, request.attachments, strict=True):
        assert blob == b"\x07" * NOISE_SIZE + attachment.content
        assert ref.size == len(attachment.content)
        assert ref.digest == hashlib.sha256(blob).digest()


def test_same_script_twice_has_two_digests() -> None:
    """Two users submit one script: the log does not tell that it is the same."""
    first, _ = blobs_of(submission(), os.urandom)
    second, _ = blobs_of(submission(), os.urandom)
    assert {ref.digest for ref in first} & {ref.digest for ref in second} == set()


def test_guessed_content_cannot_be_found_by_its_digest() -> None:
    """Somebody who has the ledger guesses an erased script: its plain digest is nowhere."""
    request = submission()
    refs, _ = blobs_of(request, os.urandom)
    guesses = {hashlib.sha256(item.content).digest() for item in request.attachments}
    assert guesses & {ref.digest for ref in refs} == set()


def test_request_without_attachments_has_none() -> None:
    """Somebody asks how the cluster is."""
    assert blobs_of(ShowCluster(), os.urandom) == ((), ())
