"""The cluster's own certificate authority: made at its birth, kept on controllers' disks alone.

Certificates are ECDSA on P-256. Each names its host by one URI (see `spur.wire.hello`) and holds
for `CERTIFICATE_DAYS`; from `RENEWAL_DAYS` before its end `renewal_due` says so, which leaves that
long to renew it without anyone noticing. The authority itself holds for `AUTHORITY_DAYS`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spur.client.tls import AUTHORITY_FILE, TlsFiles, credentials_in
from spur.values.errors import OperatorFault
from spur.wire.hello import HOST_ROLES, HostName, format_host_name, parse_host_name

__all__ = [
    "AUTHORITY_DAYS",
    "CERTIFICATE_DAYS",
    "RENEWAL_DAYS",
    "Authority",
    "Credentials",
    "renewal_due",
    "require_credentials",
    "verify_certificate",
    "write_credentials",
]

AUTHORITY_DAYS = 7300
CERTIFICATE_DAYS = 365
RENEWAL_DAYS = 90

_BACKDATE = timedelta(hours=1)
"""A certificate is valid from an hour ago, for hosts whose clock is a little behind."""

_CERTIFICATE_FILE = AUTHORITY_FILE
_KEY_FILE = "authority.key"


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """A host's certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Issues the certificates of one cluster."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def create(cls, directory: Path, cluster_id: bytes, now: datetime) -> Authority:
        """Make the authority of a new cluster and write it to a directory.

        Raises: OperatorFault when the directory already holds one; it is left as it was.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, f"Spur cluster {cluster_id.hex()}")]
        )
        usage = _key_usage(signs_certificates=True)
        certificate = (
            _builder(key.public_key(), name, name, now, AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _write_new(directory / _KEY_FILE, _key_pem(key))
            _write_new(directory / _CERTIFICATE_FILE, _pem(certificate))
        except FileExistsError as error:
            raise OperatorFault(
                f"{directory} already holds an authority; a cluster has one, and it was kept"
            ) from error
        _sync_directory(directory)
        return cls(key, certificate)

    @classmethod
    def open(cls, directory: Path) -> Authority:
        """Return the authority that a directory holds. Raises: OperatorFault when it cannot."""
        try:
            key_pem = (directory / _KEY_FILE).read_bytes()
            certificate_pem = (directory / _CERTIFICATE_FILE).read_bytes()
            key = serialization.load_pem_private_key(key_pem, password=None)
            certificate = x509.load_pem_x509_certificate(certificate_pem)
        except (OSError, ValueError, TypeError) as error:
            raise OperatorFault(f"{directory}: no authority can be read here: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or (
            key.public_key() != certificate.public_key()
        ):
            raise OperatorFault(f"{directory}: the authority's key is not that of its certificate")
        return cls(key, certificate)

    @property
    def certificate(self) -> bytes:
        """The authority's certificate as PEM; public."""
        return _pem(self._certificate)

    def issue(self, name: HostName, now: datetime) -> Credentials:
        """Return a new key and certificate for a host."""
        if name.role not in HOST_ROLES:
            raise ValueError(f"role {name.role!r}; a host is one of {', '.join(HOST_ROLES)}")
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if name.role != "admin":
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name.role} {name.id}")])
        certificate = (
            _builder(key.public_key(), subject, self._certificate.subject, now, CERTIFICATE_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.UniformResourceIdentifier(format_host_name(name))]
                ),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return Credentials(certificate=_pem(certificate), key=_key_pem(key))


def write_credentials(directory: Path, authority: bytes, credentials: Credentials) -> TlsFiles:
    """Write what a host needs for TLS, each file whole or not at all, and return where."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = credentials_in(directory)
    contents = {files.authority: authority, files.host: credentials.key + credentials.certificate}
    for path, content in contents.items():
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        _write_new(fresh, content)
        fresh.replace(path)
    _sync_directory(directory)
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


def renewal_due(certificate: bytes, now: datetime) -> bool:
    """Return whether a certificate has come within `RENEWAL_DAYS` of its end."""
    last = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    return now >= last - timedelta(days=RENEWAL_DAYS)


def _builder(
    key: ec.EllipticCurvePublicKey,
    subject: x509.Name,
    issuer: x509.Name,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_new(path: Path, content: bytes) -> None:
    """Write and sync a file that nobody but its owner may read. Raises: FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
