"""Reading envelopes: what is not exactly what this release knows stops the reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from spur.events.codec import Codec, NotYetWritable, UnreadableRecord
from spur.events.declare import Event, EventType, IgnoredEvent, Stored, event
from spur.events.envelope import Actor, RequestMark
from spur.events.upcasts import Upcast, upcast
from spur.values.limits import ENTRY_BODY_BYTES_MAX, LimitExceeded

ACTOR = Actor(1000, 1000, 7, "login", "socket")
MARK = RequestMark("uid:1000", b"i" * 16, 0, b"h" * 32, b"", 1, 1)
MARK_ARRAY = ["uid:1000", b"i" * 16, 0, b"h" * 32, b"", 1, 1]
ACTOR_ARRAY = [1000, 1000, 7, "login", "socket"]


class Lid(Stored, frozen=True):
    """A nested part."""

    colour: str
    width: int


class PotBought(Event, frozen=True):
    """An event of two depths."""

    name: str
    lids: tuple[Lid, ...]


class PotBoughtV1(Event, frozen=True):
    """What it was at first."""

    name: str


class PotBoughtV2(Event, frozen=True):
    """What it was then."""

    name: str
    colour: str


def registry(*, version: int = 3, since: int = 1) -> dict[str, EventType]:
    """Return a registry of one event, apart from the product's."""
    events: dict[str, EventType] = {}
    event("pot.bought", version=version, since=since, registry=events)(PotBought)
    return events


def history() -> dict[tuple[str, int], Upcast]:
    """Return the steps from version 1 to 3."""
    steps: dict[tuple[str, int], Upcast] = {}

    @upcast(
        "pot.bought",
        version=1,
        since=1,
        old=PotBoughtV1,
        defaults={"colour": "grey"},
        registry=steps,
    )
    def second(old: PotBoughtV1) -> PotBoughtV2:
        return PotBoughtV2(old.name, "grey")

    @upcast("pot.bought", version=2, since=1, old=PotBoughtV2, defaults={}, registry=steps)
    def third(old: PotBoughtV2) -> PotBought:
        return PotBought(old.name, (Lid(old.colour, 20),))

    return steps


CODEC = Codec(registry(), history())


def stored(
    payload: Sequence[Any], *, kind: str = "pot.bought", version: int = 3, flags: int = 0
) -> bytes:
    """Return the bytes of an envelope with one event, as any release might have written them."""
    events = [[kind, version, flags, payload]]
    return msgspec.msgpack.encode([1, 5, "pot.buy", MARK_ARRAY, ACTOR_ARRAY, events, []])


def test_encoding_and_decoding_give_the_event_back() -> None:
    """A leader reads back its own bytes before it proposes them."""
    bought = PotBought("blue", (Lid("red", 3), Lid("green", 4)))
    body = CODEC.encode(
        time_ns=5,
        command="pot.buy",
        request=MARK,
        actor=ACTOR,
        events=(bought,),
        cluster_version=1,
    )
    envelope, events = CODEC.decode(body, 9)
    assert events == (bought,)
    assert (envelope.time_ns, envelope.command, envelope.actor) == (5, "pot.buy", ACTOR)
    assert body == stored(["blue", [["red", 3], ["green", 4]]])


def test_an_unknown_type_stops_the_reader() -> None:
    """A replica of an old release meets an event of a new one: it stops, and names it."""
    with pytest.raises(UnreadableRecord, match=r"entry 9: event 'pan\.bought'.*does not know"):
        CODEC.decode(stored([], kind="pan.bought"), 9)


def test_a_higher_version_stops_the_reader() -> None:
    """The type is known, and a newer release appended a field."""
    with pytest.raises(UnreadableRecord, match="version 4 is newer than the known 3"):
        CODEC.decode(stored(["blue", [], 1], version=4), 9)


@pytest.mark.parametrize(
    "payload",
    [
        ["blue", [], "surplus"],
        ["blue", [["red", 3, "surplus"]]],
        ["blue"],
        ["blue", [["red"]]],
        ["blue", [["red", 3.0]]],
        ["blue", [["red", True]]],
        [b"blue", []],
    ],
)
def test_another_shape_stops_the_reader(payload: list[Any]) -> None:
    """Surplus, missing or differently typed elements, at each depth: nothing is guessed."""
    with pytest.raises(UnreadableRecord) as caught:
        CODEC.decode(stored(payload), 12)
    assert (caught.value.index, caught.value.event_type) == (12, "pot.bought")


def test_another_shape_stops_the_reader_at_its_first_record_too() -> None:
    """The very first event that a process reads is as strictly read as all later ones."""
    with pytest.raises(UnreadableRecord, match=r"pot\.bought"):
        Codec(registry(), history()).decode(stored(["blue", [], 0]), 1)


def test_an_ignorable_event_keeps_its_place() -> None:
    """A newer release wrote something that touches no table; positions count it."""
    body = msgspec.msgpack.encode(
        [
            1,
            5,
            "pot.buy",
            MARK_ARRAY,
            ACTOR_ARRAY,
            [["pot.admired", 2, 1, [1, 2]], ["pot.bought", 3, 0, ["blue", []]]],
            [],
        ]
    )
    _, events = CODEC.decode(body, 9)
    assert events == (IgnoredEvent("pot.admired", 2), PotBought("blue", ()))


def test_an_ignorable_event_that_is_known_is_read() -> None:
    """The flag excuses only those who don't know the event: a damaged one still stops."""
    with pytest.raises(UnreadableRecord):
        CODEC.decode(stored(["blue", [], 0], flags=1), 9)


def test_old_versions_are_brought_up_to_date() -> None:
    """A ledger of the first release is read by the third."""
    assert CODEC.decode(stored(["blue"], version=1), 9)[1] == (
        PotBought("blue", (Lid("grey", 20),)),
    )
    assert CODEC.decode(stored(["blue", "red"], version=2), 9)[1] == (
        PotBought("blue", (Lid("red", 20),)),
    )


def test_an_old_version_is_read_as_strictly() -> None:
    """Version 1 had one field: two of them are damage, not a later version."""
    with pytest.raises(UnreadableRecord):
        CODEC.decode(stored(["blue", "red"], version=1), 9)


def test_a_version_without_its_upcast_stops_the_reader() -> None:
    """Someone dropped an old class: its records are named, not skipped."""
    with pytest.raises(UnreadableRecord, match="no such version: 1"):
        Codec(registry(), {}).decode(stored(["blue"], version=1), 9)
    with pytest.raises(UnreadableRecord, match="no such version: 0"):
        CODEC.decode(stored(["blue"], version=0), 9)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "cannot be read"),
        (b"\xc1", "cannot be read"),
        (msgspec.msgpack.encode([2, 5, "x"]), "envelope version 2 is newer"),
        (msgspec.msgpack.encode([1, 5, "x", MARK_ARRAY, ACTOR_ARRAY, []]), "at least length 7"),
        (msgspec.msgpack.encode([1, 5, "x", MARK_ARRAY, ACTOR_ARRAY, [], [], 0]), "at most"),
        (msgspec.msgpack.encode([0, 5, "x", MARK_ARRAY, ACTOR_ARRAY, [], []]), "version 0"),
        (msgspec.msgpack.encode({"version": 1}), "cannot be read"),
        (stored(["blue", []]) + b"\x00", "trailing"),
    ],
)
def test_an_envelope_of_another_shape_stops_the_reader(body: bytes, why: str) -> None:
    """A flipped bit or a newer envelope: the entry is named."""
    with pytest.raises(UnreadableRecord, match=why) as caught:
        CODEC.decode(body, 9)
    assert caught.value.index == 9


def test_a_version_is_written_only_when_the_cluster_allows_it() -> None:
    """Half of the controllers are still of the old release."""
    codec = Codec(registry(since=2), history())

    def encode(cluster_version: int) -> bytes:
        return codec.encode(
            time_ns=5,
            command="pot.buy",
            request=MARK,
            actor=ACTOR,
            events=(PotBought("blue", ()),),
            cluster_version=cluster_version,
        )

    with pytest.raises(NotYetWritable, match="from cluster version 2 on; the cluster is at 1"):
        encode(1)
    assert codec.decode(encode(2), 9)[1] == (PotBought("blue", ()),)


def test_a_body_over_its_limit_is_refused_by_name() -> None:
    """A command came to more than one entry may hold."""
    with pytest.raises(LimitExceeded) as caught:
        CODEC.encode(
            time_ns=5,
            command="pot.buy",
            request=MARK,
            actor=ACTOR,
            events=(PotBought("b" * ENTRY_BODY_BYTES_MAX, ()),),
            cluster_version=1,
        )
    assert caught.value.name == "entry-body-bytes-max"


def test_an_answer_over_its_limit_is_refused_by_name() -> None:
    """Answers that are remembered are small."""
    with pytest.raises(LimitExceeded) as caught:
        CODEC.encode(
            time_ns=5,
            command="pot.buy",
            request=msgspec.structs.replace(MARK, answer=b"a" * 257),
            actor=ACTOR,
            events=(),
            cluster_version=1,
        )
    assert caught.value.name == "answer-bytes-max"


def test_encoding_an_undeclared_event_fails() -> None:
    """A class that nobody registered has no name to be stored under."""
    with pytest.raises(KeyError):
        CODEC.encode(
            time_ns=5,
            command="pot.buy",
            request=MARK,
            actor=ACTOR,
            events=(PotBoughtV1("blue"),),
            cluster_version=1,
        )
