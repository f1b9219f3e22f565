"""Where a daemon listens, as people write it: `host:port` or `[IPv6]:port`. Pure."""

from __future__ import annotations

import string
from typing import NamedTuple

__all__ = ["TcpAddress", "parse_tcp_address"]

_NAME = frozenset(string.ascii_letters + string.digits + "._-")
_IPV6 = frozenset(string.hexdigits + ":.")
_ZONE = frozenset(string.ascii_letters + string.digits + "._-")
_HOST_LENGTH_MAX = 253
_PORT_LENGTH_MAX = 5


class TcpAddress(NamedTuple):
    """A host and port; calls to it go under TLS."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_tcp_address(text: str) -> TcpAddress:
    """Return the host and port of `host:port` or `[host]:port`. Raises: ValueError."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        number, percent, zone = host.partition("%")
        is_host = _is_of(number, _IPV6) and (not percent or _is_of(zone, _ZONE))
    else:
        is_host = _is_of(host, _NAME)
    if not (colon and is_host and _is_port(port)):
        raise ValueError(f"address {text!r}; an address is host:port or [IPv6]:port")
    return TcpAddress(host, int(port))


def _is_of(word: str, letters: frozenset[str]) -> bool:
    return 0 < len(word) <= _HOST_LENGTH_MAX and letters.issuperset(word)


def _is_port(word: str) -> bool:
    if not (word.isascii() and word.isdigit() and len(word) <= _PORT_LENGTH_MAX):
        return False
    return 0 < int(word) < 65536
