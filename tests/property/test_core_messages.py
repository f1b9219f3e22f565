"""Messages between replicas: read back as they were, and garbage is a peer's fault."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.consensus import messages as messages_module
from spur.consensus.messages import (
    Append,
    AppendReply,
    BarrierAsk,
    BarrierTell,
    Heartbeat,
    HeartbeatReply,
    Message,
    PreVote,
    PreVoteReply,
    SnapshotChunk,
    SnapshotReply,
    TimeoutNow,
    Vote,
    VoteReply,
    decode_messages,
    encode_messages,
)
from spur.events.envelope import Entry
from spur.values.errors import PeerFault

KINDS = (
    PreVote,
    PreVoteReply,
    Vote,
    VoteReply,
    Append,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    SnapshotChunk,
    SnapshotReply,
    TimeoutNow,
    BarrierAsk,
    BarrierTell,
)

numbers = st.integers(0, 2**63 - 1)
entries = st.lists(
    st.builds(
        Entry, numbers, numbers, st.integers(0, 2), st.binary(max_size=20), st.just((b"blob",))
    ),
    max_size=3,
).map(tuple)


def one_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    values = {"bool": st.booleans(), "bytes": st.binary(max_size=30), "Entry": entries}
    fields = {}
    for field in msgspec.structs.fields(kind):
        name = next((name for name in values if name in str(field.type)), "")
        fields[field.name] = values.get(name, numbers)
    return st.builds(kind, **fields)


@given(st.lists(st.one_of([one_of(kind) for kind in KINDS]), max_size=8))
def test_messages_are_read_back_as_they_were(batch: list[Message]) -> None:
    """Whatever one replica says, the other hears."""
    assert decode_messages(encode_messages(batch)) == batch


def test_tags_stay_as_they_are() -> None:
    """Replicas of two releases talk to each other while a cluster is upgraded."""
    tags = {kind.__struct_config__.tag: kind.__name__ for kind in KINDS}
    assert tags == {
        1: "PreVote",
        2: "PreVoteReply",
        3: "Vote",
        4: "VoteReply",
        5: "Append",
        6: "AppendReply",
        7: "Heartbeat",
        8: "HeartbeatReply",
        9: "SnapshotChunk",
        10: "SnapshotReply",
        11: "TimeoutNow",
        12: "BarrierAsk",
        13: "BarrierTell",
    }


@given(st.binary(max_size=200))
def test_garbage_is_a_peers_fault(data: bytes) -> None:
    """A peer sends noise: it is refused with one kind of error, or it happens to be messages."""
    try:
        batch = decode_messages(data)
    except PeerFault:
        return
    assert all(type(message) in KINDS for message in batch)


@given(st.data())
def test_damaged_messages_are_a_peers_fault_or_other_messages(data: st.DataObject) -> None:
    """A byte flips on the way (TLS would have noticed): nothing but messages comes out."""
    batch = data.draw(st.lists(st.one_of([one_of(kind) for kind in KINDS]), min_size=1, max_size=3))
    encoded = bytearray(encode_messages(batch))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    try:
        found = decode_messages(bytes(encoded))
    except PeerFault:
        return
    assert all(type(message) in KINDS for message in found)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x90\x90",
        encode_messages([TimeoutNow(1, 2, 3)])[:-1],
        msgspec.msgpack.encode([[99, 1, 2, 3]]),
        msgspec.msgpack.encode([[11, -1, 2, 3]]),
        msgspec.msgpack.encode([[11, 1, 2, "3"]]),
        msgspec.msgpack.encode({"type": 11}),
        b"\x91" * 5000,
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    """Empty, cut off, of an unknown kind, negative, of a wrong type, nested without end."""
    with pytest.raises(PeerFault, match="unreadable batch from a peer"):
        decode_messages(data)


def test_batch_over_its_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer sends more than anybody should: it is refused before it is read."""
    batch = [TimeoutNow(1, 2, 3)] * 3
    monkeypatch.setattr(messages_module, "MESSAGES_MAX", 2)
    with pytest.raises(PeerFault, match="batch of 3 messages from a peer, at most 2 are read"):
        decode_messages(encode_messages(batch))
    monkeypatch.setattr(messages_module, "ENCODED_BYTES_MAX", 10)
    with pytest.raises(PeerFault, match="batch of 16 bytes from a peer, at most 10 are read"):
        decode_messages(encode_messages(batch))
