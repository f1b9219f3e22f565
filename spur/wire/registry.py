"""Every request and answer there is, as the unions that messages are decoded with.

A new subject is one line here. Static types are the bases; the decoder gets the union.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import msgspec

from spur.wire import cluster
from spur.wire.declare import ANSWERS, REQUESTS, Answer, Request

__all__ = [
    "SUBJECTS",
    "AnyAnswer",
    "AnyRequest",
    "decode_answer",
    "decode_request",
    "encode_answer",
    "encode_request",
]

SUBJECTS = (cluster,)
"""The files of this room that declare requests and answers."""

if TYPE_CHECKING:
    AnyRequest = Request
    AnyAnswer = Answer
else:
    AnyRequest = reduce(or_, REQUESTS.values())
    AnyAnswer = reduce(or_, ANSWERS.values())

_ENCODE = msgspec.msgpack.Encoder().encode
_REQUEST = msgspec.msgpack.Decoder(AnyRequest)
_ANSWER = msgspec.msgpack.Decoder(AnyAnswer)


def encode_request(request: Request) -> bytes:
    """Return the request's bytes."""
    return _ENCODE(request)


def decode_request(data: bytes) -> Request:
    """Return the request. Raises: msgspec.MsgspecError for anything else."""
    return _REQUEST.decode(data)


def encode_answer(answer: Answer) -> bytes:
    """Return the answer's bytes."""
    return _ENCODE(answer)


def decode_answer(data: bytes) -> Answer:
    """Return the answer. Raises: msgspec.MsgspecError for anything else."""
    return _ANSWER.decode(data)
