"""The hosts of the nemesis: what is cut is cut, in that direction alone, and nothing is left."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.live.hosts import Hosts, can_make_hosts

PORT = 24200


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Yield two hosts."""
    if not can_make_hosts():
        pytest.skip("takes root and ip-netns(8): makes network namespaces")
    with Hosts(2) as made:
        yield made


def bound(hosts: Hosts, number: int) -> socket.socket:
    """Return a datagram socket on a host."""
    with hosts.inside(number):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((hosts.address(number), PORT))
    made.settimeout(0.2)
    return made


def passes(hosts: Hosts, sender: socket.socket, receiver: socket.socket) -> bool:
    """Tell whether a datagram arrives."""
    sender.sendto(b"word", receiver.getsockname())
    try:
        return receiver.recv(16) == b"word"
    except TimeoutError:
        return False


def test_cut_is_silent_and_in_one_direction(hosts: Hosts) -> None:
    """A switch fails in such a way that one host hears the other, and is not heard."""
    with bound(hosts, 1) as one, bound(hosts, 2) as two:
        assert passes(hosts, one, two)
        assert passes(hosts, two, one)
        hosts.cut(1, 2)
        hosts.cut(1, 2)
        assert not passes(hosts, one, two)
        assert passes(hosts, two, one)
        hosts.heal()
        assert passes(hosts, one, two)
        hosts.cut_both([1], [2])
        assert not passes(hosts, one, two)
        assert not passes(hosts, two, one)
        hosts.heal()
        assert passes(hosts, two, one)


def test_nothing_is_left_of_hosts(hosts: Hosts) -> None:
    """The tests end, and the machine is as it was."""
    names = [path for path in Path("/run/netns").iterdir() if f"spur-{os.getpid()}-" in path.name]
    assert len(names) == 3
    hosts.__exit__(None)
    assert [path for path in names if path.exists()] == []
