"""TLS between hosts: contexts, one end on memory buffers, and why a handshake failed.

TLS 1.3 alone, both sides show a certificate of the cluster's authority, and no session is resumed:
a connection lives for days. Host names play no part; the URI in the certificate does, and its
reader is `spur.wire.hello`.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from spur.values.errors import OperatorFault

__all__ = [
    "AUTHORITY_FILE",
    "HOST_FILE",
    "TlsFiles",
    "TlsSide",
    "client_context",
    "credentials_in",
    "joining_context",
    "names_of",
    "server_context",
    "show_certificate",
    "tls_sentence",
    "validity_of",
]

AUTHORITY_FILE = "authority.pem"
HOST_FILE = "host.pem"

_RECORD_BYTES_MAX = 16 * 1024
"""Payload of the longest TLS record. Source: RFC 8446 5.1."""

_NOT_YET_VALID = 9
_EXPIRED = 10
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL's x509_vfy.h."""


class TlsFiles(NamedTuple):
    """Where a host keeps what it needs for TLS."""

    authority: Path
    """The certificate of the cluster's authority."""
    host: Path
    """This host's private key and certificate, one file, readable by its owner alone."""


def credentials_in(directory: Path) -> TlsFiles:
    """Return where a host's directory keeps what it needs for TLS."""
    return TlsFiles(authority=directory / AUTHORITY_FILE, host=directory / HOST_FILE)


def server_context(files: TlsFiles, *, strangers: bool = False) -> ssl.SSLContext:
    """Return the context of a listener.

    With `strangers`, a caller may show no certificate at all; one that it shows must be good.

    Raises: OperatorFault when a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    _prepare(context, files)
    if strangers:
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a dialler. Raises: OperatorFault when a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _prepare(context, files)


def _prepare(context: ssl.SSLContext, files: TlsFiles) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    show_certificate(context, files)
    try:
        context.load_verify_locations(files.authority)
    except OSError as error:
        raise OperatorFault(f"{files.authority} cannot be used for TLS: {error}") from error
    return context


def show_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Let a context show the host's certificate as it is on disk now.

    Connections that are open, or in their handshake, are not touched: a renewed certificate is
    shown on those made from now on.

    Raises: OperatorFault when the file cannot be used.
    """
    try:
        if files.host.stat().st_mode & 0o077:
            raise OperatorFault(
                f"{files.host}: the private key can be read by others; its mode must be 0600"
            )
        context.load_cert_chain(files.host)
    except OSError as error:
        raise OperatorFault(f"{files.host} cannot be used for TLS: {error}") from error


def joining_context(authority: str) -> ssl.SSLContext:
    """Return the context of a dialler that has no certificate yet.

    `authority` is the certificate of the authority to believe, as PEM; with none, whoever answers
    is spoken with, and must be believed nothing.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(cadata=authority)
    else:
        context.verify_mode = ssl.CERT_NONE
    return context


def validity_of(pem: str) -> tuple[float, float]:
    """Return from when to when the certificate in a PEM file holds, in seconds since 1970.

    It is read here, by hand, so that a daemon needs no more than TLS itself until it renews it.
    Source: RFC 5280 4.1. Raises: ValueError when there is no certificate.
    """
    begin = pem.find("-----BEGIN CERTIFICATE-----")
    end = pem.find("-----END CERTIFICATE-----", begin)
    if begin < 0 or end < 0:
        raise ValueError("there is no certificate")
    der = ssl.PEM_cert_to_DER_cert(pem[begin:end] + "-----END CERTIFICATE-----\n")
    _, start, _ = _element(der, 0)
    _, start, _ = _element(der, start)
    tag, _, stop = _element(der, start)
    if tag == 0xA0:  # the version
        _, _, stop = _element(der, stop)
    _, _, stop = _element(der, stop)  # after the serial number: the signature's algorithm
    _, _, stop = _element(der, stop)  # the issuer
    _, start, _ = _element(der, stop)
    first = _element(der, start)
    return _time(der, first), _time(der, _element(der, first[2]))


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return an element's tag, and where its content starts and stops."""
    try:
        tag, length = der[at], der[at + 1]
        start = at + 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(der[at + 2 : start], "big")
    except IndexError as error:
        raise ValueError("the certificate is cut") from error
    if start + length > len(der):
        raise ValueError("the certificate is cut")
    return tag, start, start + length


def _time(der: bytes, element: tuple[int, int, int]) -> float:
    """Return a moment: tag 23 has two digits of the year, tag 24 has four."""
    tag, start, stop = element
    text = der[start:stop].decode("ascii")
    century = "" if tag == 24 else ("20" if text[:2] < "50" else "19")
    return datetime.strptime(f"{century}{text[:-1]}+0000", "%Y%m%d%H%M%S%z").timestamp()


class TlsSide:
    """One end of a TLS connection, on memory buffers."""

    __slots__ = ("done", "failed", "incoming", "outgoing", "tls")

    def __init__(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=server_side)
        self.done = False
        """True once the handshake is over."""
        self.failed = False
        """True after an error: nothing but the alert in `outgoing` can be sent."""

    def handshake(self) -> bool:
        """Go on with the handshake; return whether it is over. Raises: ssl.SSLError."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            self.failed = True
            raise
        self.done = True
        return True

    def decrypt(self) -> bytes:
        """Return what the bytes received so far hold. Raises: ssl.SSLError."""
        tls, incoming = self.tls, self.incoming
        parts: list[bytes] = []
        try:
            while incoming.pending or tls.pending():
                part = tls.read(_RECORD_BYTES_MAX)
                if not part:
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.failed = True
            raise
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def encrypt(self, data: bytes) -> bytes:
        """Return the bytes to send for this data; none after a failure."""
        if self.failed:
            return b""
        tls = self.tls
        sent = tls.write(data)
        while sent < len(data):
            sent += tls.write(memoryview(data)[sent:])
        return self.outgoing.read()

    def farewell(self) -> bytes:
        """Return the bytes that tell the other side that nothing follows."""
        if self.failed or not self.done:
            return b""
        with suppress(ssl.SSLError):
            self.tls.unwrap()
        return self.outgoing.read()

    def has_certificate(self) -> bool:
        """Return whether the other side showed a certificate, which then was found good."""
        return self.tls.getpeercert() is not None

    def names(self) -> tuple[str, ...]:
        """Return the URI names in the other side's verified certificate."""
        return _uris(self.tls.getpeercert())


def names_of(connected: ssl.SSLSocket) -> tuple[str, ...]:
    """Return the URI names in the verified certificate at the other end of a socket."""
    return _uris(connected.getpeercert())


def _uris(certificate: dict[str, Any] | None) -> tuple[str, ...]:
    pairs = certificate.get("subjectAltName", ()) if certificate else ()
    return tuple(str(pair[1]) for pair in pairs if pair[0] == "URI")


def tls_sentence(error: ssl.SSLError) -> str:
    """Return why TLS failed, as the end of a sentence about the other side."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return "its certificate has expired"
        if error.verify_code == _NOT_YET_VALID:
            return "its certificate is not valid yet; one of the two clocks is wrong"
        reason = error.verify_message
        return f"its certificate was not issued by this cluster's authority: {reason}"
    reason = (error.reason or str(error)).lower().replace("_", " ")
    if "alert" in reason:
        return f"it refused our certificate or our TLS: {reason}"
    if reason == "peer did not return a certificate":
        return "it showed no certificate; hosts of this cluster have one"
    return f"it does not speak TLS 1.3 with us: {reason}"
