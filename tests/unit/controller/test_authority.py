"""The authority: who gets a certificate, who may read a key, and what is refused."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from spur.client.tls import client_context, server_context, validity_of
from spur.controller.authority import CERTIFICATE_DAYS, Authority
from spur.server.credentials import (
    key_digest,
    key_pem,
    make_key,
    make_signing_request,
    read_key,
    read_signing_request,
    require_credentials,
    verify_certificate,
    write_credentials,
)
from spur.server.renewal import renewal_moment
from spur.values.errors import OperatorFault, PeerFault
from spur.wire.hello import HostName

CLUSTER = bytes(range(16))
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def host(role: str, number: int = 1, cluster_id: bytes = CLUSTER) -> HostName:
    """Return a host's name in the test's cluster."""
    return HostName(cluster_id=cluster_id, role=role, id=number)


@pytest.mark.parametrize("role", ["controller", "admin", "login", "compute"])
def test_certificate_names_its_host(tmp_path: Path, role: str) -> None:
    """A host of each role gets a certificate; reading it gives back cluster, role and id."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    issued = authority.issue(host(role, 17), NOW)
    assert verify_certificate(authority.certificate, issued.certificate, CLUSTER, NOW) == host(
        role, 17
    )


def test_role_that_does_not_exist_gets_no_certificate(tmp_path: Path) -> None:
    """Someone asks for a certificate of a role that the cluster does not know."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    with pytest.raises(ValueError, match="role 'root'; a host is one of controller, admin"):
        authority.issue(host("root"), NOW)


def test_authority_is_found_again(tmp_path: Path) -> None:
    """The controller starts again and issues certificates of the same authority."""
    created = Authority.create(tmp_path, CLUSTER, NOW)
    opened = Authority.open(tmp_path)
    issued = opened.issue(host("compute"), NOW)
    assert verify_certificate(created.certificate, issued.certificate, CLUSTER, NOW).id == 1


def test_authority_is_made_once(tmp_path: Path) -> None:
    """Someone runs the birth of the cluster twice: the first authority stays as it was."""
    first = Authority.create(tmp_path, CLUSTER, NOW)
    with pytest.raises(OperatorFault, match="already holds an authority"):
        Authority.create(tmp_path, CLUSTER, NOW)
    assert Authority.open(tmp_path).certificate == first.certificate


def test_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    """Two clusters' files got mixed up in one directory."""
    Authority.create(tmp_path / "a", CLUSTER, NOW)
    Authority.create(tmp_path / "b", CLUSTER, NOW)
    (tmp_path / "a" / "authority.key").replace(tmp_path / "b" / "authority.key")
    with pytest.raises(OperatorFault, match="key is not that of its certificate"):
        Authority.open(tmp_path / "b")


def test_missing_authority_is_said(tmp_path: Path) -> None:
    """The directory is empty."""
    with pytest.raises(OperatorFault, match="no authority can be read here"):
        Authority.open(tmp_path)


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    """Both private keys are written with mode 0600 whatever the umask, also when renewed."""
    authority = Authority.create(tmp_path / "ca", CLUSTER, NOW)
    issued = authority.issue(host("controller"), NOW)
    for _ in range(2):
        files = write_credentials(tmp_path / "tls", authority.certificate, issued)
        for path in (files.host, tmp_path / "ca" / "authority.key"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert client_context(files).get_ca_certs()
    assert server_context(files).get_ca_certs()


def test_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    """An administrator copied the file with a lax mode; the daemon says so and does not start."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    files = write_credentials(
        tmp_path, authority.certificate, authority.issue(host("controller"), NOW)
    )
    files.host.chmod(0o640)
    with pytest.raises(OperatorFault, match="can be read by others; its mode must be 0600"):
        server_context(files)


def test_missing_host_file_is_said(tmp_path: Path) -> None:
    """The certificate was never written."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    files = write_credentials(
        tmp_path, authority.certificate, authority.issue(host("controller"), NOW)
    )
    files.host.unlink()
    with pytest.raises(OperatorFault, match="cannot be used for TLS"):
        client_context(files)


def test_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    """A host of another cluster shows its certificate."""
    ours = Authority.create(tmp_path / "a", CLUSTER, NOW)
    theirs = Authority.create(tmp_path / "b", CLUSTER, NOW)
    issued = theirs.issue(host("controller"), NOW)
    with pytest.raises(OperatorFault, match="not issued by this cluster's authority"):
        verify_certificate(ours.certificate, issued.certificate, CLUSTER, NOW)


def test_certificate_of_another_cluster_is_refused(tmp_path: Path) -> None:
    """The authority was copied into a second cluster; its certificates name the first."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    issued = authority.issue(host("controller", cluster_id=bytes(16)), NOW)
    with pytest.raises(OperatorFault, match=f"is of cluster {'0' * 32}; this is {CLUSTER.hex()}"):
        verify_certificate(authority.certificate, issued.certificate, CLUSTER, NOW)


def test_authority_is_no_host(tmp_path: Path) -> None:
    """The authority's own certificate is shown in place of a host's."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    with pytest.raises(OperatorFault, match="names no host"):
        verify_certificate(authority.certificate, authority.certificate, CLUSTER, NOW)


def test_certificate_of_another_host_is_not_its_own(tmp_path: Path) -> None:
    """Two controllers' files were mixed up when they were carried to their hosts."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    name = host("controller")
    files = write_credentials(tmp_path, authority.certificate, authority.issue(name, NOW))
    require_credentials(files, name, NOW)
    with pytest.raises(OperatorFault, match=r"is the certificate of .*/controller/.*; this is"):
        require_credentials(files, msgspec.structs.replace(name, id=name.id + 1), NOW)
    files.host.unlink()
    with pytest.raises(OperatorFault, match="has no usable credentials"):
        require_credentials(files, name, NOW)


@pytest.mark.parametrize("days", [-1, CERTIFICATE_DAYS + 1])
def test_certificate_out_of_its_time_is_refused(tmp_path: Path, days: int) -> None:
    """The host's clock is wrong, or the certificate was never renewed."""
    authority = Authority.create(tmp_path, CLUSTER, NOW)
    issued = authority.issue(host("controller"), NOW)
    with pytest.raises(OperatorFault, match=r"valid from 2026-02-28 to 2027-03-01; by this host"):
        verify_certificate(
            authority.certificate, issued.certificate, CLUSTER, NOW + timedelta(days=days)
        )


@pytest.mark.parametrize("life", [timedelta(days=CERTIFICATE_DAYS), timedelta(seconds=30)])
def test_renewal_is_due_two_thirds_into_its_life(tmp_path: Path, life: timedelta) -> None:
    """A certificate of a year, and one of half a minute: a third is left to renew it."""
    issued = Authority.create(tmp_path, CLUSTER, NOW).issue(host("login"), NOW, life)
    first_s, last_s = validity_of((issued.key + issued.certificate).decode())
    assert last_s == (NOW + life).timestamp()
    assert NOW.timestamp() - first_s == min(life, timedelta(hours=1)).total_seconds()
    due_s = renewal_moment(issued.certificate)
    assert due_s == last_s - (last_s - first_s) / 3
    assert NOW.timestamp() < due_s < last_s


def test_validity_is_read_as_others_read_it(tmp_path: Path) -> None:
    """A certificate that ends after 2049, whose year is written with four digits."""
    later = datetime(2049, 6, 1, 12, 30, 15, tzinfo=UTC)
    issued = Authority.create(tmp_path, CLUSTER, later).issue(host("login"), later)
    shown = x509.load_pem_x509_certificate(issued.certificate)
    assert validity_of(issued.certificate.decode()) == (
        shown.not_valid_before_utc.timestamp(),
        shown.not_valid_after_utc.timestamp(),
    )
    with pytest.raises(ValueError, match="there is no certificate"):
        validity_of(issued.key.decode())


def test_same_key_gets_the_same_certificate(tmp_path: Path) -> None:
    """A host asks twice because the first answer was lost, of two controllers of a cluster."""
    Authority.create(tmp_path, CLUSTER, NOW)
    key, end = make_key().public_key(), NOW + timedelta(days=3)
    one, other = (Authority.open(tmp_path).sign(host("login"), key, NOW, end) for _ in range(2))
    assert one == other
    assert Authority.open(tmp_path).sign(host("login"), key, NOW, end + timedelta(days=1)) != one


def test_signing_request_is_read_and_checked() -> None:
    """A host asks for its certificate; what is no request, or is not signed by its key, is said."""
    key = make_key()
    asked = make_signing_request(key, "n1")
    read = read_signing_request(asked)
    assert (read.name, read.key) == ("n1", key.public_key())
    assert read.key_digest == key_digest(key.public_key())
    assert read_key(key_pem(key)).public_key() == key.public_key()
    with pytest.raises(PeerFault, match="cannot be read"):
        read_signing_request(b"nonsense")
    forged = bytearray(asked)
    forged[-1] ^= 1
    with pytest.raises(PeerFault, match=r"not signed by its own key|cannot be read"):
        read_signing_request(bytes(forged))
    with pytest.raises(PeerFault, match="another kind of key"):
        read_signing_request(make_signing_request(ec.generate_private_key(ec.SECP384R1()), "n1"))
