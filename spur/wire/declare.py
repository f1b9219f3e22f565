"""Declaring what goes over the wire: requests and answers, one struct each.

    @request
    class HoldJob(Request, frozen=True, tag="job.hold"):
        job_id: JobId

The tag is the request's name in envelopes, in the table of permissions and in messages.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from spur.values.errors import OperatorFault, PeerFault

__all__ = [
    "ANSWERS",
    "REQUESTS",
    "Answer",
    "Attachment",
    "Done",
    "Part",
    "Request",
    "answer",
    "decode_as",
    "encode_request",
    "name_of",
    "request",
]


class Request(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of everything that can be asked; subclasses carry a tag."""


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of everything that can be answered; subclasses carry a tag."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of every struct inside a request or an answer."""


class Attachment(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """Bytes that ride beside a request and lie outside the log."""

    name: str
    content: bytes


ENCODE = msgspec.msgpack.Encoder().encode
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""What a decoder raises for bytes that are not what they should be."""

REQUESTS: dict[str, type[Request]] = {}
ANSWERS: dict[str, type[Answer]] = {}

Q = TypeVar("Q", bound=type[Request])
A = TypeVar("A", bound=type[Answer])


def _register(registry: dict[str, Any], cls: Any) -> None:
    tag = cls.__struct_config__.tag
    if not isinstance(tag, str):
        raise ValueError(f"{cls.__name__} needs a tag: a name such as 'job.hold'")
    if tag in registry:
        raise ValueError(f"{tag!r} is declared twice")
    registry[tag] = cls


def request(cls: Q) -> Q:
    """Register a class of requests under its tag."""
    _register(REQUESTS, cls)
    return cls


def answer(cls: A) -> A:
    """Register a class of answers under its tag."""
    _register(ANSWERS, cls)
    return cls


def encode_request(request: Request) -> bytes:
    """Return the request's bytes. Raises: OperatorFault for a number that none of them holds."""
    try:
        return ENCODE(request)
    except OverflowError as error:
        raise OperatorFault(
            f"a number beyond 64 bits stands in {name_of(type(request))!r}; nothing was done"
        ) from error


W = TypeVar("W", bound=Answer)


def decode_as(data: bytes, expected: type[W]) -> W:
    """Return an answer of the class that is expected. Raises: PeerFault for anything else.

    It needs no other class: a command imports only what it asks for.
    """
    try:
        return msgspec.msgpack.decode(data, type=expected)
    except UNREADABLE as error:
        raise PeerFault(f"this is no {expected.__name__} that can be read: {error}") from error


def name_of(cls: type[Request]) -> str:
    """Return the tag of a class of requests."""
    tag = cls.__struct_config__.tag
    if not isinstance(tag, str):
        raise TypeError(f"{cls.__name__} has no tag")
    return tag


@answer
class Done(Answer, frozen=True, tag="done"):
    """The request was executed; there is nothing else to say."""
