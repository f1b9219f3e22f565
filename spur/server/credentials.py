"""A host's key and certificate: making the key, asking for a certificate, checking and keeping it.

A private key never leaves the host that made it. What travels is a signing request: the public
key and the host's name, signed by the key. The authority that signs it is the controllers' alone
(`spur.controller.authority`).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from spur.client.tls import TlsFiles, credentials_in
from spur.values.errors import OperatorFault, PeerFault
from spur.wire.hello import HostName, format_host_name, parse_host_name

__all__ = [
    "Credentials",
    "SigningRequest",
    "authority_digest",
    "key_digest",
    "key_pem",
    "make_key",
    "make_signing_request",
    "read_key",
    "read_signing_request",
    "require_credentials",
    "sync_directory",
    "verify_certificate",
    "write_credentials",
    "write_new",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """A host's certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class SigningRequest:
    """What a host asks a certificate for; its key has signed this."""

    name: str
    """What the host calls itself."""
    key: ec.EllipticCurvePublicKey

    @property
    def key_digest(self) -> bytes:
        """SHA-256 of the public key, by which the log knows it."""
        return key_digest(self.key)


# -- on the host that wants a certificate


def make_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key, on P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Return a private key. Raises: ValueError when this is none of ours."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not on an elliptic curve")
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM, not encrypted: the file's mode guards it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def make_signing_request(key: ec.EllipticCurvePrivateKey, name: str) -> bytes:
    """Return a signing request as DER: this key asks for a certificate of a host of this name.

    A host that does not know its name, and has a certificate already, leaves it empty.
    """
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


# -- on the controller that is asked


def read_signing_request(der: bytes) -> SigningRequest:
    """Return what a signing request asks for.

    Raises: PeerFault, one sentence, when it is none, its key is of another kind, or its key did
    not sign it.
    """
    try:
        request = x509.load_der_x509_csr(der)
        key = request.public_key()
        signed = request.is_signature_valid
        names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise PeerFault("the signing request cannot be read") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise PeerFault("the signing request is of another kind of key than one on P-256")
    if not signed:
        raise PeerFault("the signing request was not signed by its own key")
    values = [name.value for name in names if isinstance(name.value, str)]
    if len(names) > 1 or len(values) < len(names):
        raise PeerFault("the signing request names more than one host")
    return SigningRequest(name=values[0] if values else "", key=key)


def key_digest(key: ec.EllipticCurvePublicKey) -> bytes:
    """Return the SHA-256 of a public key."""
    encoded = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(encoded).digest()


# -- kept on disk, and checked


def write_credentials(directory: Path, authority: bytes, credentials: Credentials) -> TlsFiles:
    """Write what a host needs for TLS, each file whole or not at all, and return where."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = credentials_in(directory)
    contents = {files.authority: authority, files.host: credentials.key + credentials.certificate}
    for path, content in contents.items():
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        write_new(fresh, content)
        fresh.replace(path)
    sync_directory(directory)
    return files


def require_credentials(files: TlsFiles, name: HostName, now: datetime) -> None:
    """See that a host's files are its own, before others refuse it for them.

    Raises: OperatorFault, one sentence.
    """
    try:
        authority, host = files.authority.read_bytes(), files.host.read_bytes()
    except OSError as error:
        raise OperatorFault(f"{files.host.parent} has no usable credentials: {error}") from error
    try:
        shown = verify_certificate(authority, host, name.cluster_id, now)
    except OperatorFault as fault:
        raise OperatorFault(f"{files.host}: {fault}; nothing was started") from fault
    if shown != name:
        raise OperatorFault(
            f"{files.host} is the certificate of {format_host_name(shown)}; this is"
            f" {format_host_name(name)}; nothing was started"
        )


def verify_certificate(
    authority: bytes, certificate: bytes, cluster_id: bytes, now: datetime
) -> HostName:
    """Return whom a certificate names.

    Raises: OperatorFault, one sentence, when it is not of this authority and cluster, not valid
    now, or names no host.
    """
    try:
        issuer = x509.load_pem_x509_certificate(authority)
        shown = x509.load_pem_x509_certificate(certificate)
        shown.verify_directly_issued_by(issuer)
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise OperatorFault("the certificate was not issued by this cluster's authority") from error
    except x509.ExtensionNotFound as error:
        raise OperatorFault("the certificate names no host") from error
    name = parse_host_name(uris[0]) if len(uris) == 1 else None
    if name is None:
        raise OperatorFault(
            f"the certificate names {uris}; it should name one host, as spur://CLUSTER/ROLE/ID"
        )
    if name.cluster_id != cluster_id:
        raise OperatorFault(
            f"the certificate is of cluster {name.cluster_id.hex()}; this is {cluster_id.hex()}"
        )
    first, last = shown.not_valid_before_utc, shown.not_valid_after_utc
    if not first <= now <= last:
        raise OperatorFault(
            f"the certificate is valid from {first:%Y-%m-%d} to {last:%Y-%m-%d}; by this host's"
            f" clock it is {now:%Y-%m-%d %H:%M}"
        )
    return name


def authority_digest(certificate: bytes) -> bytes:
    """Return the SHA-256 of an authority's certificate, which join tokens carry.

    Raises: PeerFault when this is no certificate.
    """
    try:
        shown = x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        raise PeerFault("it showed an authority that is no certificate") from error
    return shown.fingerprint(hashes.SHA256())


def write_new(path: Path, content: bytes) -> None:
    """Write and sync a file that nobody but its owner may read. Raises: FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Sync a directory: its files' names are on the disk when this returns."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
