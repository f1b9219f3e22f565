"""The cluster's own certificate authority: made at its birth, kept on controllers' disks alone.

Certificates are ECDSA on P-256. Each names its host by one URI (see `spur.wire.hello`). How long
one holds is said by whoever asks for it; two thirds into its life its host asks for the next
(`spur.server.renewal`). The authority itself holds for `AUTHORITY_DAYS`.

What a certificate says follows from its arguments alone, the signature too: whichever controller
is asked, and however often, the same host gets the same bytes.
"""

from __future__ import annotations

import hashlib
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spur.client.tls import AUTHORITY_FILE
from spur.server.credentials import (
    Credentials,
    key_digest,
    key_pem,
    make_key,
    sync_directory,
    write_new,
)
from spur.values.errors import OperatorFault
from spur.wire.hello import HOST_ROLES, HostName, format_host_name

__all__ = ["AUTHORITY_DAYS", "CERTIFICATE_DAYS", "Authority", "moment"]

AUTHORITY_DAYS = 7300
CERTIFICATE_DAYS = 365

_BACKDATE = timedelta(hours=1)
"""A certificate is valid from an hour ago, for hosts whose clock is a little behind; one that holds
for less is backdated by no more than its life, so that two thirds of it lie ahead."""

_CERTIFICATE_FILE = AUTHORITY_FILE
_KEY_FILE = "authority.key"

_SERIAL_BYTES = 20
"""Octets of a serial number, the first bit zero. Source: RFC 5280 4.1.2.2."""


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
        key = make_key()
        name = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, f"Spur cluster {cluster_id.hex()}")]
        )
        usage = _key_usage(signs_certificates=True)
        certificate = (
            _builder(key.public_key(), name, name, (now - _BACKDATE, now + _days(AUTHORITY_DAYS)))
            .serial_number(x509.random_serial_number())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            write_new(directory / _KEY_FILE, key_pem(key))
            write_new(directory / _CERTIFICATE_FILE, _pem(certificate))
        except FileExistsError as error:
            raise OperatorFault(
                f"{directory} already holds an authority; a cluster has one, and it was kept"
            ) from error
        sync_directory(directory)
        return cls(key, certificate)

    @classmethod
    def open(cls, directory: Path) -> Authority:
        """Return the authority that a directory holds. Raises: OperatorFault when it cannot."""
        try:
            key_text = (directory / _KEY_FILE).read_bytes()
            certificate_text = (directory / _CERTIFICATE_FILE).read_bytes()
            key = serialization.load_pem_private_key(key_text, password=None)
            certificate = x509.load_pem_x509_certificate(certificate_text)
        except (OSError, ValueError, TypeError) as error:
            raise OperatorFault(f"{directory}: no authority can be read here: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or (
            key.public_key() != certificate.public_key()
        ):
            raise OperatorFault(f"{directory}: the authority's key is not that of its certificate")
        return cls(key, certificate)

    @classmethod
    def restore(cls, directory: Path, certificate: bytes, key: bytes) -> Authority:
        """Write the authority that another controller gave, and return it.

        What was in its place, and could not be read, is set aside.

        Raises: OperatorFault when key and certificate don't belong together, or can't be written.
        """
        try:
            scratch = directory.with_name(f"{directory.name}.new")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(mode=0o700)
            write_new(scratch / _KEY_FILE, key)
            write_new(scratch / _CERTIFICATE_FILE, certificate)
            cls.open(scratch)
            sync_directory(scratch)
            if directory.exists():
                aside = directory.with_name(f"{directory.name}.damaged")
                shutil.rmtree(aside, ignore_errors=True)
                directory.rename(aside)
            scratch.rename(directory)
            sync_directory(directory.parent)
        except OSError as error:
            raise OperatorFault(f"{directory} can't be written: {error.strerror}") from error
        return cls.open(directory)

    @property
    def key(self) -> bytes:
        """The authority's private key as PEM; for another controller's disk, and nobody else."""
        return key_pem(self._key)

    @property
    def certificate(self) -> bytes:
        """The authority's certificate as PEM; public."""
        return _pem(self._certificate)

    def issue(
        self, name: HostName, now: datetime, life: timedelta = timedelta(days=CERTIFICATE_DAYS)
    ) -> Credentials:
        """Return a new key and certificate for a host."""
        key = make_key()
        certificate = self.sign(name, key.public_key(), now, now + life)
        return Credentials(certificate=certificate, key=key_pem(key))

    def sign(
        self, name: HostName, key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
    ) -> bytes:
        """Return the certificate of a host that holds this key, as PEM.

        Whole seconds count. The same arguments give the same bytes.
        """
        if name.role not in HOST_ROLES:
            raise ValueError(f"role {name.role!r}; a host is one of {', '.join(HOST_ROLES)}")
        begins, ends = begins.replace(microsecond=0), ends.replace(microsecond=0)
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if name.role != "admin":
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name.role} {name.id}")])
        times = (begins - min(_BACKDATE, ends - begins), ends)
        certificate = (
            _builder(key, subject, self._certificate.subject, times)
            .serial_number(_serial(name, key, begins, ends))
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
            .sign(self._key, hashes.SHA256(), ecdsa_deterministic=True)
        )
        return _pem(certificate)


def moment(time_ns: int) -> datetime:
    """Return a moment of the log as certificates take it, in whole seconds."""
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)


def _days(days: int) -> timedelta:
    return timedelta(days=days)


def _serial(
    name: HostName, key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
) -> int:
    """Return a serial number that no other certificate of this authority has."""
    text = f"{format_host_name(name)} {begins.timestamp():.0f} {ends.timestamp():.0f} "
    digest = hashlib.sha256(text.encode() + key_digest(key)).digest()
    return int.from_bytes(digest[:_SERIAL_BYTES], "big") >> 1


def _builder(
    key: ec.EllipticCurvePublicKey,
    subject: x509.Name,
    issuer: x509.Name,
    times: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .not_valid_before(times[0])
        .not_valid_after(times[1])
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
