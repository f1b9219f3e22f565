"""Addresses of replicas, as people write them: `host:port`, `[::1]:port`, `unix:/path`."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["Address", "TcpAddress", "UnixAddress", "parse_address", "parse_tcp_address"]

_UNIX = "unix:"


class TcpAddress(NamedTuple):
    """A host and port; calls to it go under TLS."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class UnixAddress(NamedTuple):
    """A Unix socket on this host; its kernel says who is calling."""

    path: str

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}"


Address: TypeAlias = TcpAddress | UnixAddress


def parse_tcp_address(text: str) -> TcpAddress:
    """Return the host and port of `host:port` or `[host]:port`. Raises: ValueError."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"address {text!r}; an address is host:port or [IPv6]:port")
    return TcpAddress(host, int(port))


def parse_address(text: str) -> Address:
    """Return the address of a replica. Raises: ValueError."""
    if text.startswith(_UNIX):
        path = text[len(_UNIX) :]
        if not path.startswith("/"):
            raise ValueError(f"address {text!r}; a Unix socket is unix:/absolute/path")
        return UnixAddress(path)
    return parse_tcp_address(text)
