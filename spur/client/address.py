"""Addresses of replicas, as people write them: `host:port`, `[::1]:port`, `unix:/path`."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from spur.values.addresses import TcpAddress, parse_tcp_address

__all__ = ["Address", "TcpAddress", "UnixAddress", "parse_address", "parse_tcp_address"]

_UNIX = "unix:"


class UnixAddress(NamedTuple):
    """A Unix socket on this host; its kernel says who is calling."""

    path: str

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}"


Address: TypeAlias = TcpAddress | UnixAddress


def parse_address(text: str) -> Address:
    """Return the address of a replica. Raises: ValueError."""
    if text.startswith(_UNIX):
        path = text[len(_UNIX) :]
        if not path.startswith("/"):
            raise ValueError(f"address {text!r}; a Unix socket is unix:/absolute/path")
        return UnixAddress(path)
    return parse_tcp_address(text)
