"""Addresses of replicas, as people write them."""

from __future__ import annotations

import pytest

from spur.client.address import TcpAddress, UnixAddress, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ctl1:6816", TcpAddress("ctl1", 6816)),
        ("10.0.0.1:1", TcpAddress("10.0.0.1", 1)),
        ("[fe80::1]:6816", TcpAddress("fe80::1", 6816)),
        ("[fe80::1%eth0]:6816", TcpAddress("fe80::1%eth0", 6816)),
        ("unix:/run/spur/spurctld.sock", UnixAddress("/run/spur/spurctld.sock")),
    ],
)
def test_address_is_read_and_written_alike(text: str, address: TcpAddress | UnixAddress) -> None:
    """Each kind of address in a configuration file."""
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "ctl1",
            ":6816",
            "ctl1:",
            "ctl1:0",
            "ctl1:65536",
            "ctl1:x",
            "fe80::1:6816",
            "ctl1:-1",
        ),
        *("ctl1:" + "0" * 5_000 + "1", "ctl\0:1", "ctl\x1b[2J:1", "a b:1", "c" * 254 + ":1"),
        *("[]:1", "[ctl1]:1", "[fe80::1%]:1", "[fe80::1%a/b]:1"),
    ],
)
def test_bad_address_is_refused(text: str) -> None:
    """A port is missing, or no number, or a host has what no name and no number of one has."""
    with pytest.raises(ValueError, match=r"an address is host:port or \[IPv6\]:port$"):
        parse_address(text)


def test_relative_socket_is_refused() -> None:
    """A relative path would mean another socket in every directory."""
    with pytest.raises(ValueError, match="a Unix socket is unix:/absolute/path"):
        parse_address("unix:run/spur.sock")
