"""The hello between replicas: each way to be the wrong one has its own sentence."""

from __future__ import annotations

import msgspec
import pytest

from spur.values.errors import PeerFault
from spur.wire.calls import Goodbye
from spur.wire.hello import (
    Hello,
    HostName,
    Lane,
    PeerIdentity,
    decode_hello,
    encode_hello,
    format_host_name,
    judge_hello,
    parse_host_name,
)

CLUSTER = bytes(range(16))
ME = PeerIdentity(cluster_id=CLUSTER, incarnation=1, node_id=1, disk_id=b"1" * 16)
OTHER = PeerIdentity(cluster_id=CLUSTER, incarnation=1, node_id=2, disk_id=b"2" * 16)
DISKS = {2: b"2" * 16, 3: b"3" * 16}
OTHER_DISK = (
    "replica 2 has another disk than the member of that id; a replica that lost its disk is"
    " removed and added with a new id"
)
NAME = f"spur://{CLUSTER.hex()}/controller/2"


def judge(
    hello: Hello, names: tuple[str, ...] | None = (NAME,), dialled: int | None = 2
) -> str | None:
    """Judge a hello as replica 1 of the test's cluster does."""
    return judge_hello(hello, names, ME, DISKS, dialled=dialled)


def test_expected_replica_is_accepted() -> None:
    """Replica 2 answers where replica 2 was dialled, and replica 3 dials us."""
    assert judge(OTHER.hello(Lane.BULK)) is None
    third = msgspec.structs.replace(OTHER, node_id=3, disk_id=b"3" * 16)
    name = f"spur://{CLUSTER.hex()}/controller/3"
    assert judge(third.hello(Lane.HEARTBEAT), (name,), None) is None


def test_certificate_plays_no_part_without_tls() -> None:
    """The benchmark runs without TLS: the rest of the hello is judged all the same."""
    assert judge(OTHER.hello(Lane.BULK), None) is None
    stranger = msgspec.structs.replace(OTHER, node_id=9)
    assert judge(stranger.hello(Lane.BULK), None, None) == (
        "replica 9 is not a member of this cluster"
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"version": 2}, "it speaks version 2 of the wire; this replica speaks 1"),
        (
            {"cluster_id": b"x" * 16},
            f"it belongs to cluster {(b'x' * 16).hex()}; this is {CLUSTER.hex()}",
        ),
        (
            {"node_id": 3},
            f"its certificate names {NAME}; the replica it says it is has {NAME[:-1]}3",
        ),
        (
            {"incarnation": 2},
            "it is of incarnation 2 of the cluster; this replica is of 1",
        ),
        (
            {"disk_id": b"9" * 16},
            OTHER_DISK,
        ),
    ],
    ids=["version", "cluster", "certificate", "incarnation", "disk"],
)
def test_wrong_hello_is_refused_by_what_is_wrong(changed: dict[str, object], sentence: str) -> None:
    """One thing of an otherwise good hello is wrong."""
    assert judge(msgspec.structs.replace(OTHER.hello(Lane.BULK), **changed)) == sentence


@pytest.mark.parametrize("role", ["admin", "compute"])
def test_host_that_is_no_controller_is_refused(role: str) -> None:
    """An agent of the same cluster dials the replicas' port with its own good certificate."""
    name = f"spur://{CLUSTER.hex()}/{role}/2"
    assert judge(OTHER.hello(Lane.BULK), (name,)) == (
        f"its certificate names {name}; the replica it says it is has {NAME}"
    )


def test_certificate_without_or_with_two_names_is_refused() -> None:
    """A certificate of the authority that names nobody, and one that names two hosts."""
    assert str(judge(OTHER.hello(Lane.BULK), ())).startswith("its certificate names nobody; ")
    both = (NAME, f"spur://{CLUSTER.hex()}/controller/3")
    assert str(judge(OTHER.hello(Lane.BULK), both)).startswith(f"its certificate names {NAME} and")


def test_other_replica_at_the_address_is_refused() -> None:
    """Two replicas' addresses were exchanged in the membership."""
    assert judge(OTHER.hello(Lane.BULK), dialled=3) == (
        "it is replica 2; replica 3 was expected at this address"
    )


def test_second_of_our_own_id_is_refused() -> None:
    """Someone copied this replica's directory and started it elsewhere."""
    name = f"spur://{CLUSTER.hex()}/controller/1"
    assert judge(ME.hello(Lane.BULK), (name,), None) == (
        "it says it is replica 1, as this one is; an id is used once"
    )


def test_hello_comes_back_as_sent() -> None:
    """Both answers to a hello arrive as they were; anything else is refused."""
    for message in (OTHER.hello(Lane.HEARTBEAT), Goodbye(code="protocol", text="no")):
        assert decode_hello(encode_hello(message)) == message
    with pytest.raises(PeerFault, match=r"^a hello that cannot be read"):
        decode_hello(b"\x91\x06")


@pytest.mark.parametrize("role", ["controller", "admin", "login", "compute"])
def test_host_name_is_read_back(role: str) -> None:
    """The URI of a certificate gives back the host it was made for."""
    name = HostName(cluster_id=CLUSTER, role=role, id=12)
    assert parse_host_name(format_host_name(name)) == name


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://example.org/",
        f"spur://{CLUSTER.hex()}/root/1",
        f"spur://{CLUSTER.hex()}/controller/01",
        f"spur://{CLUSTER.hex()}/controller/-1",
        f"spur://{CLUSTER.hex()}/controller/1\n",
        f"spur://{CLUSTER.hex().upper()}/controller/1",
        f"spur://{CLUSTER.hex()[:-1]}/controller/1",
        f"spur://{CLUSTER.hex()}/controller/1/2",
    ],
)
def test_other_uris_name_no_host(uri: str) -> None:
    """A host has one spelling; anything near it names nobody."""
    assert parse_host_name(uri) is None
