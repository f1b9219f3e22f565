"""Every request and answer there is, as the unions that messages are decoded with.

A new subject is one line here. Static types are the bases; the decoder gets the union.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import msgspec

from spur.values.errors import PeerFault
from spur.wire import (
    accounts,
    agents,
    cluster,
    controllers,
    crontabs,
    factors,
    forecasts,
    history,
    jobs,
    joining,
    licenses,
    nodes,
    partitions,
    runs,
    statistics,
    steps,
    texts,
    why,
)
from spur.wire.declare import ANSWERS, ENCODE, REQUESTS, UNREADABLE, Answer, Request

__all__ = [
    "SUBJECTS",
    "AnyAnswer",
    "AnyRequest",
    "UnreadableRequest",
    "decode_answer",
    "decode_request",
    "encode_answer",
]

SUBJECTS = (
    accounts,
    agents,
    cluster,
    controllers,
    crontabs,
    factors,
    forecasts,
    history,
    jobs,
    joining,
    licenses,
    nodes,
    partitions,
    runs,
    statistics,
    steps,
    texts,
    why,
)
"""The files of this room that declare requests and answers."""

if TYPE_CHECKING:
    AnyRequest = Request
    AnyAnswer = Answer
else:
    AnyRequest = reduce(or_, REQUESTS.values())
    AnyAnswer = reduce(or_, ANSWERS.values())

_REQUEST = msgspec.msgpack.Decoder(AnyRequest)
_ANSWER = msgspec.msgpack.Decoder(AnyAnswer)


class UnreadableRequest(PeerFault):
    """Bytes that are no request of this release."""


def decode_request(data: bytes) -> Request:
    """Return the request. Raises: UnreadableRequest for anything else."""
    try:
        return _REQUEST.decode(data)
    except UNREADABLE as error:
        raise UnreadableRequest(f"the request cannot be read: {error}") from error


def encode_answer(answer: Answer) -> bytes:
    """Return the answer's bytes."""
    return ENCODE(answer)


def decode_answer(data: bytes) -> Answer:
    """Return the answer. Raises: PeerFault for anything else."""
    try:
        return _ANSWER.decode(data)
    except UNREADABLE as error:
        raise PeerFault(f"the answer cannot be read: {error}") from error
