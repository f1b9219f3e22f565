"""A throw-away authority and one certificate for servers and peers on this machine."""

from __future__ import annotations

import datetime
import ipaddress
import time
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Certificates", "make_certificates"]


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """Paths of what TLS needs, in PEM."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(directory: Path) -> Certificates:
    """Write an authority (P-256) and a certificate of it for 127.0.0.1, good for one day."""
    directory.mkdir(parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _builder("benchmark authority", "benchmark authority", authority_key)
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
    leaf = _builder("127.0.0.1", "benchmark authority", key)
    leaf = leaf.add_extension(
        x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        ),
        False,
    )
    leaf = leaf.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
        False,
    )
    files = Certificates(
        authority=directory / "authority.pem",
        certificate=directory / "certificate.pem",
        key=directory / "key.pem",
    )
    pem = serialization.Encoding.PEM
    files.authority.write_bytes(authority.sign(authority_key, hashes.SHA256()).public_bytes(pem))
    files.certificate.write_bytes(leaf.sign(authority_key, hashes.SHA256()).public_bytes(pem))
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
