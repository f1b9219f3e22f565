"""Calls: each message comes back as it was, and what is none is refused with one sentence."""

from __future__ import annotations

import msgspec
import pytest

from spur.values.errors import PeerFault
from spur.wire.calls import (
    Answered,
    Call,
    Goodbye,
    Greeting,
    Refused,
    Reply,
    Welcome,
    decode_from_client,
    decode_from_replica,
    encode,
)

CALL = Call(
    number=7,
    request_id=b"r" * 16,
    since=40,
    incarnation=1,
    at_least=41,
    speaks_for=(1000, 100),
    request=b"\x91\x01",
)


@pytest.mark.parametrize("message", [Greeting(version=1, cluster_id=b""), CALL])
def test_client_messages_come_back_as_sent(message: Greeting | Call) -> None:
    """What a client says is what the replica hears."""
    assert decode_from_client(encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        Welcome(version=1, cluster_id=b"c" * 16, replica=1, incarnation=1, index=5),
        Reply(number=7, incarnation=1, index=42, outcome=Answered(answer=b"\x01")),
        Reply(number=8, incarnation=1, index=42, outcome=Refused(code="busy", text="too much")),
        Goodbye(code="protocol", text="garbage"),
    ],
)
def test_replica_messages_come_back_as_sent(message: Welcome | Reply | Goodbye) -> None:
    """What a replica says is what the client hears."""
    assert decode_from_replica(encode(message)) == message


@pytest.mark.parametrize(
    "changed",
    [
        {"request_id": b"short"},
        {"number": -1},
        {"since": 1 << 63},
        {"speaks_for": (0xFFFFFFFF, 0)},
        {"request": 5},
    ],
)
def test_call_with_a_bad_field_is_refused(changed: dict[str, object]) -> None:
    """A field out of its range is refused by its place, before anyone acts on the call."""
    fields = {name: getattr(CALL, name) for name in CALL.__struct_fields__} | changed
    data = msgspec.msgpack.encode([2, *fields.values()])
    with pytest.raises(PeerFault, match=r"^a call that cannot be read: .* at `\$\[\d"):
        decode_from_client(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"\x91" * 100_000, b"\x92\x01", b"\x93\x01\x01\xa2\xff\xff", encode(CALL)[:-1]],
    ids=["empty", "never-used", "deep", "few-fields", "not-utf8", "cut"],
)
def test_call_of_garbage_is_refused(data: bytes) -> None:
    """Bytes that are no message at all end in one sentence and not in a crash."""
    with pytest.raises(PeerFault, match=r"^a call that cannot be read: "):
        decode_from_client(data)


def test_sides_do_not_speak_each_others_messages() -> None:
    """A replica that is sent a reply, or a client that is sent a call, refuses it."""
    with pytest.raises(PeerFault, match=r"^a call that cannot be read"):
        decode_from_client(encode(Goodbye(code="protocol", text="x")))
    with pytest.raises(PeerFault, match=r"^a reply that cannot be read"):
        decode_from_replica(encode(CALL))
